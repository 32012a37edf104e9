package api_test

import (
	"net/http"
	"testing"
)

func TestASampleIsSentFirstAndTheRestOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("a"), w.tenant("b")
	w.active(tn, nil)
	letters := w.dead(tn, 4, nil)
	w.SQL("UPDATE dead_letters SET replayed = true WHERE delivery_id = (SELECT min(delivery_id::text)::uuid FROM dead_letters)")

	a := w.do("POST", "/api/v1/replays", tn.key, `{"filter":{"status":"failed"},"sample":true}`).want(http.StatusAccepted)
	job, sample := a.text("id"), a.text("sample_id")
	if a.text("state") != "sampled" || a.get("done") != 1.0 || a.get("expected") != 3.0 || a.get("decide_by") == nil {
		t.Errorf("the job after its sample: %s", a.Body)
	}
	if got := a.get("sample.id"); got != sample || a.get("sample.replay_of") != letters[1] {
		t.Errorf("the sample is %v, of %v, want the oldest that can be sent, %s", got, a.get("sample.replay_of"), letters[1])
	}
	if w.step() {
		t.Error("a worker took a job that waits for a decision")
	}
	if n := one[int](w, "SELECT count(*)::int FROM queue"); n != 1 {
		t.Errorf("%d are queued, want the sample alone", n)
	}

	path := "/api/v1/bulk-jobs/" + job
	w.do("POST", path+"/continue", other.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("POST", path+"/continue", tn.key, `{"reason":"it works"}`).want(http.StatusOK)
	w.do("POST", path+"/continue", tn.key, nil).problem(http.StatusConflict, "bulk_job_not_sampled", "state")
	w.work()
	w.ended(tn, job, "done", 3, "replayed 1")
	if done := w.job(tn, job); done.text("sample_id") != sample || done.get("decide_by") != nil {
		t.Errorf("the job at its end: %s", done.Body)
	}
	if n := one[int](w, "SELECT count(DISTINCT replay_of)::int FROM deliveries WHERE replay_of IS NOT NULL"); n != 3 {
		t.Errorf("%d dead letters were sent again, want 3", n)
	}
	if n := w.audited(tn, "bulk_job.continue"); n != 1 {
		t.Errorf("the decision is audited %d times", n)
	}
	w.balanced()
}

func TestASampleOfSelectedOnesAndOfMissingEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	letters := w.dead(tn, 3, nil)
	named := w.do("POST", "/api/v1/replays", tn.key, `{"filter":{"ids":["`+letters[2]+`","`+letters[0]+`"]},"sample":true}`).want(http.StatusAccepted)
	if named.get("sample.replay_of") != letters[0] {
		t.Errorf("the sample is of %v, want the oldest", named.get("sample.replay_of"))
	}
	w.do("POST", "/api/v1/bulk-jobs/"+named.text("id")+"/cancel", tn.key, nil).want(http.StatusOK)
	w.work()
	w.ended(tn, named.text("id"), "canceled", 1, "")

	w.SQL("DELETE FROM deliveries WHERE replay_of IS NULL")
	w.SQL("DELETE FROM dead_letters")
	w.SQL("DELETE FROM deliveries")
	w.SQL("DELETE FROM queue")
	missing := w.do("POST", "/api/v1/endpoints/"+ep+"/replay-missing", tn.key, `{"since":"2020-01-01T00:00:00Z","sample":true}`).want(http.StatusAccepted)
	if missing.text("state") != "sampled" || missing.get("done") != 1.0 {
		t.Fatalf("the job after its sample: %s", missing.Body)
	}
	w.do("POST", "/api/v1/bulk-jobs/"+missing.text("id")+"/continue", tn.key, nil).want(http.StatusOK)
	w.SQL("UPDATE bulk_jobs SET created_at = created_at - interval '1 minute'")
	w.work()
	w.ended(tn, missing.text("id"), "done", 3, "")
}

func TestAJobWithoutADecisionIsCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	w.dead(tn, 2, nil)
	job := w.start(tn, "/replays", `{"filter":{"status":"failed"},"sample":true}`)
	w.step()
	if state := w.job(tn, job).text("state"); state != "sampled" {
		t.Fatalf("the job is %s", state)
	}
	w.SQL("UPDATE bulk_jobs SET due_at = now()")
	w.step()
	w.ended(tn, job, "canceled", 1, "")

	// The rest is one: with nothing beyond the sample there is nothing to decide.
	only := w.start(tn, "/replays", `{"filter":{"status":"failed"},"sample":true}`)
	w.work()
	w.ended(tn, only, "done", 1, "replayed 1")
	none := w.start(tn, "/replays", `{"filter":{"status":"failed"},"sample":true}`)
	w.work()
	w.ended(tn, none, "done", 0, "replayed 2")
}
