package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/id"
)

func init() {
	maps.Copy(probeBodies, map[string]string{
		"POST /events/:event_id/expunge":              `{"reason":"taken over"}`,
		"POST /expunges":                              `{"match":{"a":"b"},"reason":"taken over"}`,
		"POST /deliveries/bulk":                       `{"action":"archive","filter":{"status":"all_failed"},"reason":"taken over"}`,
		"POST /replays":                               `{"filter":{"status":"failed"},"reason":"taken over"}`,
		"POST /endpoints/:endpoint_id/recover":        `{"since":"2026-01-01T00:00:00Z"}`,
		"POST /endpoints/:endpoint_id/replay-missing": `{"since":"2026-01-01T00:00:00Z"}`,
		"POST /events/:event_id/replay":               `{"reason":"taken over"}`,
		"GET /bulk-jobs":                              ``,
		"GET /bulk-jobs/:job_id":                      ``,
		"POST /bulk-jobs/:job_id/cancel":              `{"reason":"taken over"}`,
	})
}

// work runs the chunks of all jobs until none is left, as the workers do.
func (w *world) work() {
	w.t.Helper()
	for w.step() {
	}
}

// step runs one chunk of each open job, without its rest.
func (w *world) step() (more bool) {
	w.t.Helper()
	w.SQL("UPDATE bulk_jobs SET due_at = now() WHERE state IN ('queued', 'running')")
	due, err := deliveries.DueBulkJobs(w.t.Context(), w.db, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, job := range due {
		step, err := deliveries.StepBulkJob(w.t.Context(), w.db, job)
		if err != nil {
			w.t.Fatal(err)
		}
		more = more || step.Took && !step.Over
	}
	return more
}

// start starts a job and returns its id.
func (w *world) start(tn tenant, path, body string) string {
	w.t.Helper()
	return w.do("POST", "/api/v1"+path, tn.key, body).want(http.StatusAccepted).text("id")
}

func (w *world) job(tn tenant, job string) *answer {
	w.t.Helper()
	return w.do("GET", "/api/v1/bulk-jobs/"+job, tn.key, nil).want(http.StatusOK)
}

// ended checks how a job ended, how many objects it changed, and how many it skipped.
func (w *world) ended(tn tenant, job, state string, done int, skipped string) {
	w.t.Helper()
	a := w.job(tn, job)
	var reasons []string
	for why, n := range a.get("skipped").(map[string]any) {
		reasons = append(reasons, fmt.Sprintf("%s %v", why, n))
	}
	slices.Sort(reasons)
	if a.text("state") != state || a.get("done") != float64(done) || strings.Join(reasons, ", ") != skipped {
		w.t.Errorf("want %s, %d done, skipped %q: %s", state, done, skipped, a.Body)
	}
}

// balanced checks that the ledger agrees with the tables for every day.
func (w *world) balanced() {
	w.t.Helper()
	wrong := one[string](w, `
		WITH entries AS (
			SELECT tenant_id, day, accepted, delivered, failed, canceled FROM books
			UNION ALL
			SELECT u.* FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.book_tenant), unnest(l.book_day), unnest(l.accepted),
				unnest(l.delivered), unnest(l.failed), unnest(l.canceled)) AS u(tenant_id, day, accepted, delivered, failed, canceled)
		), b AS (
			SELECT sum(accepted) AS accepted, sum(canceled) AS canceled FROM entries
		), t AS (
			SELECT count(*) AS accepted, count(*) FILTER (WHERE status = 4) AS canceled, count(*) FILTER (WHERE status < 2) AS waiting FROM deliveries
		)
		SELECT format('books %s, tables %s, %s queued', b, t, (SELECT count(*) FROM queue)) FROM b, t
		WHERE b.accepted <> t.accepted OR b.canceled <> t.canceled OR t.waiting <> (SELECT count(*) FROM queue)
		UNION ALL SELECT '' LIMIT 1`)
	if wrong != "" {
		w.t.Error(wrong)
	}
}

// dead creates n dead letters, oldest first.
func (w *world) dead(tn tenant, n int, body map[string]any) (deliveries []string) {
	w.t.Helper()
	for range n {
		d := w.onlyDelivery(tn, body)
		w.settle(d, 3, 1)
		deliveries = append(deliveries, d)
	}
	return deliveries
}

func TestADryRunSaysWhatTheRunThenDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	w.dead(tn, 3, nil)
	expunged := w.dead(tn, 1, nil)[0]
	w.SQL("UPDATE events SET data = NULL WHERE id = (SELECT event_id FROM deliveries WHERE id = $1)", w.uuid(id.Delivery, expunged))
	again := w.dead(tn, 1, nil)[0]
	w.do("POST", "/api/v1/deliveries/"+again+"/replay", tn.key, nil).want(http.StatusAccepted)
	w.onlyDelivery(tn, nil) // waits

	body := `{"filter":{"status":"failed","endpoint":"` + ep + `"},"reason":"the receiver was down"%s}`
	dry := w.do("POST", "/api/v1/replays", tn.key, fmt.Sprintf(body, `,"dry_run":true`)).want(http.StatusOK)
	if dry.get("expected") != 3.0 || dry.get("expected_exact") != true || dry.get("skipped.expunged") != 1.0 || dry.get("skipped.replayed") != 1.0 {
		t.Errorf("dry run: %s", dry.Body)
	}
	if n := one[int](w, "SELECT count(*)::int FROM bulk_jobs"); n != 0 {
		t.Errorf("the dry run left %d jobs", n)
	}
	queued := one[int](w, "SELECT count(*)::int FROM queue")
	job := w.start(tn, "/replays", fmt.Sprintf(body, ""))
	w.work()
	w.ended(tn, job, "done", 3, "expunged 1, replayed 1")
	if got := one[int](w, "SELECT count(*)::int FROM queue WHERE replay"); got != 4 {
		t.Errorf("%d replays are queued, want the single one and 3", got)
	}
	if got := one[int](w, "SELECT count(*)::int FROM queue"); got != queued+3 {
		t.Errorf("%d rows wait, want %d", got, queued+3)
	}
	w.balanced()
	// A second request finds nothing: the dead letters were replayed.
	twice := w.start(tn, "/replays", fmt.Sprintf(body, ""))
	w.work()
	w.ended(tn, twice, "done", 0, "expunged 1, replayed 4")
	if w.audited(tn, "bulk_job.start") != 2 || w.audited(tn, "bulk_job.end") != 2 {
		t.Error("start and end are audited")
	}
	if reason := one[string](w, "SELECT details->>'done' FROM audit_log WHERE action = 'bulk_job.end' ORDER BY id LIMIT 1"); reason != "3" {
		t.Errorf("the audit log says that %s were done", reason)
	}
}

func TestAReplayKeepsEventOrderAndOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, map[string]any{"ordering": "key"})
	originals := w.dead(tn, 5, map[string]any{"key": "k"})
	job := w.start(tn, "/replays", `{"filter":{"status":"all_failed"},"reason":"why","pace":2}`)
	w.step()
	w.ended(tn, job, "running", 2, "")
	w.work()
	w.ended(tn, job, "done", 5, "")
	got := one[[]string](w, `SELECT array_agg(d.replay_of::text ORDER BY q.seq) FROM queue q JOIN deliveries d ON d.id = q.delivery_id
		WHERE q.state = 2 AND q.order_key = 'k' AND q.replay`)
	for i, u := range originals {
		originals[i] = w.uuid(id.Delivery, u)
	}
	if !slices.Equal(got, originals) {
		t.Errorf("the queue's order is %q, want %q", got, originals)
	}
	newest := w.deliveries(tn, "status=pending&limit=1")[0]
	d := w.do("GET", "/api/v1/deliveries/"+newest, tn.key, nil).want(http.StatusOK)
	if d.text("job_id") != job || d.get("attempt_count") != 0.0 {
		t.Errorf("%s", d.Body)
	}
	if a := w.job(tn, job); a.text("reason") != "why" || a.text("asked_by.kind") != "key" || a.get("pace") != 2.0 || a.text("filter.status") != "all_failed" {
		t.Errorf("%s", a.Body)
	}
}

func TestNamedDeliveriesAreReplayedThoughTheyWereBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	dead := w.dead(tn, 2, nil)
	waiting := w.onlyDelivery(tn, nil)
	body := fmt.Sprintf(`{"filter":{"ids":["%s","%s","%s","%s"]}}`, dead[0], dead[1], waiting, id.Delivery.Format(db.NewID()))
	for range 2 {
		job := w.start(tn, "/replays", body)
		w.work()
		w.ended(tn, job, "done", 2, "waiting 1")
	}
	w.balanced()
}

func TestWaitingDeliveriesAreCanceledAndRetriedInBulk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	var all []string
	for range 6 {
		all = append(all, w.onlyDelivery(tn, nil))
	}
	w.reschedule(all[0])
	w.reschedule(all[1])
	w.reschedule(all[2])
	retry := w.start(tn, "/deliveries/bulk", `{"action":"retry_now","filter":{"status":"retrying","until":"2999-01-01T00:00:00Z"}}`)
	w.work()
	w.ended(tn, retry, "done", 3, "")
	if n := one[int](w, "SELECT count(*)::int FROM queue WHERE state = 0 AND gen = 1"); n != 3 {
		t.Errorf("%d rows are ready again", n)
	}
	w.setStatus(ep, "paused")
	held := w.start(tn, "/deliveries/bulk", `{"action":"cancel","filter":{"status":"held","endpoint":"`+ep+`"}}`)
	w.work()
	w.ended(tn, held, "done", 6, "")
	if n := len(w.deliveries(tn, "status=canceled")); n != 6 {
		t.Errorf("%d are canceled", n)
	}
	if n := len(w.deliveries(tn, "status=all_failed")); n != 3 {
		t.Errorf("%d were canceled after an attempt", n)
	}
	w.balanced()
	archive := w.start(tn, "/deliveries/bulk", `{"action":"archive","filter":{"status":"canceled"}}`)
	w.work()
	w.ended(tn, archive, "done", 6, "")
	if n := len(w.deliveries(tn, "status=canceled")); n != 0 {
		t.Errorf("%d are still shown", n)
	}
	back := w.start(tn, "/deliveries/bulk", `{"action":"unarchive","filter":{"status":"all_failed"}}`)
	w.work()
	w.ended(tn, back, "done", 3, "")
	if n := len(w.deliveries(tn, "status=canceled")); n != 3 {
		t.Errorf("%d are shown again", n)
	}
}

func TestACanceledJobStopsAtItsNextChunk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	w.dead(tn, 4, nil)
	job := w.start(tn, "/replays", `{"filter":{"status":"failed"},"pace":1}`)
	w.step()
	w.do("POST", "/api/v1/bulk-jobs/"+job+"/cancel", tn.key, `{"reason":"enough"}`).want(http.StatusOK)
	w.work()
	w.ended(tn, job, "canceled", 1, "")
	w.do("POST", "/api/v1/bulk-jobs/"+job+"/cancel", tn.key, nil).problem(http.StatusConflict, "bulk_job_over", "state")
	if n := one[int](w, "SELECT count(*)::int FROM queue"); n != 1 {
		t.Errorf("%d replays are queued", n)
	}
	rest := w.start(tn, "/replays", `{"filter":{"status":"failed"}}`)
	w.work()
	w.ended(tn, rest, "done", 3, "replayed 1")
	w.balanced()
}

func TestAJobConcernsNothingThatIsYounger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	w.dead(tn, 1, nil)
	job := w.start(tn, "/replays", `{"filter":{"status":"failed"}}`)
	for at := db.NewID().Time(); !db.NewID().Time().After(at); { // ids have whole milliseconds
	}
	w.dead(tn, 1, nil)
	w.work()
	w.ended(tn, job, "done", 1, "")
}

func TestBulkRequestsAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	other := w.active(w.tenant("b"), nil)
	for _, c := range []struct {
		path, body, code, field string
	}{
		{"/replays", `{"filter":{}}`, "filter_status", "filter.status"},
		{"/replays", `{"filter":{"status":"pending"}}`, "filter_status", "filter.status"},
		{"/replays", `{"filter":{"status":"failed"},"pace":0}`, "pace_range", "pace"},
		{"/replays", `{"filter":{"status":"failed"},"pace":10001}`, "pace_range", "pace"},
		{"/replays", `{"filter":{"ids":[]}}`, "filter_ids_range", "filter.ids"},
		{"/replays", `{"filter":{"ids":["` + id.Delivery.Format(db.NewID()) + `"],"status":"failed"}}`, "filter_ids_alone", "filter.ids"},
		{"/replays", `{"filter":{"status":"failed","since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}}`, "filter_times", "filter.until"},
		{"/replays", `{"filter":{"status":"failed","type":"*"}}`, "type_malformed", "filter.type"},
		{"/replays", `{"filter":{"status":"failed","channel":""}}`, "channel_malformed", "filter.channel"},
		{"/replays", `{"filter":{"ids":["` + id.Delivery.Format(db.NewID()) + `","dlv_x"]}}`, "id_malformed", "filter.ids"},
		{"/deliveries/bulk", `{"action":"replay","filter":{"status":"failed"}}`, "action_unknown", "action"},
		{"/deliveries/bulk", `{"action":"cancel","filter":{"status":"failed"}}`, "filter_status", "filter.status"},
		{"/deliveries/bulk", `{"action":"retry_now","filter":{"status":"held"}}`, "filter_status", "filter.status"},
	} {
		w.do("POST", "/api/v1"+c.path, tn.key, c.body).problem(http.StatusBadRequest, c.code, c.field)
	}
	for _, ep := range []string{other, id.Endpoint.Format(db.NewID()), "nonsense"} {
		w.do("POST", "/api/v1/replays", tn.key, `{"filter":{"status":"failed","endpoint":"`+ep+`"}}`).problem(http.StatusNotFound, "not_found")
	}
}
