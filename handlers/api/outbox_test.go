package api_test

import (
	"net/http"
	"testing"
	"time"

	"posthorn/domain/id"
)

func TestWhatTheRelayRejectedIsListedTriedAgainAndDiscarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	var rejected []string
	for range 3 {
		eventID := id.New(time.Now(), [10]byte{byte(len(rejected))})
		w.SQL(`INSERT INTO outbox_rejected (id, tenant_id, type, data, idempotency_key, code, detail) VALUES ($1, $2, 'order.placed', '{"n":1}', 'k', 'unknown_event_type', 'Add it first.')`,
			eventID.String(), acme.uuid.String())
		rejected = append(rejected, id.Event.Format(eventID))
	}
	all := w.do("GET", "/api/v1/outbox/rejected?order=asc", acme.key, nil).want(http.StatusOK)
	if found := ids(all); len(found) != 3 || found[0] != rejected[0] || all.get("next_cursor") != nil {
		t.Fatalf("%s", all.Body)
	}
	first := w.do("GET", "/api/v1/outbox/rejected?limit=2", acme.key, nil).want(http.StatusOK)
	if rest := ids(w.do("GET", "/api/v1/outbox/rejected?limit=2&cursor="+first.text("next_cursor"), acme.key, nil).want(http.StatusOK)); len(rest) != 1 || rest[0] != rejected[0] {
		t.Errorf("the second page: %v", rest)
	}
	for _, one := range rejected {
		w.do("POST", "/api/v1/outbox/rejected/"+one+"/retry", other.key, nil).problem(http.StatusNotFound, "not_found")
		w.do("DELETE", "/api/v1/outbox/rejected/"+one, other.key, nil).problem(http.StatusNotFound, "not_found")
	}
	w.do("POST", "/api/v1/outbox/rejected/"+rejected[0]+"/retry", acme.key, nil).want(http.StatusAccepted)
	w.do("POST", "/api/v1/outbox/rejected/"+rejected[0]+"/retry", acme.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("DELETE", "/api/v1/outbox/rejected/"+rejected[1], acme.key, nil).want(http.StatusNoContent)
	if left := ids(w.do("GET", "/api/v1/outbox/rejected", acme.key, nil).want(http.StatusOK)); len(left) != 1 || left[0] != rejected[2] {
		t.Errorf("left are %v", left)
	}
	if n := one[int](w, "SELECT count(*)::int FROM outbox WHERE type = 'order.placed' AND idempotency_key = 'k' AND convert_from(data, 'UTF8') = '{\"n\":1}'"); n != 1 {
		t.Errorf("%d wait for the relay", n)
	}
	for action, want := range map[string]int{"outbox.retry": 1, "outbox.discard": 1} {
		if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = $1", action); n != want {
			t.Errorf("%s is audited %d times", action, n)
		}
	}
}
