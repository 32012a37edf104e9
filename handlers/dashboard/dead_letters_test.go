package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db/deliveries"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestPagesLinkADeliveryAndItsReplayBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	w.endpoint(tn, "https://hooks.example.com/in")
	dlv := w.delivery(w.emit(tn, "order.paid", `{"n":1}`))
	w.attempt(dlv, tried{status: 422, terminal: 3, reason: 2})
	text := id.Delivery.Format(dlv)
	at, b := tn.path+"/deliveries/"+text, tn.of[access.Developer]
	b.get(at).want(http.StatusOK, ">Replay<").lacks("Replay again", "Replayed by")

	made := b.post(at+"/replay", url.Values{}).want(http.StatusSeeOther).to(tn.path + "/deliveries/dlv_")
	again := made[strings.LastIndex(made, "/")+1:]
	b.get(at).want(http.StatusOK, "Replayed", `href="`+tn.path+"/deliveries/"+again+`"`, "Replay again", `name="again"`)
	b.get(made).want(http.StatusOK, "Replay of", `href="`+at+`"`)
	b.get(tn.path+"/deliveries?status=failed").want(http.StatusOK, text, "Replayed as", again)
	b.get(tn.path + "/deliveries?status=dead_letter").want(http.StatusOK).lacks(text)

	// A page that was opened before the replay sends nothing twice.
	b.post(at+"/replay", url.Values{}).want(http.StatusConflict, "was already replayed", "Replay again")
	b.post(at+"/replay", url.Values{"again": {"true"}}).want(http.StatusSeeOther)
	if n := one[int](w, "SELECT count(*)::int FROM deliveries WHERE replay_of = $1", dlv); n != 2 {
		t.Errorf("%d replays, want 2", n)
	}
	b.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "all": {"true"}, "status": {"failed"}}).
		want(http.StatusOK, "Nothing to replay", "1 already replayed").lacks("Replay 0")
	b.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "id": {text}}).want(http.StatusOK, "Replay 1 delivery", "already replayed and will be sent again")
}

func TestAJobsPageShowsWhatBecameOfWhatItMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	w.endpoint(tn, "https://hooks.example.com/in")
	for range 2 {
		w.attempt(w.delivery(w.emit(tn, "order.paid", `{}`)), tried{status: 422, terminal: 3, reason: 2})
	}
	b := tn.of[access.Developer]
	to := b.post(tn.path+"/bulk-jobs", url.Values{"action": {"replay"}, "all": {"true"}, "status": {"dead_letter"}}).want(http.StatusSeeOther).to(tn.path + "/bulk-jobs/job_")
	job := to[strings.LastIndex(to, "/")+1:]
	jobID, err := id.Job.Parse(job)
	if err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		step, err := deliveries.StepBulkJob(t.Context(), w.db, deliveries.BulkRef{TenantID: tn.id, ID: jobID})
		if err != nil {
			t.Fatal(err)
		}
		over = step.Over
	}
	b.get(to).want(http.StatusOK, "New deliveries", "Outcome of the 2 deliveries created by this job", "/deliveries?job="+job+`"`)
	made := one[id.UUID](w, "SELECT delivery_id FROM replays WHERE job_id = $1 LIMIT 1", jobID)
	w.attempt(made, tried{status: 200, terminal: 2})
	b.get(to).want(http.StatusOK, "status=delivered")
	b.get(tn.path+"/deliveries?job="+job).want(http.StatusOK, id.Delivery.Format(made), "bulk job")
	b.get(tn.path+"/deliveries?status=delivered&job="+job).want(http.StatusOK, id.Delivery.Format(made))
	b.get(tn.path+"/deliveries/"+id.Delivery.Format(made)).want(http.StatusOK, to)
}
