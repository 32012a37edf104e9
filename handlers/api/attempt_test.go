package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// TestAnAttemptIsReadWithItsRequest checks the request of an attempt: secrets are masked, and only keys that read
// events see the body.
func TestAnAttemptIsReadWithItsRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("a"), w.tenant("b")
	ep := w.active(tn, map[string]any{"custom_headers": map[string]string{"Authorization": "Bearer very-secret", "X-Team": "billing"}})
	event := w.emit(tn, map[string]any{"data": map[string]any{"amount": 1.50, "text": "<b>"}})
	dlv := ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", tn.key, nil).want(200))[0]
	w.attempt(dlv, ep, "a")
	att := w.outer(id.Attempt, one[string](w, "SELECT id::text FROM attempts WHERE delivery_id = $1", w.uuid(id.Delivery, dlv)))
	path := "/api/v1/deliveries/" + dlv + "/attempts/" + att

	a := w.do("GET", path, tn.key, nil).want(http.StatusOK)
	request := a.get("request").(map[string]any)
	headers := map[string]string{}
	for _, h := range request["headers"].([]any) {
		one := h.(map[string]any)
		headers[one["name"].(string)] = one["value"].(string)
	}
	stamp := one[int64](w, "SELECT floor(extract(epoch FROM created_at))::bigint FROM attempts WHERE delivery_id = $1", w.uuid(id.Delivery, dlv))
	for name, want := range map[string]string{
		"webhook-id":        event,
		"webhook-signature": "v1,x",
		"webhook-timestamp": fmt.Sprint(stamp),
		"X-Team":            "billing",
		"Authorization":     "***",
		"Content-Type":      "application/json",
	} {
		if headers[name] != want {
			t.Errorf("%s is %q, want %q in %v", name, headers[name], want, headers)
		}
	}
	if at := one[string](w, `SELECT to_char(date_trunc('second', created_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS".000Z"') FROM attempts WHERE delivery_id = $1`,
		w.uuid(id.Delivery, dlv)); request["timestamp"] != at {
		t.Errorf("the timestamp is %v, want %s", request["timestamp"], at)
	}
	if request["sent"] != true || request["body"] == nil || a.get("signature") != "v1,x" {
		t.Errorf("got %s", a.Body)
	}

	blind := w.do("GET", path, w.scoped(tn, access.WebhooksRead), nil).want(http.StatusOK).get("request").(map[string]any)
	if blind["body"] != nil || len(blind["headers"].([]any)) != len(headers) {
		t.Errorf("a key without events:read got %v", blind)
	}
	w.do("GET", path, w.scoped(tn, access.EventsRead), nil).want(http.StatusForbidden)
	another := w.onlyDelivery(tn, map[string]any{"type": "order.sent"})
	for _, wrong := range []string{"/api/v1/deliveries/" + another + "/attempts/" + att, "/api/v1/deliveries/" + dlv + "/attempts/att_x"} {
		w.do("GET", wrong, tn.key, nil).want(http.StatusNotFound)
	}
	w.do("GET", path, other.key, nil).want(http.StatusNotFound)

	w.SQL("UPDATE attempts SET failure = 1, status = 0 WHERE delivery_id = $1", w.uuid(id.Delivery, dlv))
	w.SQL("UPDATE events SET data = NULL WHERE id = $1", w.uuid(id.Event, event))
	gone := w.do("GET", path, tn.key, nil).want(http.StatusOK).get("request").(map[string]any)
	if gone["sent"] != false || gone["body"] != nil {
		t.Errorf("an attempt that sent nothing of an expunged event: %v", gone)
	}
}
