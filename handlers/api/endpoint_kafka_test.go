package api_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"posthorn/domain/id"
)

func someTopic(more map[string]any) map[string]any {
	k := map[string]any{
		"bootstrap_servers": []string{"B1.example.com:9092"},
		"topic":             "orders",
		"sasl":              map[string]any{"mechanism": "SCRAM-SHA-512", "username": "posthorn", "password": "canary-password"},
	}
	for name, value := range more {
		k[name] = value
	}
	return k
}

func TestATopicIsAnEndpointWhosePasswordNobodySees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	made := w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"kind": "kafka", "kafka": someTopic(nil), "ordering": "key"}).want(http.StatusCreated)
	ep := made.text("id")
	read := w.do("GET", "/api/v1/endpoints/"+ep, tn.key, nil).want(http.StatusOK)
	list := w.do("GET", "/api/v1/endpoints", tn.key, nil).want(http.StatusOK)
	for _, a := range []*answer{made, read} {
		if a.text("kind") != "kafka" || a.text("url") != "kafka://b1.example.com:9092/orders" || a.text("kafka.topic") != "orders" || a.get("kafka.tls") != true ||
			a.text("kafka.sasl.username") != "posthorn" || a.get("kafka.sasl.password") != nil || a.text("verification") != "simple" || a.text("status") != "unverified" {
			t.Errorf("got %s", a.Body)
		}
	}
	if !strings.Contains(string(list.Body), `"url":"kafka://b1.example.com:9092/orders"`) {
		t.Errorf("the list: %s", list.Body)
	}
	for _, a := range []*answer{made, read, list} {
		if strings.Contains(string(a.Body), "canary-password") {
			t.Errorf("shows the password: %s", a.Body)
		}
	}
	if n := one[int](w, "SELECT count(*)::int FROM endpoints WHERE id = $1 AND kind = 'kafka' AND connection IS NOT NULL AND position('canary'::bytea IN connection) = 0", w.uuid(id.Endpoint, ep)); n != 1 {
		t.Error("the connection is not sealed")
	}
	w.do("DELETE", "/api/v1/endpoints/"+ep, tn.key, nil).want(http.StatusNoContent)
	if n := one[int](w, "SELECT count(*)::int FROM endpoints WHERE id = $1 AND connection IS NULL", w.uuid(id.Endpoint, ep)); n != 1 {
		t.Error("a deleted endpoint keeps its password")
	}
}

func TestTheExampleOfTheKafkaPageMakesAnEndpoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "\n```json\n")
	example, _, _ = strings.Cut(example, "```")
	w := newWorld(t)
	if a := w.do("POST", "/api/v1/endpoints", w.tenant("a").key, example).want(http.StatusCreated); a.text("url") != "kafka://broker.example.com:9092/orders" {
		t.Errorf("got %s", a.Body)
	}
}

func TestATopicNamesTheAuthorityOfItsBrokers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../domain/endpoint/testdata/authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	tn, authority := w.tenant("a"), string(text)
	topic := func(more map[string]any) map[string]any {
		return map[string]any{"kind": "kafka", "kafka": someTopic(more)}
	}
	ep := w.do("POST", "/api/v1/endpoints", tn.key, topic(map[string]any{"ca_certificate": "my own:\r\n" + authority})).want(http.StatusCreated).text("id")
	path := "/api/v1/endpoints/" + ep
	if a := w.do("GET", path, tn.key, nil).want(http.StatusOK); a.text("kafka.ca_certificate") != authority {
		t.Errorf("got %s", a.Body)
	}
	change := func(kafka map[string]any) *answer {
		return w.do("PATCH", path, tn.key, map[string]any{"kafka": kafka})
	}
	if a := change(map[string]any{"topic": "refunds"}).want(http.StatusOK); a.text("kafka.ca_certificate") != authority {
		t.Errorf("another topic: %s", a.Body)
	}
	// A change that would send the stored password elsewhere is rejected.
	change(map[string]any{"ca_certificate": nil}).problem(http.StatusBadRequest, "kafka_password_needed", "kafka.sasl.password")
	password := map[string]any{"mechanism": "PLAIN", "username": "a", "password": "b"}
	if a := change(map[string]any{"ca_certificate": nil, "sasl": password}).want(http.StatusOK); a.get("kafka.ca_certificate") != nil {
		t.Errorf("without: %s", a.Body)
	}
	for _, wrong := range []map[string]any{{"ca_certificate": "x"}, {"ca_certificate": authority[:100]}, {"ca_certificate": strings.Repeat("a", 16385)}} {
		w.do("POST", "/api/v1/endpoints", tn.key, topic(wrong)).problem(http.StatusBadRequest, "ca_certificate_refused", "kafka.ca_certificate")
	}
}

func TestATopicIsChangedInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"kind": "kafka", "kafka": someTopic(nil)}).want(http.StatusCreated).text("id")
	w.setStatus(ep, "active")
	sealed := func() []byte {
		return one[[]byte](w, "SELECT connection FROM endpoints WHERE id = $1", w.uuid(id.Endpoint, ep))
	}
	patch := func(body map[string]any) *answer { return w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, body) }
	was := sealed()
	if a := patch(map[string]any{"description": "x", "url": "kafka://b1.example.com:9092/orders"}).want(http.StatusOK); a.text("status") != "active" || len(sealed()) != len(was) {
		t.Errorf("another description: %s", a.Body)
	}
	// The stored password stays while the destination stays.
	if a := patch(map[string]any{"kafka": map[string]any{"sasl": map[string]any{"mechanism": "SCRAM-SHA-512", "username": "posthorn", "password": "***"}}}).want(http.StatusOK); a.text("status") != "active" {
		t.Errorf("the same again: %s", a.Body)
	}
	if a := patch(map[string]any{"kafka": map[string]any{"topic": "refunds"}}).want(http.StatusOK); a.text("status") != "unverified" || a.text("url") != "kafka://b1.example.com:9092/refunds" ||
		a.text("kafka.sasl.username") != "posthorn" {
		t.Errorf("another topic: %s", a.Body)
	}
	for what, body := range map[string]map[string]any{
		"other servers":     {"bootstrap_servers": []string{"evil.example.com:9092"}},
		"another user":      {"sasl": map[string]any{"mechanism": "SCRAM-SHA-512", "username": "other"}},
		"another mechanism": {"sasl": map[string]any{"mechanism": "PLAIN", "username": "posthorn"}},
	} {
		if a := patch(map[string]any{"kafka": body}).want(http.StatusBadRequest); a.text("code") != "kafka_password_needed" {
			t.Errorf("%s: %s", what, a.Body)
		}
	}
	given := map[string]any{"mechanism": "PLAIN", "username": "other", "password": "new"}
	if a := patch(map[string]any{"kafka": map[string]any{"bootstrap_servers": []string{"b2.example.com:9092"}, "sasl": given}}).want(http.StatusOK); a.text("kafka.sasl.username") != "other" {
		t.Errorf("with a password: %s", a.Body)
	}
	if a := patch(map[string]any{"kafka": map[string]any{"sasl": nil}}).want(http.StatusOK); a.get("kafka.sasl") != nil {
		t.Errorf("without SASL: %s", a.Body)
	}
}

func TestAnInvalidTopicIsRejectedByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	for _, tt := range []struct {
		body        map[string]any
		code, field string
	}{
		{map[string]any{"kind": "pigeon", "url": hook}, "kind_unknown", "kind"},
		{map[string]any{"kind": "kafka"}, "kafka_missing", "kafka"},
		{map[string]any{"kind": "kafka", "url": hook, "kafka": someTopic(nil)}, "endpoint_url_refused", "url"},
		{map[string]any{"kind": "kafka", "verification": "challenge", "kafka": someTopic(nil)}, "verification_unknown", "verification"},
		{map[string]any{"url": hook, "kafka": someTopic(nil)}, "kafka_unwanted", "kafka"},
		{map[string]any{}, "endpoint_url_refused", "url"},
		{map[string]any{"kind": "kafka", "kafka": someTopic(map[string]any{"bootstrap_servers": []string{"10.0.0.1:9092"}})}, "server_refused", "kafka.bootstrap_servers"},
		{map[string]any{"kind": "kafka", "kafka": someTopic(map[string]any{"tls": false})}, "server_refused", "kafka.bootstrap_servers"},
		{map[string]any{"kind": "kafka", "kafka": someTopic(map[string]any{"bootstrap_servers": []string{}})}, "kafka_servers_count", "kafka.bootstrap_servers"},
		{map[string]any{"kind": "kafka", "kafka": someTopic(map[string]any{"topic": "a/b"})}, "kafka_topic_malformed", "kafka.topic"},
		{map[string]any{"kind": "kafka", "kafka": someTopic(map[string]any{"sasl": map[string]any{"mechanism": "GSSAPI", "username": "a", "password": "b"}})}, "kafka_mechanism_unknown", "kafka.sasl.mechanism"},
		{map[string]any{"kind": "kafka", "kafka": someTopic(map[string]any{"sasl": map[string]any{"mechanism": "PLAIN", "username": "a"}})}, "kafka_credentials_malformed", "kafka.sasl.password"},
	} {
		a := w.do("POST", "/api/v1/endpoints", tn.key, tt.body).want(http.StatusBadRequest)
		var fields []string
		for _, e := range a.get("errors").([]any) {
			fields = append(fields, e.(map[string]any)["field"].(string))
		}
		if a.text("code") != tt.code || !slices.Equal(fields, []string{tt.field}) || strings.Contains(string(a.Body), "canary-password") {
			t.Errorf("%v: %s", tt.body, a.Body)
		}
	}
	ep := w.endpoint(tn, nil).text("id")
	if a := w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, map[string]any{"kafka": map[string]any{"topic": "orders"}}).want(http.StatusBadRequest); a.text("code") != "kafka_unwanted" {
		t.Errorf("got %s", a.Body)
	}
}
