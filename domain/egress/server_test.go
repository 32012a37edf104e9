package egress_test

import (
	"errors"
	"strings"
	"testing"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

func TestServersAreHeldToTheRulesOfURLs(t *testing.T) {
	t.Parallel()
	policy, err := egress.ParseAllow("127.0.0.1:9092, 10.1.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server string
		tls    bool
		want   string // as it is kept; empty: refused
		says   string
	}{
		{"broker.example.com:9092", true, "broker.example.com:9092", ""},
		{"Broker.Example.COM:9094", true, "broker.example.com:9094", ""},
		{"broker.example.com:443", true, "broker.example.com:443", ""},
		{"93.184.216.34:9092", true, "93.184.216.34:9092", ""},
		{"[2606:4700::1111]:9092", true, "[2606:4700::1111]:9092", ""},
		{"127.0.0.1:9092", false, "127.0.0.1:9092", ""},
		{"10.1.2.3:9092", false, "10.1.2.3:9092", ""},
		{"broker.example.com:9092", false, "", "TLS"},
		{"93.184.216.34:9092", false, "", "TLS"},
		{"127.0.0.1:9093", true, "", "isn't public"},
		{"10.2.0.1:9092", true, "", "isn't public"},
		{"localhost:9092", true, "", "reserved"},
		{"kafka:9092", true, "", "only one label"},
		{"metadata.google.internal:9092", true, "", "reserved"},
		{"2130706433:9092", true, "", "only one label"},
		{"0x7f.1:9092", true, "", "number"},
		{"[::ffff:127.0.0.1]:9092", true, "", "IPv4"},
		{"broker.example.com.:9092", true, "", "dot"},
		{"broker.example.com:22", true, "", "port 22"},
		{"broker.example.com:0", true, "", "port"},
		{"broker.example.com:70000", true, "", "port"},
		{"broker.example.com", true, "", "host:port"},
		{":9092", true, "", "host:port"},
		{"", true, "", "host:port"},
		{"kafka://broker.example.com:9092", true, "", "host:port"},
		{"broker.example.com:9092/orders", true, "", "host:port"},
		{"user@broker.example.com:9092", true, "", "host:port"},
		{"a.example.com:9092,b.example.com:9092", true, "", "host:port"},
		{"bröker.example.com:9092", true, "", "host:port"},
		{"broker.example.com:9092 ", true, "", "host:port"},
		{"%62roker.example.com:9092", true, "", "percent"},
	} {
		got, err := policy.CheckServer("kafka.bootstrap_servers", tt.server, tt.tls)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q, TLS %v: %q, %v", tt.server, tt.tls, got, err)
			continue
		}
		var refused *fault.Error
		if err != nil && (!errors.As(err, &refused) || refused.Fields[0].Name != "kafka.bootstrap_servers" || refused.Fields[0].Code != "server_refused" ||
			!strings.Contains(refused.Fields[0].Detail, tt.says) || strings.Contains(refused.Fields[0].Detail, "URL")) {
			t.Errorf("%q, TLS %v: %+v", tt.server, tt.tls, refused)
		}
	}
}
