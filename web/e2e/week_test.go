//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db/queue"
	"posthorn/domain/id"
)

// outage is what waits for an endpoint that was down: so many events on each of so many days, emitted one after the
// other.
type outage struct {
	endpoint string
	days     int
	perDay   int
	keys     int  // in turn; 0: none has a key
	retrying bool // those of the first day were tried before it was known to be down
}

// store writes an outage into the partitions of its days, as the days would have left it. The numbers of the events
// of one key count up.
func (o outage) store(w *world) {
	w.t.Helper()
	tenant, err := id.Tenant.Parse(w.tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	endpoint, err := id.Endpoint.Parse(o.endpoint)
	if err != nil {
		w.t.Fatal(err)
	}
	first := time.Now().AddDate(0, 0, -o.days)
	w.asOwner(func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(context.Background(), "SELECT posthorn.make_partitions($1::date, $2::date)", first, time.Now())
		return err
	})
	var events, deliveries [][16]byte
	var keys, data []string
	var states []int16
	random := func() (b [10]byte) { _, _ = rand.Read(b[:]); return b }
	for n := range o.days * o.perDay {
		at := first.AddDate(0, 0, n/o.perDay).Add(time.Duration(n%o.perDay) * 24 * time.Hour / time.Duration(
			o.perDay) / 2)
		key, number, state := "", n, queue.Ready
		if o.keys > 0 {
			key, number, state = fmt.Sprintf("key-%d", n%o.keys), n/o.keys, queue.Blocked
		}
		if o.retrying && n < o.perDay {
			state = queue.Scheduled
		}
		events = append(events, id.New(at, random()))
		deliveries = append(deliveries, id.New(at, random()))
		keys = append(keys, key)
		states = append(states, state)
		data = append(data, fmt.Sprintf(`{"key":%q,"n":%d}`, key, number))
	}
	const rows = "FROM ROWS FROM (unnest($3::uuid[]), unnest($4::uuid[]), unnest($5::text[]), unnest($6::text[]), unnest($7::smallint[])) AS u(event, delivery, key, data, state) WHERE $2::uuid IS NOT NULL"
	for _, insert := range []string{
		"INSERT INTO events (tenant_id, created_at, id, type, data, key, routing_version) SELECT $1, posthorn.created_at(u.event), u.event, 'order.paid', convert_to(u.data, 'UTF8'), nullif(u.key, ''), 1 " + rows,
		"INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, attempts) SELECT $1, posthorn.created_at(u.delivery), u.delivery, u.event, $2, 'order.paid', u.state & 1, (u.state & 1) * 3 " + rows,
		"INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, order_key, attempts, due_at) SELECT $1, u.delivery, u.event, $2, u.state, nullif(u.key, ''), (u.state & 1) * 3, CASE WHEN u.state = 1 THEN now() END " + rows,
		`INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged)
			SELECT ARRAY[$1::uuid], ARRAY[(posthorn.created_at(u.delivery) AT TIME ZONE 'UTC')::date], ARRAY[count(*)::int], '{0}', '{0}', '{0}', '{0}' ` + rows +
			" GROUP BY (posthorn.created_at(u.delivery) AT TIME ZONE 'UTC')::date",
	} {
		w.exec(insert, [16]byte(tenant), [16]byte(endpoint), events, deliveries, keys, data, states)
	}
}

// TestAWeekOfEventsIsDeliveredWhenItsEndpointComesBack: an endpoint was down for a week, so that it was disabled and
// what came is held. Resumed, it gets every event once, in order where it asked for order, no faster than its rate,
// and its neighbours do not wait for that.
func TestAWeekOfEventsIsDeliveredWhenItsEndpointComesBack(t *testing.T) {
	t.Parallel()
	const (
		days, perDay = 7, 120
		backlog      = days * perDay // of each of two endpoints
		rate, burst  = 60, 10
		keys         = 6
		neighbours   = 100
	)
	w := newWorld(t, nil)
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	w.launch("worker", "worker").ready()
	limits := settings{"event_types": []string{"order.paid"}, "rate_limit": rate, "burst": burst, "max_in_flight": 20}
	ids := map[string]string{"/plain": w.endpoint("/plain", limits)}
	limits["ordering"] = "key"
	ids["/keyed"] = w.endpoint("/keyed", limits)
	for _, ep := range ids {
		endpointID, err := id.Endpoint.Parse(ep)
		if err != nil {
			t.Fatal(err)
		}
		w.exec("UPDATE endpoints SET status = 'disabled', status_reason = 'unhealthy', status_at = now() - interval '2 days' WHERE id = $1", [16]byte(endpointID))
		w.exec("UPDATE lanes SET held = true, rev = rev + 1 WHERE endpoint_id = $1", [16]byte(endpointID))
		w.exec(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, unhealthy_since, first_failure_at, last_failure_at, breaker_state, opened_at, next_probe_at)
			SELECT tenant_id, id, 80, now() - interval '7 days', now() - interval '7 days', now() - interval '2 days', 1, now() - interval '7 days', now() FROM endpoints WHERE id = $1
			ON CONFLICT (endpoint_id) DO UPDATE SET consecutive_failures = 80, unhealthy_since = excluded.unhealthy_since, first_failure_at = excluded.first_failure_at,
				last_failure_at = excluded.last_failure_at, breaker_state = 1, opened_at = excluded.opened_at, next_probe_at = excluded.next_probe_at`, [16]byte(endpointID))
	}
	outage{endpoint: ids["/plain"], days: days, perDay: perDay, retrying: true}.store(w)
	outage{endpoint: ids["/keyed"], days: days, perDay: perDay, keys: keys}.store(w)
	if n := w.ask("SELECT count(DISTINCT tableoid) FROM deliveries"); n < days {
		t.Fatalf("the deliveries lie in %d partitions", n)
	}
	var other struct {
		Key string `json:"api_key"`
	}
	command(t, w.environ, place{}, &other, "tenant", "create", "--name", "Neighbour", "--json")
	own := w.key
	w.key = other.Key
	w.endpoint("/neighbour", nil)
	w.key = own
	verified := w.ask("SELECT count(*) FROM verifications")

	started := startWatch()
	// Several people press at once: it is resumed once.
	var pressed sync.WaitGroup
	for _, ep := range ids {
		for range 3 {
			pressed.Go(func() { w.manage(http.MethodPost, "/endpoints/"+ep+"/resume", settings{"reason": "it is back"}, nil) })
		}
	}
	pressed.Wait()
	arrived := func(path string) (n int) {
		for _, a := range w.receiver.seen() {
			if a.path == path {
				n++
			}
		}
		return n
	}
	eventually(t, patience, "the backlogs drain", func() bool { return arrived("/plain") > 0 && arrived("/keyed") > 0 })
	w.key = other.Key
	var batch []emission
	for i := range neighbours {
		batch = append(batch, event("order.paid", i))
	}
	w.emitAll(batch, 50, 4)
	eventually(t, patience, "the neighbour has all of its events", func() bool { return arrived("/neighbour") == neighbours })
	if left := w.ask("SELECT count(*) FROM queue"); left == 0 {
		t.Error("the neighbour's events came after the backlogs: nothing waits any more")
	}
	w.key = own
	w.settled(2*backlog+neighbours, 2*time.Minute)
	t.Logf("the last events came after %v", started.passed().Round(100*time.Millisecond))

	for path, ep := range ids {
		var first, last time.Time
		once := map[string]bool{}
		for _, a := range w.receiver.seen() {
			if a.path != path {
				continue
			}
			once[a.id] = true
			if last = a.started; first.IsZero() {
				first = a.started
			}
		}
		if n := arrived(path); n != backlog || len(once) != backlog {
			t.Errorf("%s: %d arrivals of %d events, want each of %d once", path, n, len(once), backlog)
		}
		// The second is for a receiver that a busy machine let wait.
		if took, least := last.Sub(first)+time.Second, time.Duration(backlog-burst)*time.Second/rate; took < least {
			t.Errorf("%s: %d events came in %v; at %d a second they take %v", path, backlog, took, rate, least)
		}
		var now struct {
			Status string
			Health struct {
				Failures int `json:"consecutive_failures"`
				Held     int
			}
		}
		w.manage(http.MethodGet, "/endpoints/"+ep, nil, &now)
		if now.Status != "active" || now.Health.Failures != 0 || now.Health.Held != 0 {
			t.Errorf("%s: %+v", path, now)
		}
	}
	w.inOrder("/keyed", func(a arrival) string { return a.data.Key })
	if n := w.ask("SELECT count(*) FROM verifications") - verified; n != len(ids) {
		t.Errorf("%d verifications of %d endpoints that were resumed", n, len(ids))
	}
	if n := w.ask("SELECT count(*) FROM notices WHERE kind = 'endpoint.recovered'"); n != len(ids) {
		t.Errorf("%d notices that %d endpoints are well again", n, len(ids))
	}
	if b := w.totals(); b.accepted != 2*backlog+neighbours || b.delivered != b.accepted {
		t.Errorf("the books: %+v", b)
	}
}
