package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/source"
)

func sourceForm() url.Values {
	return url.Values{
		"name": {"orders"}, "kind": {"kafka"}, "kafka_bootstrap_servers": {"b.example.com:9092"}, "kafka_topic": {"orders"}, "kafka_tls": {"on"},
		"kafka_sasl_mechanism": {"PLAIN"}, "kafka_sasl_username": {"anna"}, "kafka_sasl_password": {"secret-1"}, "start": {"oldest"},
		"mapping": {`{"type": "order." + body.status, "data": body}`},
	}
}

func TestASourceIsManagedOnItsPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	owner, path := tn.of[access.Owner], tn.path+"/sources"
	owner.get(path).want(200, "No sources yet")
	owner.get(path+"/new").want(200, "Create source", "Bootstrap servers", "Queue URL").keep("source-new")
	wrong := sourceForm()
	wrong.Set("mapping", "body +")
	owner.post(path, wrong).want(http.StatusBadRequest, "Invalid expression", "b.example.com:9092").lacks("secret-1")
	at := owner.post(path, sourceForm()).to(path + "/src_")
	owner.get(at).want(200, "kafka://b.example.com:9092/orders", "Messages waiting").lacks("secret-1")
	owner.get(path).want(200, "orders", "Kafka topic", "active").keep("sources")
	owner.post(path, sourceForm()).want(http.StatusConflict, "has a source of this name")

	// Trying a mapping changes nothing.
	owner.post(at+"/mapping/try", url.Values{"mapping": {`{"type": "a", "data": message.key}`}, "sample": {`{"text": "{}", "key": "k7"}`}}).want(200, "k7", "Nothing was stored").keep("source-tried")
	owner.post(at+"/mapping/try", url.Values{"mapping": {`{"type": body.none, "data": 1}`}, "sample": {`{"text": "{}"}`}}).want(200, "No event")
	owner.post(at+"/mapping/try", url.Values{"mapping": {`body`}, "sample": {`{`}}).want(http.StatusBadRequest, "A sample is JSON")
	owner.get(at).want(200).lacks("body.none")
	owner.next(at+"/settings", url.Values{"mapping": {`{"type": "note", "data": body}`}}).want(200, "Saved.", "note")
	if n := one[int](w, "SELECT count(*) FROM sources WHERE mapping LIKE '%note%' AND url = 'kafka://b.example.com:9092/orders'"); n != 1 {
		t.Error("the mapping alone was not saved")
	}
	owner.post(at+"/settings", url.Values{"kafka_bootstrap_servers": {"evil.example.com:9092"}, "kafka_topic": {"orders"}, "kafka_tls": {"on"}, "kafka_sasl_mechanism": {"PLAIN"}, "kafka_sasl_username": {"anna"}}).
		want(http.StatusBadRequest, "Send the password again")
	owner.next(at+"/pause", nil).want(200, "Paused.", "Resume")
	owner.next(at+"/resume", nil).want(200, "Resumed.", "Pause")

	sourceID, err := id.Source.Parse(strings.TrimPrefix(at, path+"/"))
	if err != nil {
		t.Fatal(err)
	}
	rejected := []id.UUID{db.NewID(), db.NewID()}
	for _, one := range rejected {
		m := source.Message{Key: "poison"}
		m.SetBody([]byte("plain text"))
		text, _ := m.Encode()
		w.SQL("INSERT INTO outbox_rejected (id, tenant_id, source_id, type, data, code, detail) VALUES ($1, $2, $3, '', $4, 'not_object', 'It is no object.')",
			one.String(), tn.id.String(), sourceID.String(), text)
	}
	owner.get(at).want(200, "Rejected messages", "It is no object.").keep("source")
	owner.get(at+"?rejected="+id.Event.Format(rejected[0])).want(200, "plain text", "poison")
	owner.next(at+"/rejected/"+id.Event.Format(rejected[0])+"/retry", nil).want(200, "It is mapped again.")
	owner.next(at+"/rejected/"+id.Event.Format(rejected[1])+"/discard", nil).want(200, "Discarded the message.").lacks("Rejected messages")
	if n := one[int](w, "SELECT count(*) FROM outbox WHERE source_id = $1", sourceID.String()); n != 1 {
		t.Errorf("%d messages are retried, want 1", n)
	}
	tn.of[access.Viewer].get(path).want(http.StatusForbidden)
	tn.of[access.Viewer].post(at+"/pause", nil).want(http.StatusForbidden)
	owner.next(at+"/delete", nil).want(200, "Deleted the source.", "No sources yet")
	owner.get(at).want(http.StatusNotFound)
}
