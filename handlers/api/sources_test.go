package api_test

import (
	"net/http"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/source"
)

const kafkaSource = `{"name":"orders","kind":"kafka","kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"orders","sasl":{"mechanism":"PLAIN","username":"anna","password":"secret-1"}}}`

func TestASourceIsCreatedChangedPausedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	made := w.do("POST", "/api/v1/sources", acme.key, kafkaSource).want(http.StatusCreated)
	path := "/api/v1/sources/" + made.text("id")
	if made.text("status") != "active" || made.text("mapping") != "body" || made.text("start") != "oldest" || made.text("url") != "kafka://b.example.com:9092/orders" ||
		made.get("waiting") != nil || made.get("rabbitmq") != nil {
		t.Errorf("%s", made.Body)
	}
	if strings.Contains(string(made.Body), "secret-1") {
		t.Error("a password is shown")
	}
	if n := one[int](w, "SELECT count(*)::int FROM sources WHERE position('secret-1'::bytea IN connection) > 0"); n != 0 {
		t.Error("a password is stored as it is")
	}
	w.do("POST", "/api/v1/sources", acme.key, kafkaSource).problem(http.StatusConflict, "source_name_taken")
	w.do("POST", "/api/v1/sources", other.key, kafkaSource).want(http.StatusCreated)
	// Another server would get the password.
	w.do("PATCH", path, acme.key, `{"kafka":{"bootstrap_servers":["evil.example.com:9092"]}}`).problem(http.StatusBadRequest, "kafka_password_needed", "kafka.sasl.password")
	w.do("PATCH", path, acme.key, `{"mapping":"body +"}`).problem(http.StatusBadRequest, "mapping_invalid", "mapping")
	changed := w.do("PATCH", path, acme.key, `{"name":"all orders","mapping":"{\"type\": \"order\", \"data\": body}","kafka":{"topic":"all"}}`).want(http.StatusOK)
	if changed.text("name") != "all orders" || changed.text("url") != "kafka://b.example.com:9092/all" {
		t.Errorf("%s", changed.Body)
	}
	if status := w.do("POST", path+"/pause", acme.key, nil).want(http.StatusOK).text("status"); status != "paused" {
		t.Errorf("paused, it is %s", status)
	}
	w.do("POST", path+"/pause", acme.key, nil).want(http.StatusOK)
	if status := w.do("POST", path+"/resume", acme.key, nil).want(http.StatusOK).text("status"); status != "active" {
		t.Errorf("resumed, it is %s", status)
	}
	for _, verb := range []string{"GET", "DELETE"} {
		w.do(verb, path, other.key, nil).want(http.StatusNotFound)
	}
	w.do("DELETE", path, w.scoped(acme, access.WebhooksWrite, access.EventsRead), nil).problem(http.StatusForbidden, "scope_missing")
	if n := len(ids(w.do("GET", "/api/v1/sources", acme.key, nil).want(http.StatusOK))); n != 1 {
		t.Errorf("%d sources, want 1", n)
	}
	w.do("DELETE", path, acme.key, nil).want(http.StatusNoContent)
	w.do("GET", path, acme.key, nil).want(http.StatusNotFound)
	for _, action := range []string{"source.create", "source.update", "source.pause", "source.resume", "source.delete"} {
		if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = $1 AND tenant_id = $2", action, acme.uuid.String()); n != 1 {
			t.Errorf("%s is in the audit log %d times", action, n)
		}
	}
}

func TestASourceOfEachKindIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	w.do("POST", "/api/v1/sources", acme.key, `{"name":"r","kind":"rabbitmq","rabbitmq":{"url":"amqps://b.example.com","queue":"orders","username":"anna","password":"p"}}`).want(http.StatusCreated)
	w.do("POST", "/api/v1/sources", acme.key, `{"name":"s","kind":"sqs","sqs":{"queue_url":"https://sqs.eu-west-1.amazonaws.com/123456789012/orders","access_key_id":"a","secret_access_key":"b"}}`).
		want(http.StatusCreated)
	for body, code := range map[string]string{
		`{"name":"a","kind":"nats"}`:  "source_kind_unknown",
		`{"name":"a","kind":"kafka"}`: "source_connection_missing",
		`{"name":"a","kind":"sqs","kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"a"}}`:                                                           "kafka_unwanted",
		`{"name":"a","kind":"kafka","kafka":{"bootstrap_servers":["10.0.0.1:9092"],"topic":"a"}}`:                                                              "server_refused",
		`{"name":"a","kind":"rabbitmq","rabbitmq":{"url":"amqps://10.0.0.1","queue":"q","username":"u","password":"p"}}`:                                       "server_refused",
		`{"name":"a","kind":"sqs","sqs":{"queue_url":"https://169.254.169.254/1/q","region":"eu-west-1","access_key_id":"a","secret_access_key":"b"}}`:         "endpoint_url_refused",
		`{"name":"a","kind":"sqs","start":"oldest","sqs":{"queue_url":"https://sqs.eu-west-1.amazonaws.com/1/q","access_key_id":"a","secret_access_key":"b"}}`: "source_start_unknown",
	} {
		if got := w.do("POST", "/api/v1/sources", acme.key, body).want(http.StatusBadRequest).text("code"); got != code {
			t.Errorf("%s: %s, want %s", body, got, code)
		}
	}
	for i := range source.MaxSources - 2 {
		w.do("POST", "/api/v1/sources", acme.key, strings.Replace(kafkaSource, "orders", strings.Repeat("x", i+1), 1)).want(http.StatusCreated)
	}
	w.do("POST", "/api/v1/sources", acme.key, kafkaSource).problem(http.StatusConflict, "sources_limit")
}

func TestAMappingIsTriedOnAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	sourceID := w.do("POST", "/api/v1/sources", acme.key, kafkaSource).want(http.StatusCreated).text("id")
	path := "/api/v1/sources/" + sourceID + "/test"
	try := func(body any) (event, problem any) {
		t.Helper()
		a := w.do("POST", path, acme.key, body).want(http.StatusOK)
		return a.get("event"), a.get("problem")
	}
	event, problem := try(`{"message":{"text":"{\"type\":\"order.paid\",\"data\":{\"n\":1}}","key":"k"}}`)
	if e, ok := event.(map[string]any); !ok || e["type"] != "order.paid" || problem != nil {
		t.Errorf("%v, %v", event, problem)
	}
	event, problem = try(`{"message":{"text":"{}"},"mapping":"{\"type\": body.kind, \"data\": 1}"}`)
	if p, ok := problem.(map[string]any); !ok || p["code"] != "mapping_failed" || event != nil {
		t.Errorf("%v, %v", event, problem)
	}
	w.do("POST", path, acme.key, `{"message":{"text":"{}"},"mapping":"body +"}`).problem(http.StatusBadRequest, "mapping_invalid", "mapping")
	w.do("POST", path, acme.key, `{"message":{"base64":"%"}}`).want(http.StatusBadRequest)
	w.do("POST", path, w.scoped(acme, access.EventsWrite), `{"message":{}}`).problem(http.StatusForbidden, "scope_missing")

	// A rejected message is shown and tried with a better mapping, then retried.
	rejected := db.NewID()
	m := source.Message{Key: "k7"}
	m.SetBody([]byte("plain"))
	text, _ := m.Encode()
	w.SQL("INSERT INTO outbox_rejected (id, tenant_id, source_id, type, data, code, detail) VALUES ($1, $2, $3, '', $4, 'not_object', 'x')",
		rejected.String(), acme.uuid.String(), w.uuid(id.Source, sourceID), text)
	named := `{"rejected_id":"` + id.Event.Format(rejected) + `","mapping":"{\"type\": \"note\", \"key\": message.key, \"data\": body}"}`
	event, problem = try(named)
	if e, ok := event.(map[string]any); !ok || e["key"] != "k7" || e["data"] != "plain" || problem != nil {
		t.Errorf("%v, %v", event, problem)
	}
	w.do("POST", path, acme.key, `{"rejected_id":"evt_01jd0000000000000000000000"}`).want(http.StatusNotFound)
	w.do("POST", path, acme.key, `{"rejected_id":"evt_01jd0000000000000000000000","message":{}}`).problem(http.StatusBadRequest, "source_sample_twice", "rejected_id")
	list := w.do("GET", "/api/v1/outbox/rejected?source_id="+sourceID, acme.key, nil).want(http.StatusOK)
	if got := ids(list); len(got) != 1 || !strings.Contains(string(list.Body), `"source_id":"`+sourceID+`"`) {
		t.Errorf("%s", list.Body)
	}
	if got := ids(w.do("GET", "/api/v1/outbox/rejected?source_id="+id.Source.Format(db.NewID()), acme.key, nil).want(http.StatusOK)); len(got) != 0 {
		t.Errorf("another source has %v", got)
	}
	w.do("GET", "/api/v1/outbox/rejected?source_id=x", acme.key, nil).problem(http.StatusBadRequest, "id_malformed", "source_id")
	w.do("POST", "/api/v1/outbox/rejected/"+id.Event.Format(rejected)+"/retry", acme.key, nil).want(http.StatusAccepted)
	if n := one[int](w, "SELECT count(*)::int FROM outbox WHERE source_id = $1", w.uuid(id.Source, sourceID)); n != 1 {
		t.Errorf("%d messages are back in the outbox, want 1", n)
	}
}
