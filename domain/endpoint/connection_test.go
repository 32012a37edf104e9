package endpoint_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
)

// connections are a connection of each kind that has one, as the API takes it.
var connections = map[endpoint.Kind]string{
	endpoint.Kafka: `{"bootstrap_servers":["b1.example.com:9092","b2.example.com:9092"],"topic":"orders","tls":true,` +
		`"sasl":{"mechanism":"PLAIN","username":"anna","password":"canary"}}`,
	endpoint.RabbitMQ: `{"url":"amqps://rabbitmq.example.com:5671/shop","exchange":"hooks","routing_key":"shop.{type}","username":"anna","password":"canary"}`,
	endpoint.SQS:      `{"queue_url":"https://sqs.eu-west-1.amazonaws.com/123456789012/hooks","region":"eu-west-1","access_key_id":"AKID","secret_access_key":"canary"}`,
	endpoint.S3: `{"bucket":"acme-events","region":"eu-west-1","endpoint_url":"https://s3.example.com","path_style":true,"key_template":"in/{id}",` +
		`"gzip":true,"access_key_id":"AKID","secret_access_key":"canary"}`,
}

func connected(t *testing.T, k endpoint.Kind, text string) endpoint.Settings {
	t.Helper()
	s := endpoint.Settings{Kind: k}
	if err := s.Patch(map[string]json.RawMessage{string(k): json.RawMessage(text)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// A form that is opened and saved changes nothing, keeps the secret, and never contains it.
func TestAFormOfAConnectionChangesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range endpoint.Kinds() {
		text, is := connections[kind]
		if is != kind.Broker() || is != (len(endpoint.ConnectionFields(kind, endpoint.ToEndpoint)) > 0) {
			t.Errorf("%s: the table, the kinds, and this test differ", kind)
		}
		if !is {
			continue
		}
		s := connected(t, kind, text)
		form := endpoint.ConnectionText(kind, endpoint.ToEndpoint, s.Shown()[string(kind)])
		secrets := 0
		for name, value := range form {
			if strings.Contains(value, "canary") {
				t.Errorf("%s shows the secret", name)
			}
			if endpoint.IsConnectionSecret(name) {
				if secrets++; value != endpoint.Marker {
					t.Errorf("%s does not say that there is one", name)
				}
			}
		}
		if secrets != 1 {
			t.Errorf("%s has %d secrets", kind, secrets)
		}
		again := s.Clone()
		typed := endpoint.ConnectionJSON(kind, endpoint.ToEndpoint, func(name string) string {
			if endpoint.IsConnectionSecret(name) {
				return ""
			}
			return form[name]
		})
		if err := again.Patch(map[string]json.RawMessage{string(kind): typed}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if changed := again.Diff(s); changed != nil {
			t.Errorf("%s: %v changed by %s", kind, changed, typed)
		}
	}
}

func TestEachFieldThatIsShownHasARow(t *testing.T) {
	t.Parallel()
	for kind, text := range connections {
		shown, _ := json.Marshal(connected(t, kind, text).Shown()[string(kind)])
		var fields map[string]any
		if err := json.Unmarshal(shown, &fields); err != nil {
			t.Fatal(err)
		}
		rows := map[string]bool{}
		for _, f := range endpoint.ConnectionFields(kind, endpoint.ToEndpoint) {
			rows[f.Name] = true
			if f.Flag == "" && f.Type != endpoint.Switch || f.Label == "" || endpoint.ConnectionForm(f.API()) != f.Form() {
				t.Errorf("%s has no flag or no label", f.API())
			}
		}
		for name, value := range fields {
			if inner, is := value.(map[string]any); is {
				for part := range inner {
					if !rows[name+"."+part] {
						t.Errorf("%s.%s.%s has no row", kind, name, part)
					}
				}
			} else if !rows[name] {
				t.Errorf("%s.%s has no row", kind, name)
			}
		}
	}
}

func TestWhereAnObjectIs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 23, 5, 6, 7e6, time.FixedZone("", -3600))
	for _, tt := range []struct {
		to   endpoint.S3Connection
		want string
	}{
		{
			endpoint.S3Connection{Region: "eu-west-1", Bucket: "acme", Key: endpoint.S3Key},
			"https://acme.s3.eu-west-1.amazonaws.com/ep_1/2026-11-28/00/20261128T000506.007Z-abc.ndjson",
		},
		{
			endpoint.S3Connection{Region: "cn-north-1", Bucket: "a.b", Key: "y={year}/m={month}/d={day}/{id}", Gzip: true},
			"https://s3.cn-north-1.amazonaws.com.cn/a.b/y%3D2026/m%3D11/d%3D28/20261128T000506.007Z-abc.ndjson.gz",
		},
		{
			endpoint.S3Connection{Server: "http://127.0.0.1:7070", Bucket: "acme", PathStyle: true, Key: "{id}"},
			"http://127.0.0.1:7070/acme/20261128T000506.007Z-abc.ndjson",
		},
	} {
		if got := tt.to.URL(tt.to.Object("ep_1", at, "abc")).String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	b := &endpoint.S3Connection{Key: "a/b-{date}/{id}"}
	if got := b.Probe("ep_1"); got != "a/_posthorn_ep_1.ndjson" {
		t.Errorf("the probe is %s", got)
	}
}

// Settings of batches that are null mean large objects, and an object is always lines.
func TestABucketAlwaysHasBatches(t *testing.T) {
	t.Parallel()
	s := connected(t, endpoint.S3, connections[endpoint.S3])
	if b := s.Batch(); b == nil || b.Events != 1000 || b.Bytes != 8<<20 || b.Wait != time.Minute {
		t.Errorf("got %+v", b)
	}
	s.BatchEvents, s.BatchWait = new(50), new(0)
	if b := s.Batch(); b.Events != 50 || b.Wait != 0 || b.Bytes != 8<<20 {
		t.Errorf("got %+v", b)
	}
	if endpoint.S3.BatchStart() == endpoint.HTTP.BatchStart() {
		t.Error("an object is an array")
	}
	var policy egress.Policy
	if _, wrong := endpoint.CheckBroker(endpoint.S3, s.Connection, policy); len(wrong) != 0 {
		t.Errorf("%v", wrong)
	}
}
