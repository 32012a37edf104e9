package api_test

import (
	"net/http"
	"testing"

	"posthorn/domain/id"
	"posthorn/tools/webtest"
)

func one[T any](w *world, query string, args ...any) T {
	w.t.Helper()
	return webtest.One[T](w.World, query, args...)
}

const hook = "https://hooks.example.com/in"

// endpoint creates an endpoint with these fields and a URL.
func (w *world) endpoint(tn tenant, fields map[string]any) *answer {
	w.t.Helper()
	body := map[string]any{"url": hook}
	for k, v := range fields {
		body[k] = v
	}
	return w.do("POST", "/api/v1/endpoints", tn.key, body).want(http.StatusCreated)
}

// active creates an endpoint and makes it active, as the verification job does.
func (w *world) active(tn tenant, fields map[string]any) string {
	w.t.Helper()
	ep := w.endpoint(tn, fields).text("id")
	w.setStatus(ep, "active")
	w.Worker()
	return ep
}

// setStatus changes an endpoint's status as jobs do.
func (w *world) setStatus(ep, status string) {
	w.t.Helper()
	w.SetStatus(w.uuid(id.Endpoint, ep), status)
}

func (w *world) uuid(kind id.Kind, text string) string {
	w.t.Helper()
	uuid, err := kind.Parse(text)
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return uuid.String()
}

// emit sends an event and returns its id.
func (w *world) emit(tn tenant, body map[string]any) string {
	w.t.Helper()
	whole := map[string]any{"type": "order.paid", "data": map[string]any{"amount": 1}}
	for k, v := range body {
		whole[k] = v
	}
	return w.do("POST", "/api/v1/events", tn.key, whole).want(http.StatusAccepted).text("id")
}

// deliveries lists with a query and returns the ids.
func (w *world) deliveries(tn tenant, query string) []string {
	w.t.Helper()
	a := w.do("GET", "/api/v1/deliveries?"+query, tn.key, nil).want(http.StatusOK)
	var out []string
	for _, one := range a.get("data").([]any) {
		out = append(out, one.(map[string]any)["id"].(string))
	}
	return out
}

// onlyDelivery emits an event that goes to one endpoint, and returns the delivery.
func (w *world) onlyDelivery(tn tenant, body map[string]any) string {
	w.t.Helper()
	ev := w.emit(tn, body)
	a := w.do("GET", "/api/v1/events/"+ev+"/deliveries", tn.key, nil).want(http.StatusOK)
	rows := a.get("data").([]any)
	if len(rows) != 1 {
		w.t.Fatalf("want one delivery of %s, got %s", ev, a.Body)
	}
	return rows[0].(map[string]any)["id"].(string)
}

// settle finishes a delivery as the recorder does: 2 delivered, 3 failed.
func (w *world) settle(dlv string, status, reason int) {
	w.t.Helper()
	u := w.uuid(id.Delivery, dlv)
	w.SQL("DELETE FROM queue WHERE delivery_id = $1", u)
	w.SQL("UPDATE deliveries SET status = $2, reason = $3, attempts = 1, last_status = 500, settled_at = now() WHERE id = $1", u, status, reason)
	if status == 3 {
		w.SQL(`INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason)
			SELECT tenant_id, id, endpoint_id, event_type, reason FROM deliveries WHERE id = $1`, u)
	}
}

// reschedule puts a delivery off by an hour, as the recorder does.
func (w *world) reschedule(dlv string) {
	w.t.Helper()
	u := w.uuid(id.Delivery, dlv)
	w.SQL("UPDATE queue SET state = 1, due_at = now() + interval '1 hour', attempts = attempts + 1 WHERE delivery_id = $1", u)
	w.SQL("UPDATE deliveries SET status = 1, attempts = attempts + 1 WHERE id = $1", u)
}

// parallel runs n copies of something concurrently.
func parallel(t *testing.T, n int, do func(i int)) {
	t.Helper()
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			<-start
			do(i)
		}()
	}
	close(start)
	for range n {
		<-done
	}
}

func (w *world) audited(tn tenant, action string) int {
	w.t.Helper()
	return w.Audited(tn.uuid, action)
}
