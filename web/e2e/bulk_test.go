//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

// deadLetters stores n events, each with a delivery that failed, as a long outage leaves them.
func (w *world) deadLetters(endpoint string, n int) {
	w.t.Helper()
	tenant, err := id.Tenant.Parse(w.tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	ep, err := id.Endpoint.Parse(endpoint)
	if err != nil {
		w.t.Fatal(err)
	}
	for range n / 10_000 {
		events, deliveries := make([][16]byte, 10_000), make([][16]byte, 10_000)
		for i := range events {
			events[i], deliveries[i] = db.NewID(), db.NewID()
		}
		for _, insert := range []string{
			`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
			SELECT $1, posthorn.created_at(u.event), u.event, 'order.paid', '{"n":1}', 1 FROM ROWS FROM (unnest($3::uuid[]), unnest($4::uuid[])) AS u(id, event) WHERE $2::uuid IS NOT NULL`,
			`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, settled_at)
			SELECT $1, posthorn.created_at(u.id), u.id, u.event, $2, 'order.paid', 3, 1, 10, now() FROM ROWS FROM (unnest($3::uuid[]), unnest($4::uuid[])) AS u(id, event)`,
			`INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason)
			SELECT $1, u.id, $2, 'order.paid', 1 FROM ROWS FROM (unnest($3::uuid[]), unnest($4::uuid[])) AS u(id, event)`,
			`INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged)
			SELECT ARRAY[$1::uuid], ARRAY[(posthorn.created_at(u.id) AT TIME ZONE 'UTC')::date], ARRAY[count(*)::int], '{0}', ARRAY[count(*)::int], '{0}', '{0}'
			FROM ROWS FROM (unnest($3::uuid[]), unnest($4::uuid[])) AS u(id, event) WHERE $2::uuid IS NOT NULL GROUP BY (posthorn.created_at(u.id) AT TIME ZONE 'UTC')::date`,
		} {
			if _, err := w.sql.Exec(context.Background(), insert, [16]byte(tenant), [16]byte(ep), deliveries, events); err != nil {
				w.t.Fatalf("%s: %v", insert, err)
			}
		}
	}
}

// TestALargeReplaySurvivesKills kills the workers again and again while one job replays what a long outage
// left. Each dead letter is replayed once, the books know all of them, and it takes minutes and not hours.
func TestALargeReplaySurvivesKills(t *testing.T) {
	t.Parallel()
	const n = replayed
	w := newWorld(t, nil)
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	ep := w.endpoint("/outage", nil)
	w.manage(http.MethodPost, "/endpoints/"+ep+"/pause", nil, nil) // what is replayed is held: this is about the job
	w.deadLetters(ep, n)

	var job struct {
		ID       string
		State    string
		Expected int
		Done     int
	}
	w.manage(http.MethodPost, "/endpoints/"+ep+"/recover", settings{"since": time.Now().Add(-time.Hour).UTC(), "reason": "the receiver is back"}, &job)
	started := time.Now()
	read := func() int {
		w.manage(http.MethodGet, "/bulk-jobs/"+job.ID, nil, &job)
		return job.Done
	}
	for k := range kills(t) {
		// Every kill finds the job in the middle: some chunks after the last one.
		from := read()
		eventually(t, patience, "the job goes on", func() bool { return read() >= min(from+5_000, n) })
		victim := k % len(workers)
		workers[victim].kill()
		workers[victim] = w.launch(workers[victim].name, "worker").ready()
	}
	eventually(t, 5*time.Minute, "the job is over", func() bool { read(); return job.State != "queued" && job.State != "running" })
	t.Logf("%d replays in %v, %d kills", n, time.Since(started).Round(time.Second), kills(t))
	if job.State != "done" || job.Done != n {
		t.Errorf("the job: %+v", job)
	}
	for what, sql := range map[string]string{
		"dead letters were replayed":  "SELECT count(*) FROM dead_letters WHERE replayed",
		"of them have a new delivery": "SELECT count(DISTINCT replay_of) FROM deliveries WHERE replay_of IS NOT NULL",
		"new deliveries":              "SELECT count(*) FROM deliveries WHERE replay_of IS NOT NULL",
		"of those wait":               "SELECT count(*) FROM queue q JOIN deliveries d ON d.id = q.delivery_id WHERE q.replay AND d.replay_of IS NOT NULL",
		"of those are in their order": "SELECT count(*) FROM (SELECT d.replay_of > coalesce(lag(d.replay_of) OVER (ORDER BY q.seq), '00000000-0000-0000-0000-000000000000') AS ordered FROM queue q JOIN deliveries d ON d.id = q.delivery_id) x WHERE ordered",
		"of them the job answers for": "SELECT count(*) FROM deliveries WHERE job_id IS NOT NULL",
	} {
		if got := w.ask(sql); got != n {
			t.Errorf("%d %s, want %d", got, what, n)
		}
	}
	if b := w.totals(); b.accepted != 2*n || b.failed != n || b.delivered+b.canceled != 0 {
		t.Errorf("the books: %+v", b)
	}
	w.manage(http.MethodPost, "/endpoints/"+ep+"/resume", settings{"held": "drop"}, nil)
	eventually(t, 5*time.Minute, "what was held is dropped", func() bool { return w.ask("SELECT count(*) FROM queue") == 0 })
	if b := w.totals(); b.canceled != n {
		t.Errorf("the books: %+v", b)
	}
	if got := w.receiver.count(); got > 1 { // the verification
		t.Errorf("%d requests arrived of what was held and dropped", got)
	}
}
