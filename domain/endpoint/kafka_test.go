package endpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
)

func topic() (endpoint.Settings, *endpoint.KafkaConnection) {
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	k := &endpoint.KafkaConnection{
		Servers: []string{"B1.example.com:9092", "b2.example.com:9092"},
		Topic:   "orders",
		TLS:     true,
		SASL:    &endpoint.SASL{Mechanism: endpoint.SASLSHA512, Username: "posthorn", Password: "secret-1"},
	}
	s.Kind, s.Connection = endpoint.Kafka, k
	return s, k
}

func TestATopicIsCheckedAndShownAsAURL(t *testing.T) {
	t.Parallel()
	s, _ := topic()
	kept, err := s.Check(egress.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	k := kept.Connection.(*endpoint.KafkaConnection)
	if kept.URL != "kafka://b1.example.com:9092/orders" || egress.Mask(kept.URL) != kept.URL || k.Servers[0] != "b1.example.com:9092" || kept.Verification != "simple" {
		t.Errorf("%+v %+v", kept, k)
	}
	for name, c := range map[string]struct {
		change func(*endpoint.KafkaConnection)
		field  string
	}{
		"no servers":            {func(k *endpoint.KafkaConnection) { k.Servers = nil }, "kafka.bootstrap_servers"},
		"eleven servers":        {func(k *endpoint.KafkaConnection) { k.Servers = servers(11) }, "kafka.bootstrap_servers"},
		"a private server":      {func(k *endpoint.KafkaConnection) { k.Servers[1] = "10.0.0.1:9092" }, "kafka.bootstrap_servers"},
		"no TLS":                {func(k *endpoint.KafkaConnection) { k.TLS = false }, "kafka.bootstrap_servers"},
		"no topic":              {func(k *endpoint.KafkaConnection) { k.Topic = "" }, "kafka.topic"},
		"a topic of dots":       {func(k *endpoint.KafkaConnection) { k.Topic = ".." }, "kafka.topic"},
		"a topic with a slash":  {func(k *endpoint.KafkaConnection) { k.Topic = "a/b" }, "kafka.topic"},
		"a long topic":          {func(k *endpoint.KafkaConnection) { k.Topic = strings.Repeat("a", 250) }, "kafka.topic"},
		"Kafka's own topic":     {func(k *endpoint.KafkaConnection) { k.Topic = "__consumer_offsets" }, "kafka.topic"},
		"another mechanism":     {func(k *endpoint.KafkaConnection) { k.SASL.Mechanism = "GSSAPI" }, "kafka.sasl.mechanism"},
		"no user name":          {func(k *endpoint.KafkaConnection) { k.SASL.Username = "" }, "kafka.sasl.username"},
		"no password":           {func(k *endpoint.KafkaConnection) { k.SASL.Password = "" }, "kafka.sasl.password"},
		"a NUL in the password": {func(k *endpoint.KafkaConnection) { k.SASL.Password = "a\x00b" }, "kafka.sasl.password"},
		"a long password":       {func(k *endpoint.KafkaConnection) { k.SASL.Password = strings.Repeat("a", 1025) }, "kafka.sasl.password"},
	} {
		s, k := topic()
		c.change(k)
		_, err := s.Check(egress.Policy{})
		var refused *fault.Error
		if !errors.As(err, &refused) || len(refused.Fields) != 1 || refused.Fields[0].Name != c.field ||
			strings.Contains(refused.Fields[0].Detail, "secret-1") {
			t.Errorf("%s: %+v", name, refused)
		}
	}
	s.Connection = nil
	if _, err := s.Check(egress.Policy{}); err == nil {
		t.Error("a topic without a connection is accepted")
	}
}

func servers(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("b%d.example.com:9092", i))
	}
	return list
}

func TestAStoredPasswordGoesNowhereElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*endpoint.KafkaConnection)
		kept   bool
	}{
		"nothing else changes": {func(*endpoint.KafkaConnection) {}, true},
		"another topic":        {func(k *endpoint.KafkaConnection) { k.Topic = "refunds" }, true},
		"shown as a marker":    {func(k *endpoint.KafkaConnection) { k.SASL.Password = endpoint.Marker }, true},
		"another server":       {func(k *endpoint.KafkaConnection) { k.Servers[1] = "evil.example.com:9092" }, false},
		"one server more":      {func(k *endpoint.KafkaConnection) { k.Servers = append(k.Servers, "evil.example.com:9092") }, false},
		"no TLS":               {func(k *endpoint.KafkaConnection) { k.TLS = false }, false},
		"the same authority":   {func(k *endpoint.KafkaConnection) { k.CA = " \r\n" }, true},
		"another authority":    {func(k *endpoint.KafkaConnection) { k.CA = authority }, false},
		"PLAIN":                {func(k *endpoint.KafkaConnection) { k.SASL.Mechanism = endpoint.SASLPlain }, false},
		"another user":         {func(k *endpoint.KafkaConnection) { k.SASL.Username = "other" }, false},
	} {
		_, before := topic()
		after := before.Clone().(*endpoint.KafkaConnection)
		after.SASL.Password = ""
		c.change(after)
		err := before.Keep(after)
		if (err == nil) != c.kept || (after.SASL.Password == "secret-1") != c.kept {
			t.Errorf("%s: %v, password %q", name, err, after.SASL.Password)
		}
	}
	_, before := topic()
	given := before.Clone().(*endpoint.KafkaConnection)
	given.Servers, given.SASL.Password = servers(1), "secret-2"
	if err := before.Keep(given); err != nil || given.SASL.Password != "secret-2" {
		t.Errorf("a password that is given anew: %v", err)
	}
}

func TestAConnectionPrintsNoPassword(t *testing.T) {
	t.Parallel()
	s, k := topic()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb+verb+verb, s, k, *k.SASL); strings.Contains(text, "secret-1") {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

func TestAnotherClusterOrTopicIsAnotherPlace(t *testing.T) {
	t.Parallel()
	s, _ := topic()
	for name, c := range map[string]struct {
		change func(*endpoint.KafkaConnection)
		moved  bool
	}{
		"the password":      {func(k *endpoint.KafkaConnection) { k.SASL.Password = "secret-2" }, false},
		"the topic":         {func(k *endpoint.KafkaConnection) { k.Topic = "refunds" }, true},
		"the second server": {func(k *endpoint.KafkaConnection) { k.Servers[1] = "b3.example.com:9092" }, true},
	} {
		to := s.Clone()
		c.change(to.Connection.(*endpoint.KafkaConnection))
		if to.Moved(s) != c.moved || len(to.Diff(s)) != 1 || to.Diff(s)[0] != "kafka" {
			t.Errorf("%s: moved %v, differs in %v", name, to.Moved(s), to.Diff(s))
		}
	}
}
