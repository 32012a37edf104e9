package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/id"
)

// worker stores a live worker, if there is none.
func (w *world) worker() {
	w.t.Helper()
	w.sql("INSERT INTO workers (id, name) SELECT $1, 'a worker' WHERE NOT EXISTS (SELECT FROM workers)", db.NewID())
}

// sql runs a statement as a role that sees all tenants.
func (w *world) sql(statement string, args ...any) {
	w.t.Helper()
	w.connection(func(c *pgx.Conn) error {
		_, err := c.Exec(w.t.Context(), statement, args...)
		return err
	})
}

// one reads a single value as that role.
func one[T any](w *world, query string, args ...any) (v T) {
	w.t.Helper()
	w.connection(func(c *pgx.Conn) error { return c.QueryRow(w.t.Context(), query, args...).Scan(&v) })
	return v
}

func (w *world) connection(do func(*pgx.Conn) error) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(w.t.Context(), "SET search_path = posthorn; SET ROLE posthorn_console"); err != nil {
		w.t.Fatal(err)
	}
	if err := do(conn); err != nil {
		w.t.Fatal(err)
	}
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
	w.worker()
	return ep
}

// setStatus changes an endpoint's status as jobs do.
func (w *world) setStatus(ep, status string) {
	w.t.Helper()
	u := w.uuid(id.Endpoint, ep)
	w.sql("UPDATE endpoints SET status = $2, verified_at = now() WHERE id = $1", u, status)
	w.sql("UPDATE lanes SET held = $2 <> 'active', rev = rev + 1 WHERE endpoint_id = $1", u, status)
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
	w.sql("DELETE FROM queue WHERE delivery_id = $1", u)
	w.sql("UPDATE deliveries SET status = $2, reason = $3, attempts = 1, last_status = 500, settled_at = now() WHERE id = $1", u, status, reason)
	if status == 3 {
		w.sql(`INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason)
			SELECT tenant_id, id, endpoint_id, event_type, reason FROM deliveries WHERE id = $1`, u)
	}
}

// reschedule puts a delivery off by an hour, as the recorder does.
func (w *world) reschedule(dlv string) {
	w.t.Helper()
	u := w.uuid(id.Delivery, dlv)
	w.sql("UPDATE queue SET state = 1, due_at = now() + interval '1 hour', attempts = attempts + 1 WHERE delivery_id = $1", u)
	w.sql("UPDATE deliveries SET status = 1, attempts = attempts + 1 WHERE id = $1", u)
}

func (w *world) audited(tn tenant, action string) int {
	w.t.Helper()
	return one[int](w, "SELECT count(*)::int FROM audit_log WHERE tenant_id = $1 AND action = $2", tn.uuid.String(), action)
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

// owner runs a statement as the role that owns the schema.
func (w *world) owner(statement string, args ...any) {
	w.t.Helper()
	w.connection(func(c *pgx.Conn) error {
		if _, err := c.Exec(w.t.Context(), "RESET ROLE"); err != nil {
			return err
		}
		_, err := c.Exec(w.t.Context(), statement, args...)
		return err
	})
}
