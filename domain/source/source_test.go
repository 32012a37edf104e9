package source_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/source"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func message(body string) source.Message {
	m := source.Message{ID: "m1", Key: "customer-7", Queue: "orders", Partition: 2, Offset: 41, Time: new(now), Headers: map[string]string{"tenant": "a"}}
	m.SetBody([]byte(body))
	return m
}

func TestAMappingMakesAnEventOfAMessage(t *testing.T) {
	t.Parallel()
	for mapping, want := range map[string]string{
		`body`:                        `{"data":{"n":1.50},"type":"order.paid"}`,
		`{"type": "a", "data": body}`: `{"data":{"data":{"n":1.50},"type":"order.paid"},"type":"a"}`,
		`{"type": body.type, "data": body.data, "key": message.key, "occurred_at": message.time}`:               `{"data":{"n":1.50},"key":"customer-7","occurred_at":"2026-01-31T12:00:00Z","type":"order.paid"}`,
		`{"type": message.queue + "." + string(message.partition), "data": message.offset}`:                     `{"data":41,"type":"orders.2"}`,
		`{"type": "a", "data": message.text.size(), "channels": [message.headers.tenant], "key": message.type}`: `{"channels":["a"],"data":39,"key":null,"type":"a"}`,
		`{"type": "a", "data": null, ?"key": body.?none}`:                                                       `{"data":null,"type":"a"}`,
	} {
		m, err := source.Compile(mapping)
		if err != nil {
			t.Errorf("%s: %v", mapping, err)
			continue
		}
		body, e, err := m.Event(message(`{"type":"order.paid","data":{"n":1.50}}`), now)
		if err != nil || string(body) != want || e.Type == "" {
			t.Errorf("%s: %s, %v\nwant %s", mapping, body, err, want)
		}
	}
}

func TestAMessageThatIsNoJSONIsText(t *testing.T) {
	t.Parallel()
	m, err := source.Compile(`{"type": "a", "data": body}`)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`plain`: `"plain"`, `{"a":1} {"b":2}`: `"{\"a\":1} {\"b\":2}"`, ``: `null`, "\xff\xfe": `"//4="`, `7`: `7`, `"x"`: `"x"`, `{"a":`: `"{\"a\":"`,
	} {
		text, _, err := m.Event(message(body), now)
		if err != nil || string(text) != `{"data":`+want+`,"type":"a"}` {
			t.Errorf("%q: %s, %v", body, text, err)
		}
	}
}

func TestAMappingThatCannotWorkIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	for _, mapping := range []string{
		`"a"`, `1`, `body +`, `data`, `[body]`, strings.Repeat("x", source.MaxMapping+1),
		`body.map(a, body.map(b, body.map(c, body.map(d, body.map(e, a+b+c+d+e)))))[0]`,
	} {
		if _, err := source.Compile(mapping); !fault.Is(err, "mapping_invalid") {
			t.Errorf("%.60s: %v", mapping, err)
		}
	}
	for mapping, code := range map[string]string{
		`{"type": body.none, "data": 1}`:    "mapping_failed",
		`{1: 2}`:                            "mapping_failed",
		`{"data": 1}`:                       "type_missing",
		`{"type": "a"}`:                     "data_missing",
		`{"type": "posthorn.x", "data": 1}`: "type_reserved",
		`{"type": "a", "data": 1, "x": 1}`:  "unknown_field",
		`{"type": "a", "data": 1, "key": message.headers.tenant + "\n"}`: "key_malformed",
	} {
		m, err := source.Compile(mapping)
		if err != nil {
			t.Fatal(mapping, err)
		}
		if _, _, err := m.Event(message(`{}`), now); !fault.Is(err, code) {
			t.Errorf("%s: %v, want %s", mapping, err, code)
		}
	}
}

func TestAStoredMessageKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "a", `{"a":1}`, "\xff\x00\x01", "a\x00b", "\u2028<&>"} {
		m := message(body)
		text, large := m.Encode()
		back, err := source.Decode(text)
		if err != nil || large || string(back.Body()) != body || back.ID != "m1" || !back.Time.Equal(now) || back.Headers["tenant"] != "a" {
			t.Errorf("%q: %+v, %v", body, back, err)
		}
	}
	if _, large := message(strings.Repeat("x", 1<<20+1)).Encode(); !large {
		t.Error("a message of more than 1 MiB is mapped")
	}
}

func TestARedeliveredMessageIsRecognized(t *testing.T) {
	t.Parallel()
	of := func(id, body string, again bool) source.Message {
		m := source.Message{ID: id, Redelivered: again}
		m.SetBody([]byte(body))
		return m
	}
	for what, tt := range map[string]struct {
		messages []source.Message
		known    []source.Message
		want     []int
	}{
		"new":                               {[]source.Message{of("a", "1", false), of("b", "1", false)}, nil, []int{0, 1}},
		"a known id":                        {[]source.Message{of("a", "1", false), of("b", "1", false)}, []source.Message{of("a", "1", false)}, []int{1}},
		"an id twice in a batch":            {[]source.Message{of("a", "1", false), of("a", "2", true)}, nil, []int{0}},
		"without an id, the same twice":     {[]source.Message{of("", "1", false), of("", "1", false)}, nil, []int{0, 1}},
		"without an id, again":              {[]source.Message{of("", "1", true)}, []source.Message{of("", "1", false)}, []int{}},
		"without an id, again and unknown":  {[]source.Message{of("", "1", true)}, nil, []int{0}},
		"without an id, the content is new": {[]source.Message{of("", "2", true)}, []source.Message{of("", "1", false)}, []int{0}},
	} {
		fresh, digests := map[string]bool{}, make([][]byte, len(tt.messages))
		for i, m := range tt.messages {
			digests[i], _ = m.Digest()
			fresh[string(digests[i])] = true
		}
		for _, m := range tt.known {
			d, _ := m.Digest()
			delete(fresh, string(d))
		}
		got, _ := json.Marshal(append([]int{}, source.Unseen(tt.messages, digests, fresh)...))
		if want, _ := json.Marshal(tt.want); string(got) != string(want) {
			t.Errorf("%s: %s is taken, want %s", what, got, want)
		}
	}
}

func patched(t *testing.T, s source.Settings, body string) (source.Settings, error) {
	t.Helper()
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &given); err != nil {
		t.Fatal(err)
	}
	if err := s.Patch(given); err != nil {
		return s, err
	}
	return s.Check(egress.Policy{})
}

func TestASourceIsCheckedLikeAnEndpointOfItsKind(t *testing.T) {
	t.Parallel()
	kafka := `"kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"orders"}`
	for body, code := range map[string]string{
		`{"name":"a",` + kafka + `}`:                     "",
		`{"name":"a","start":"newest",` + kafka + `}`:    "",
		`{"name":"",` + kafka + `}`:                      "source_name_malformed",
		`{"name":"a\nb",` + kafka + `}`:                  "source_name_malformed",
		`{"name":"a","start":"yesterday",` + kafka + `}`: "source_start_unknown",
		`{"name":"a","mapping":"body +",` + kafka + `}`:  "mapping_invalid",
		`{"name":"a"}`: "source_connection_missing",
		`{"name":"a","kafka":{"bootstrap_servers":["127.0.0.1:9092"],"topic":"orders"}}`:  "server_refused",
		`{"name":"a","kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"__x"}}`: "kafka_topic_malformed",
		`{"name":"a","sqs":{"queue_url":"https://sqs.eu-west-1.amazonaws.com/1/q"}}`:      "sqs_unwanted",
	} {
		_, err := patched(t, source.Settings{Kind: endpoint.Kafka}, body)
		if code == "" && err != nil || code != "" && !fault.Is(err, code) {
			t.Errorf("%s: %v, want %s", body, err, code)
		}
		if err != nil && strings.Contains(err.Error(), "endpoint") {
			t.Errorf("%s: a source is called an endpoint: %v", body, err)
		}
	}
	rabbit := `{"name":"a","rabbitmq":{"url":"amqps://b.example.com","username":"u","password":"p","queue":"%s"}}`
	s, err := patched(t, source.Settings{Kind: endpoint.RabbitMQ}, strings.Replace(rabbit, "%s", "orders", 1))
	if err != nil || s.Queue() != "orders" || s.URL != "amqps://b.example.com:5671/%2F/orders" || s.Mapping != "body" {
		t.Errorf("%+v, %v", s, err)
	}
	shown, _ := json.Marshal(s.Shown())
	if text := string(shown); !strings.Contains(text, `"queue":"orders"`) || strings.Contains(text, "routing_key") || strings.Contains(text, `"p"`) {
		t.Errorf("it is shown as %s", text)
	}
	if _, err := patched(t, source.Settings{Kind: endpoint.RabbitMQ}, strings.Replace(rabbit, "%s", "", 1)); !fault.Is(err, "source_queue_malformed") {
		t.Error(err)
	}
	// A stored password goes to no other broker.
	if _, err := patched(t, s, `{"rabbitmq":{"url":"amqps://other.example.com"}}`); !fault.Is(err, "rabbitmq_password_needed") {
		t.Error(err)
	}
	if kept, err := patched(t, s, `{"rabbitmq":{"queue":"other"}}`); err != nil || !kept.Moved(s) {
		t.Errorf("%+v, %v", kept, err)
	}
	if _, err := patched(t, source.Settings{Kind: "http"}, `{"name":"a"}`); !fault.Is(err, "source_kind_unknown") {
		t.Error(err)
	}
}

func TestAFullSourceTakesNoMore(t *testing.T) {
	t.Parallel()
	stored, rejected := source.Counted()
	for _, tt := range []struct {
		held   source.Held
		full   bool
		reason bool
	}{
		{source.Held{}, false, false},
		{source.Held{Stored: int64(stored) - 1, Rejected: int64(rejected) - 1}, false, false},
		{source.Held{Stored: int64(stored)}, true, false},
		{source.Held{StoredBytes: 1 << 30}, true, false},
		{source.Held{Rejected: int64(rejected)}, true, true},
		{source.Held{RejectedBytes: 1 << 40}, true, true},
	} {
		if full, reason := tt.held.Full(); full != tt.full || (reason != "") != tt.reason {
			t.Errorf("%+v: %t %q", tt.held, full, reason)
		}
	}
}

func TestATenantIsToldOfASourceThatFailsOrIsBehindForLong(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]source.State{
		"failing": {FailingSince: now.Add(-source.FailingTold)},
		"behind":  {BehindSince: now.Add(-source.BehindTold)},
	} {
		if got := s.Told(now); got != want {
			t.Errorf("%+v: %q", s, got)
		}
		if got := s.Told(now.Add(-time.Second)); got != "" {
			t.Errorf("too early: %q", got)
		}
		if s.PausedAt = now; s.Told(now) != "" {
			t.Error("a paused source is told of")
		}
	}
	if a, b := source.Backoff(1), source.Backoff(100); a != time.Second || b != time.Minute {
		t.Errorf("waits %s and %s", a, b)
	}
}
