package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// deadLetters is a tenant with one delivery for each way to be a dead letter or to look like one.
type deadLetters struct {
	tenant
	endpoint string
	open     []string // the dead letters
	replayed string
}

func (w *world) deadLetters(name string) deadLetters {
	d := deadLetters{tenant: w.tenant(name)}
	d.endpoint = w.active(d.tenant, nil)
	failed := func() string {
		dlv := w.onlyDelivery(d.tenant, nil)
		w.settle(dlv, 3, 1)
		return dlv
	}
	d.open = []string{failed(), failed(), failed()}
	d.replayed = failed()
	w.do("POST", "/api/v1/deliveries/"+d.replayed+"/replay", d.key, nil).want(http.StatusAccepted)
	w.do("POST", "/api/v1/deliveries/"+failed()+"/archive", d.key, nil).want(http.StatusOK)
	w.settle(w.onlyDelivery(d.tenant, nil), 2, 0)
	listened := failed()
	w.SQL(`WITH e AS (INSERT INTO endpoints (tenant_id, id, url, event_types, kind, status, created_at)
		SELECT tenant_id, gen_random_uuid(), 'listen', '{order.*}', 'listen', 'active', now() FROM endpoints WHERE id = $2 RETURNING id)
		UPDATE deliveries SET endpoint_id = (SELECT id FROM e) WHERE id = $1`, w.uuid(id.Delivery, listened), w.uuid(id.Endpoint, d.endpoint))
	w.SQL("UPDATE dead_letters SET trial = true, endpoint_id = (SELECT endpoint_id FROM deliveries WHERE id = $1) WHERE delivery_id = $1", w.uuid(id.Delivery, listened))
	return d
}

func TestAllCountsOfDeadLettersAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deadLetters("a")
	if got := w.deliveries(d.tenant, "status=dead_letter"); !slices.Equal(got, []string{d.open[2], d.open[1], d.open[0]}) {
		t.Errorf("the list holds %q, want %q", got, d.open)
	}
	marked := 0
	for _, row := range w.do("GET", "/api/v1/deliveries?limit=100", d.key, nil).want(http.StatusOK).get("data").([]any) {
		if row.(map[string]any)["dead_letter"].(bool) {
			marked++
		}
	}
	counts := map[string]int64{"deliveries that say that they are one": int64(marked)}
	for name, request := range map[string]string{
		"POST /api/v1/replays":         `{"filter":{"status":"dead_letter"},"dry_run":true}`,
		"POST /api/v1/deliveries/bulk": `{"action":"archive","filter":{"status":"dead_letter"},"dry_run":true}`,
	} {
		e := w.do("POST", name[len("POST "):], d.key, request).want(http.StatusOK)
		counts["a dry run of "+name] = int64(e.get("expected").(float64))
		if skipped := e.get("skipped").(map[string]any); len(skipped) > 0 {
			t.Errorf("%s leaves some alone: %v", name, skipped)
		}
	}
	own, err := id.Tenant.Parse(d.id)
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(*db.Tx) (int64, error){
		"the metric": func(q *db.Tx) (int64, error) { return q.CountDeadLetters(t.Context()) },
		"the tenant's pages": func(q *db.Tx) (int64, error) {
			return q.CountDeadLettersOf(t.Context(), sql.CountDeadLettersOfParams{TenantID: own, Limit: 100})
		},
	} {
		if err := w.db.Worker(t.Context(), func(q *db.Tx) (err error) {
			counts[name], err = ask(q)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.db.Console(t.Context(), func(q *db.Tx) error {
		totals, err := q.ConsoleTotals(t.Context(), 30)
		if err != nil {
			return err
		}
		counts["the console's overview"] = totals.DeadLetters
		page, err := deliveries.ListCrossTenant(t.Context(), q, deliveries.ListOptions{Status: delivery.DeadLetter, Range: show.Range{Limit: 100}})
		counts["the console's list"] = int64(len(page.Rows))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, n := range counts {
		if n != int64(len(d.open)) {
			t.Errorf("%s: %d, want %d", name, n, len(d.open))
		}
	}
	if got := w.do("GET", "/api/v1/deliveries?status=failed", d.key, nil).want(http.StatusOK).get("data").([]any); len(got) != len(d.open)+1 {
		t.Errorf("status=failed lists %d, want all that failed but the archived and the listener's", len(got))
	}
}

func TestADeliveryIsReplayedOnceUnlessAgainIsSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deadLetters("a")
	to := "/api/v1/deliveries/" + d.replayed + "/replay"
	first := w.do("GET", "/api/v1/deliveries/"+d.replayed, d.key, nil).text("replayed_by")
	w.do("POST", to, d.key, nil).problem(http.StatusConflict, "delivery_replayed", "replayed_by")
	again := w.do("POST", to, d.key, `{"again":true}`).want(http.StatusAccepted).text("id")
	if by := w.do("GET", "/api/v1/deliveries/"+d.replayed, d.key, nil).text("replayed_by"); by != again || again == first {
		t.Errorf("replayed_by is %s; the replays were %s and %s", by, first, again)
	}
	var accepted atomic.Int32
	parallel(t, 8, func(int) {
		if w.do("POST", "/api/v1/deliveries/"+d.open[0]+"/replay", d.key, nil).Status == http.StatusAccepted {
			accepted.Add(1)
		}
	})
	if n := accepted.Load(); n != 1 {
		t.Errorf("of eight presses at once %d replayed it", n)
	}
}

// Replaying an event to all its endpoints skips deleted ones: their dead letters stay.
func TestReplayingAnEventSettlesTheDeadLettersOfThoseThatGetItAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	stays, goes := w.active(tn, nil), w.active(tn, nil)
	event := w.emit(tn, nil)
	for _, dlv := range w.deliveries(tn, "") {
		w.settle(dlv, 3, 1)
	}
	w.do("DELETE", "/api/v1/endpoints/"+goes, tn.key, nil)
	w.do("POST", "/api/v1/events/"+event+"/replay", tn.key, nil).want(http.StatusAccepted)
	left := w.do("GET", "/api/v1/deliveries?status=dead_letter", tn.key, nil).want(http.StatusOK).get("data").([]any)
	if len(left) != 1 || left[0].(map[string]any)["endpoint_id"] != goes {
		t.Errorf("dead letters after the replay: %v; want that to %s alone, not that to %s", left, goes, stays)
	}
}

func TestABulkJobSaysWhatBecameOfWhatItMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deadLetters("a")
	job := w.do("POST", "/api/v1/replays", d.key, `{"filter":{"status":"dead_letter"}}`).want(http.StatusAccepted).text("id")
	jobID, err := id.Job.Parse(job)
	if err != nil {
		t.Fatal(err)
	}
	own, err := id.Tenant.Parse(d.id)
	if err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		step, err := deliveries.StepBulkJob(t.Context(), w.db, deliveries.BulkRef{TenantID: own, ID: jobID})
		if err != nil {
			t.Fatal(err)
		}
		over = step.Over
	}
	made := w.deliveries(d.tenant, "job="+job)
	if len(made) != 3 {
		t.Fatalf("the job's list holds %q", made)
	}
	w.settle(made[0], 2, 0)
	w.settle(made[1], 3, 1)
	got := w.do("GET", "/api/v1/bulk-jobs/"+job, d.key, nil).want(http.StatusOK).get("outcome")
	want := map[string]any{"made": 3.0, "delivered": 1.0, "failed": 1.0, "canceled": 0.0, "waiting": 1.0, "exact": true}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outcome %v, want %v", got, want)
	}
	if failed := w.deliveries(d.tenant, "job="+job+"&status=failed"); !slices.Equal(failed, made[1:2]) {
		t.Errorf("its failed ones: %q", failed)
	}
	if other := w.tenant("b"); len(w.deliveries(other, "job="+job)) != 0 {
		t.Error("another tenant sees what the job made")
	}
}
