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

	// A page that was opened before the replay sends it nothing twice.
	b.post(at+"/replay", url.Values{}).want(http.StatusConflict, "was replayed before", "Replay again")
	b.post(at+"/replay", url.Values{"again": {"true"}}).want(http.StatusSeeOther)
	if n := one[int](w, "SELECT count(*)::int FROM deliveries WHERE replay_of = $1", dlv); n != 2 {
		t.Errorf("%d replays, want 2", n)
	}
	b.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "all": {"true"}, "status": {"failed"}}).
		want(http.StatusOK, "Nothing to replay", "1 replayed before").lacks("Replay 0")
	b.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "id": {text}}).want(http.StatusOK, "Replay 1 delivery", "replayed before, and is sent once more")
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
	u, err := id.Job.Parse(job)
	if err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		step, err := deliveries.StepBulkJob(t.Context(), w.db, deliveries.BulkRef{TenantID: tn.id, ID: u})
		if err != nil {
			t.Fatal(err)
		}
		over = step.Over
	}
	b.get(to).want(http.StatusOK, "New deliveries", "What became of the 2 deliveries that this job made", "/deliveries?job="+job+`"`)
	made := one[id.UUID](w, "SELECT delivery_id FROM replays WHERE job_id = $1 LIMIT 1", u)
	w.attempt(made, tried{status: 200, terminal: 2})
	b.get(to).want(http.StatusOK, "status=delivered")
	b.get(tn.path+"/deliveries?job="+job).want(http.StatusOK, id.Delivery.Format(made), "bulk job")
	b.get(tn.path+"/deliveries?status=delivered&job="+job).want(http.StatusOK, id.Delivery.Format(made))
	b.get(tn.path+"/deliveries/"+id.Delivery.Format(made)).want(http.StatusOK, to)
}
