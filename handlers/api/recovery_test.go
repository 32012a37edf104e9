package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/id"
	"posthorn/handlers/api"
)

// aged skips the seconds in which a job reads twice because of events that are stored late.
func (w *world) aged(job string) {
	w.t.Helper()
	w.SQL("UPDATE bulk_jobs SET created_at = created_at - interval '20 seconds' WHERE id = $1", w.uuid(id.Job, job))
}

// waitingFor are the events that wait for an endpoint, in the queue's order.
func (w *world) waitingFor(ep string) []string {
	w.t.Helper()
	return one[[]string](w, "SELECT coalesce(array_agg(event_id::text ORDER BY seq), '{}') FROM queue WHERE endpoint_id = $1", w.uuid(id.Endpoint, ep))
}

func (w *world) uuids(kind id.Kind, texts ...string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = w.uuid(kind, text)
	}
	return out
}

func since(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func TestMissingEventsAreThoseThatTheEndpointTakesNowAndNeverGot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	began := time.Now()
	first := w.active(tn, nil)
	plain := w.emit(tn, nil)
	paid := w.emit(tn, map[string]any{"data": map[string]any{"amount": 200}})
	w.emit(tn, map[string]any{"type": "order.canceled"})
	expunged := w.emit(tn, map[string]any{"data": map[string]any{"amount": 300}})
	w.SQL("UPDATE events SET data = NULL WHERE id = $1", w.uuid(id.Event, expunged))
	w.do("POST", "/api/v1/endpoints/"+first+"/test", tn.key, nil).want(http.StatusAccepted)

	narrow := w.active(tn, map[string]any{"event_types": []string{"order.paid", "endpoint.test"}, "filter": map[string]any{"amount": 200}})
	body := `{"since":"` + since(began.Add(-time.Minute)) + `"%s}`
	path := "/endpoints/" + narrow + "/replay-missing"
	dry := w.do("POST", "/api/v1"+path, tn.key, fmt.Sprintf(body, `,"dry_run":true`)).want(http.StatusOK)
	if dry.get("expected") != 1.0 || dry.get("skipped.expunged") != 1.0 {
		t.Errorf("dry run: %s", dry.Body)
	}
	job := w.start(tn, path, fmt.Sprintf(body, `,"reason":"new"`))
	w.aged(job)
	w.work()
	if got := w.job(tn, job); got.text("state") != "done" || got.get("done") != 1.0 {
		t.Errorf("%s", got.Body)
	}
	if got := w.waitingFor(narrow); !slices.Equal(got, w.uuids(id.Event, paid)) {
		t.Errorf("waiting: %q", got)
	}
	// A second run with a wider filter sends nothing twice, whatever the state of the first deliveries.
	w.do("PATCH", "/api/v1/endpoints/"+narrow, tn.key, `{"filter":null}`).want(http.StatusOK)
	later := w.emit(tn, nil)
	for range 2 {
		job = w.start(tn, path, fmt.Sprintf(body, ""))
		w.aged(job)
		w.work()
	}
	if got := w.waitingFor(narrow); !slices.Equal(got, w.uuids(id.Event, paid, later, plain)) {
		t.Errorf("waiting: %q", got)
	}
	w.balanced()
	none := w.start(tn, path, `{"since":"`+since(time.Now().Add(time.Hour))+`"}`)
	w.aged(none)
	w.work()
	w.ended(tn, none, "done", 0, "")
}

// Two concurrent requests are for the same events. Each chunk finds what the other has just sent.
func TestMissingEventsAskedForTwiceAtOnceAreSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	began := time.Now()
	const n = 40
	for range n {
		w.emit(tn, nil)
	}
	ep := w.active(tn, nil)
	body := `{"since":"` + since(began.Add(-time.Minute)) + `","pace":7}`
	for range 2 {
		w.aged(w.start(tn, "/endpoints/"+ep+"/replay-missing", body))
	}
	for more := true; more; {
		w.SQL("UPDATE bulk_jobs SET due_at = now() WHERE state IN ('queued', 'running')")
		due, err := deliveries.DueBulkJobs(t.Context(), w.db, 100)
		if err != nil {
			t.Fatal(err)
		}
		parallel(t, len(due), func(i int) {
			if _, err := deliveries.StepBulkJob(t.Context(), w.db, due[i]); err != nil {
				t.Error(err)
			}
		})
		more = len(due) > 0
	}
	if got := w.waitingFor(ep); len(got) != n {
		t.Errorf("%d wait, want %d", len(got), n)
	}
	if got := one[int](w, "SELECT sum(done)::int FROM bulk_jobs"); got != n {
		t.Errorf("the jobs sent %d", got)
	}
	w.balanced()
}

func TestAMissingScheduledEventWaitsForItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	began := time.Now()
	w.emit(tn, map[string]any{"deliver_at": since(began.Add(time.Hour))})
	ep := w.active(tn, nil)
	job := w.start(tn, "/endpoints/"+ep+"/replay-missing", `{"since":"`+since(began.Add(-time.Minute))+`"}`)
	w.aged(job)
	w.work()
	if n := one[int](w, "SELECT count(*)::int FROM queue WHERE state = 3 AND due_at > now() + interval '50 minutes'"); n != 1 {
		t.Errorf("%d events wait for their time", n)
	}
}

func TestARecoverySendsWhatFailedSinceAndNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep, other := w.active(tn, map[string]any{"event_types": []string{"a.*"}}), w.active(tn, map[string]any{"event_types": []string{"b.*"}})
	before := w.dead(tn, 2, map[string]any{"type": "a.x"})
	for at := db.NewID().Time(); !db.NewID().Time().After(at); {
	}
	down := db.NewID().Time()
	w.dead(tn, 3, map[string]any{"type": "a.x"})
	w.dead(tn, 1, map[string]any{"type": "b.x"})
	w.settle(w.onlyDelivery(tn, map[string]any{"type": "a.x"}), 2, 0)
	body := `{"since":"` + since(down) + `","reason":"the receiver is back"}`
	for i, want := range []struct {
		done    int
		skipped string
	}{{3, ""}, {0, "replayed 3"}} {
		job := w.start(tn, "/endpoints/"+ep+"/recover", body)
		w.work()
		w.ended(tn, job, "done", want.done, want.skipped)
		if n := len(w.waitingFor(ep)); n != 3 {
			t.Errorf("after %d: %d wait", i+1, n)
		}
	}
	if len(w.waitingFor(other)) != 0 || one[bool](w, "SELECT replayed FROM dead_letters WHERE delivery_id = $1", w.uuid(id.Delivery, before[0])) {
		t.Error("more was sent than was asked for")
	}
	w.do("POST", "/api/v1/endpoints/"+ep+"/recover", tn.key, `{}`).problem(http.StatusBadRequest, "field_missing", "since")
	w.do("POST", "/api/v1/endpoints/"+ep+"/recover", tn.key, `{"since":"2026-01-02T00:00:00Z","until":"2026-01-02T00:00:00Z"}`).problem(http.StatusBadRequest, "filter_times", "until")
	w.do("DELETE", "/api/v1/endpoints/"+ep, tn.key, nil).want(http.StatusNoContent)
	w.do("POST", "/api/v1/endpoints/"+ep+"/recover", tn.key, body).problem(http.StatusNotFound, "not_found")
	w.do("POST", "/api/v1/endpoints/"+ep+"/replay-missing", tn.key, body).problem(http.StatusNotFound, "not_found")
}

func TestOneEventIsReplayedToAllItsEndpointsOrToOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	a, b := w.active(tn, map[string]any{"ordering": "strict"}), w.active(tn, nil)
	event := w.emit(tn, nil)
	path := "/api/v1/events/" + event + "/replay"
	deliveries := ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", tn.key, nil).want(http.StatusOK))
	if got := w.do("POST", path, tn.key, nil).want(http.StatusAccepted); got.get("skipped.waiting") != 2.0 {
		t.Errorf("both wait: %s", got.Body)
	}
	w.do("POST", path, tn.key, `{"endpoint_id":"`+a+`"}`).problem(http.StatusConflict, "delivery_waiting", "status")
	for _, d := range deliveries {
		w.settle(d, 3, 1)
	}
	got := w.do("POST", path, tn.key, `{"reason":"asked by the customer"}`).want(http.StatusAccepted)
	if made := got.get("deliveries").([]any); len(made) != 2 || made[0].(map[string]any)["replay_of"] == nil {
		t.Errorf("%s", got.Body)
	}
	if len(w.waitingFor(a)) != 1 || len(w.waitingFor(b)) != 1 || w.audited(tn, "event.replay") != 1 {
		t.Error("each endpoint gets it once, and the log tells")
	}
	if n := one[int](w, "SELECT count(*)::int FROM dead_letters WHERE replayed"); n != 2 {
		t.Errorf("%d dead letters were replayed", n)
	}
	// One event that the endpoint never received.
	c := w.active(tn, map[string]any{"event_types": []string{"none"}})
	got = w.do("POST", path, tn.key, `{"endpoint_id":"`+c+`"}`).want(http.StatusAccepted)
	if made := got.get("deliveries").([]any); len(made) != 1 || made[0].(map[string]any)["replay_of"] != nil || len(w.waitingFor(c)) != 1 {
		t.Errorf("%s", got.Body)
	}
	w.balanced()
	w.do("POST", path, tn.key, `{"endpoint_id":"nonsense"}`).problem(http.StatusNotFound, "not_found")
	w.do("POST", path, tn.key, `{"endpoint_id":"`+id.Endpoint.Format(db.NewID())+`"}`).problem(http.StatusNotFound, "not_found")
	w.SQL("UPDATE events SET data = NULL")
	w.do("POST", path, tn.key, nil).problem(http.StatusConflict, "event_expired")
	w.do("POST", "/api/v1/events/"+id.Event.Format(db.NewID())+"/replay", tn.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("POST", "/api/v1/events/"+w.backdate(tn, event, 100*24*time.Hour)+"/replay", tn.key, nil).problem(http.StatusNotFound, "not_found")
}

func TestAResumeDropsHeldDeliveriesOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	path := "/api/v1/endpoints/" + ep + "/"
	w.onlyDelivery(tn, nil)
	// An active endpoint holds nothing, so nothing can be dropped.
	if a := w.do("POST", path+"resume", tn.key, `{"held":"drop"}`).want(http.StatusOK); a.Header.Get("Bulk-Job") != "" {
		t.Errorf("a job drops what an active endpoint is to get: %s", a.Header.Get("Bulk-Job"))
	}
	w.do("POST", path+"pause", tn.key, nil).want(http.StatusOK)
	w.onlyDelivery(tn, nil)
	w.do("POST", path+"resume", tn.key, `{"held":"discard"}`).problem(http.StatusBadRequest, "held_unknown", "held")
	job := w.do("POST", path+"resume", tn.key, `{"held":"drop","reason":"too old to matter"}`).want(http.StatusOK).Header.Get("Bulk-Job")
	after := w.onlyDelivery(tn, nil)
	w.work()
	w.ended(tn, job, "done", 2, "")
	if got := w.deliveries(tn, "status=pending"); !slices.Equal(got, []string{after}) {
		t.Errorf("pending: %q, want what was emitted after the resume", got)
	}
	if a := w.job(tn, job); a.text("reason") != "too old to matter" || a.text("filter.endpoint") != ep || a.get("filter.below") != nil {
		t.Errorf("%s", a.Body)
	}
	w.balanced()
}

func TestFailuresAreGroupedByTheResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("a"), w.tenant("b")
	ep := w.active(tn, nil)
	path := "/api/v1/endpoints/" + ep + "/failures"
	if got := w.do("GET", path, tn.key, nil).want(http.StatusOK); got.get("total") != 0.0 {
		t.Errorf("without failures: %s", got.Body)
	}
	letters := w.dead(tn, 5, nil)
	answer := func(delivery string, status int, body string) {
		uuid, _ := id.Delivery.Parse(delivery)
		w.SQL(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us,
			total_us, url, format, signature, response_excerpt)
			SELECT tenant_id, created_at, gen_random_uuid(), id, endpoint_id, 9, $2, 0, 0, 0, 0, 0, 0, 0, '', 'standard', '', $3::bytea FROM deliveries WHERE id = $1`,
			uuid.String(), status, body)
		w.SQL("UPDATE deliveries SET last_status = $2, last_failure = 0, attempts = 1 WHERE id = $1", uuid.String(), status)
	}
	answer(letters[0], 422, `{"error":{"message":"currency XTS is unknown in order 17"}}`)
	answer(letters[1], 400, "bad request")
	answer(letters[2], 422, `{"error":{"message":"currency XTS is unknown in order 18"}}`)
	answer(letters[3], 400, "bad currency")
	answer(letters[4], 422, `{"error":{"message":"currency XTS is unknown in order 19"}}`)

	a := w.do("GET", path, tn.key, nil).want(http.StatusOK)
	var found api.EndpointFailures
	a.into(&found)
	if len(found.Data) != 3 || found.Total != 5 || found.More {
		t.Fatalf("the groups: %s", a.Body)
	}
	first := found.Data[0]
	if first.Count != 3 || first.Text != "currency XTS is unknown in order …" || !slices.Equal(first.DeliveryIds, []string{letters[4], letters[2], letters[0]}) {
		t.Errorf("the largest group: %+v", first)
	}
	w.do("GET", path, other.key, nil).problem(http.StatusNotFound, "not_found")

	w.start(tn, "/replays", `{"filter":{"ids":["`+letters[0]+`","`+letters[2]+`"]}}`)
	w.work()
	w.do("GET", path, tn.key, nil).want(http.StatusOK).into(&found)
	if first := found.Data[0]; first.Count != 1 || found.Total != 3 || first.Text == "" {
		t.Errorf("after a replay of two: %+v", found)
	}
}
