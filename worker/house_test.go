package worker

import (
	"fmt"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// as runs a function as a tenant, in one transaction.
func (h *house) as(tenant id.UUID, fn func(q *sql.Queries) error) {
	h.t.Helper()
	if err := h.db.Tenant(h.t.Context(), tenant, fn); err != nil {
		h.t.Fatal(err)
	}
}

// change changes an endpoint's settings, as its tenant does.
func (h *house) change(tenant, ep id.UUID, change func(*endpoint.Settings)) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.Change(h.t.Context(), q, h.ring, tenant, ep, func(s endpoint.Settings) (endpoint.Settings, error) {
			change(&s)
			return s, nil
		})
		return err
	})
}

func (h *house) pause(tenant, ep id.UUID) { h.setState(tenant, ep, endpoint.Pause) }

func (h *house) resume(tenant, ep id.UUID) { h.setState(tenant, ep, endpoint.Resume) }

func (h *house) setState(tenant, ep id.UUID, rule func(endpoint.Status) (endpoint.Change, error)) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.SetState(h.t.Context(), q, h.ring, tenant, ep, rule)
		return err
	})
}

func (h *house) remove(tenant, ep id.UUID) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		_, err := endpoints.Remove(h.t.Context(), q, tenant, ep)
		return err
	})
}

func (h *house) cancel(tenant, dlv id.UUID) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.Cancel(h.t.Context(), q, tenant, dlv)
		return err
	})
}

// deliveryOf is the newest delivery of an event.
func (h *house) deliveryOf(event id.UUID) (dlv id.UUID) {
	h.t.Helper()
	var raw [16]byte
	h.query("SELECT id FROM deliveries WHERE event_id = $1 ORDER BY id DESC LIMIT 1", []any{&raw}, event)
	return raw
}

// state is the database's state of a delivery.
func (h *house) state(dlv id.UUID) (status delivery.Status, reason delivery.Reason, attempts int) {
	h.t.Helper()
	h.query("SELECT status, reason, attempts FROM deliveries WHERE id = $1", []any{&status, &reason, &attempts}, dlv)
	return status, reason, attempts
}

// settled waits until this many deliveries have ended in a state.
func (h *house) settled(within time.Duration, status delivery.Status, n int) {
	h.t.Helper()
	var have int
	defer func() {
		if h.t.Failed() {
			h.t.Logf("%d deliveries are %s, want %d; queue by state: %s", have, status, n, h.queueStates())
		}
	}()
	eventually(h.t, within, fmt.Sprintf("%d deliveries are %s", n, status), func() bool {
		have = h.count("SELECT count(*) FROM deliveries WHERE status = $1", int16(status))
		return have == n
	})
}

func (h *house) queueStates() (text string) {
	h.query(`SELECT coalesce(string_agg(s.state || ': ' || s.n, ', '), 'empty') FROM
		(SELECT state, count(*) AS n FROM queue GROUP BY state ORDER BY state) s`, []any{&text})
	return text
}

// waiting is how many rows wait for an endpoint.
func (h *house) waiting(ep id.UUID) int {
	h.t.Helper()
	return h.count("SELECT count(*) FROM queue WHERE endpoint_id = $1", ep)
}

// totalsQuery compares, for each tenant and UTC day, the totals (with the entries of the ledger) with the tables.
const totalsQuery = `
WITH entries AS (
	SELECT tenant_id, day, accepted, delivered, failed, canceled, expunged FROM books
	UNION ALL
	SELECT u.* FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.book_tenant), unnest(l.book_day), unnest(l.accepted),
		unnest(l.delivered), unnest(l.failed), unnest(l.canceled), unnest(l.expunged))
		AS u(tenant_id, day, accepted, delivered, failed, canceled, expunged)
), b AS (
	SELECT tenant_id, day, sum(accepted) AS accepted, sum(delivered) AS delivered, sum(failed) AS failed,
		sum(canceled) AS canceled, sum(expunged) AS expunged FROM entries GROUP BY tenant_id, day
	HAVING (sum(accepted), sum(delivered), sum(failed), sum(canceled)) <> (0, 0, 0, 0)
), t AS (
	SELECT tenant_id, (created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS accepted, count(*) FILTER (WHERE status = 2) AS delivered,
		count(*) FILTER (WHERE status = 3) AS failed, count(*) FILTER (WHERE status = 4) AS canceled,
		count(*) FILTER (WHERE status < 2) AS waiting
	FROM deliveries GROUP BY 1, 2
), q AS (
	SELECT tenant_id, (posthorn.created_at(delivery_id) AT TIME ZONE 'UTC')::date AS day, count(*) AS waiting FROM queue GROUP BY 1, 2
)
SELECT count(*), coalesce(string_agg(format('books %s, tables %s, queue %s', b, t, q), '; '), '')
FROM b FULL JOIN t USING (tenant_id, day) FULL JOIN q USING (tenant_id, day)
WHERE b.accepted IS DISTINCT FROM t.accepted OR b.delivered IS DISTINCT FROM t.delivered OR b.failed IS DISTINCT FROM t.failed
	OR b.canceled IS DISTINCT FROM t.canceled OR t.waiting IS DISTINCT FROM coalesce(q.waiting, 0)
	OR b.accepted IS DISTINCT FROM b.delivered + coalesce(q.waiting, 0) + b.failed + b.canceled`

// balanced compares the totals with the tables. One statement sees one moment, so it can be called at any time.
func (h *house) balanced() {
	h.t.Helper()
	var n int
	var text string
	h.query(totalsQuery, []any{&n, &text})
	if n != 0 {
		h.t.Errorf("the books of %d days do not balance: %s", n, text)
	}
}

// followed waits until a worker has taken over the present state of an endpoint, and returns how long it took.
func (h *house) followed(w *Worker, ep id.UUID) time.Duration {
	h.t.Helper()
	began := time.Now()
	rev := h.count("SELECT rev FROM lanes WHERE endpoint_id = $1", ep)
	eventually(h.t, 5*time.Second, "the lane's owner follows its endpoint", func() bool {
		l, has := w.dispatch.View(ep)
		return !has || l.Rev >= int64(rev)
	})
	return time.Since(began)
}

// gate holds requests until it is opened, and reports when the first has arrived.
type gate struct {
	entered chan struct{}
	open    chan struct{}
}

func newGate(t testing.TB) *gate {
	g := &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

// pass is a receiver's response that waits for the gate.
func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.open
}

func (g *gate) release() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// waitEntered waits until a request is held.
func (g *gate) waitEntered(t testing.TB) {
	t.Helper()
	select {
	case <-g.entered:
	case <-time.After(10 * time.Second):
		t.Fatal("no request came")
	}
}

// ns are the numbers of the events that arrived, in order.
func ns(arrivals []arrival) []int {
	list := make([]int, len(arrivals))
	for i, a := range arrivals {
		list[i] = a.data.N
	}
	return list
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
