package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/access"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/views/components"
)

// confirmed are the hidden fields of a confirmation.
func confirmed(p *page) url.Values {
	out := url.Values{}
	for _, m := range regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(p.Body, -1) {
		out.Add(m[1], m[2])
	}
	return out
}

func TestBulkActionsSayFirstToHowManyAndThenStartAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev := tn.of[access.Developer]
	var dead []string
	for i := range 3 {
		dlv := w.delivery(w.emit(tn, "order.paid", fmt.Sprint(i)))
		w.attempt(dlv, tried{status: 500, terminal: 3, reason: 1})
		dead = append(dead, id.Delivery.Format(dlv))
	}
	waiting := id.Delivery.Format(w.delivery(w.emit(tn, "order.paid", "4")))

	list := dev.get(tn.path+"/deliveries").want(200, `data-bulk`, `value="`+dead[0]+`"`, `name="action" value="replay"`)
	list.want(200, "Actions on all results", "Replay all failed…")
	chosen := dev.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "id": append(dead[:2:2], waiting)})
	chosen.want(200, "Replay 2 deliveries?", "1 still in progress", "3 deliveries")
	if n := one[int](w, "SELECT count(*)::int FROM bulk_jobs"); n != 0 {
		t.Fatalf("asking made %d jobs", n)
	}

	dev.get(tn.path+"/deliveries?status=failed").want(200, "Actions on all results")
	all := dev.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "all": {"true"}, "status": {"failed"}, "type": {"order.paid"}})
	form := confirmed(all.want(200, "Replay 3 deliveries?", "order.paid"))
	form.Set("pace", "none")
	again := dev.post(tn.path+"/bulk-jobs", form).want(400, "Pace must be from 1 to 10000 per second.", `value="none"`, "Replay 3 deliveries?")
	form = confirmed(again)
	form.Set("pace", "100")
	form.Set("reason", "the receiver is back")
	job := dev.post(tn.path+"/bulk-jobs", form).to(tn.path + "/bulk-jobs/")
	dev.get(job).want(200, "queued", "0 of 3", "the receiver is back", "Up to 100 per second", `hx-get="`+job+`/live"`, "Cancel job")
	tn.of[access.Viewer].get(job).want(200).lacks("Cancel job")
	if kind := one[string](w, "SELECT kind FROM bulk_jobs"); kind != string(bulk.Replay) || w.audited(tn, "bulk_job.start") != 1 {
		t.Errorf("the job is of %s, and audited %d times", kind, w.audited(tn, "bulk_job.start"))
	}
	w.SQL("UPDATE bulk_jobs SET state = 'running', done = 2, skipped = '{\"held\": 1}'")
	dev.get(job+"/live", "HX-Request", "true").want(200, "2 of 3", "1 held").lacks("<html")
	dev.post(job+"/cancel", nil).to(job)
	dev.get(job).want(200, "canceled", "What it did stays done").lacks("hx-get")
	dev.get(job + "/live").want(286)
	dev.post(job+"/cancel", nil).want(http.StatusConflict, "nothing left to cancel")
	dev.get(tn.path+"/bulk-jobs").want(200, job, "Replay deliveries")
}

func TestBulkActionsRefuseWhatTheyCantDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, theirs := w.tenant("Mine"), w.tenant("Theirs")
	w.endpoint(theirs, "https://hooks.example.com/in")
	foreign := w.delivery(w.emit(theirs, "order.paid", "1"))
	dev := mine.of[access.Developer]
	ask := func(form url.Values) *page { return dev.post(mine.path+"/deliveries/bulk", form) }
	ask(url.Values{"action": {"replay"}}).want(400, "No deliveries are selected")
	ask(url.Values{"action": {"explode"}, "all": {"true"}}).want(400, "action is one of")
	ask(url.Values{"action": {"cancel"}, "all": {"true"}, "status": {"pending"}, "wait": {"breaker"}}).want(400, "reason for waiting")
	ask(url.Values{"action": {"replay"}, "all": {"true"}}).want(400, "Specify which deliveries")
	ask(url.Values{"action": {"replay"}, "all": {"true"}, "status": {"pending"}}).want(400, "Specify which deliveries")
	ask(url.Values{"action": {"cancel"}, "all": {"true"}, "status": {"pending"}, "endpoint": {"ep_nonsense"}}).want(400, "This is not the id of an endpoint")
	ask(url.Values{"action": {"cancel"}, "all": {"true"}, "status": {"pending"}, "endpoint": {id.Endpoint.Format(db.NewID())}}).want(404)
	ask(url.Values{"action": {"cancel"}, "id": {id.Delivery.Format(foreign)}}).want(200, "Nothing to cancel", "None of these deliveries can be canceled").lacks("/bulk-jobs\"")
	if got := dev.get(mine.path+"/bulk-jobs").want(200, "No bulk jobs yet"); strings.Contains(got.Body, "job_") {
		t.Error("there is a job")
	}
}

func TestAnEndpointIsRecoveredFromItsOwnPageAfterACount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	dev := tn.of[access.Developer]
	ep := w.endpoint(tn, "https://shop.example.com/hooks")
	path := tn.path + "/endpoints/" + id.Endpoint.Format(ep)
	if n := strings.Count(dev.get(path).want(200).Body, "Recover since…"); n != 1 {
		t.Errorf("the page of a healthy endpoint offers a recovery %d times, want once, in its menu", n)
	}
	w.SQL("UPDATE endpoints SET status = 'disabled', status_reason = 'failing', status_at = now()")
	for _, offer := range []string{"Recover since…", "Replay missing…"} {
		if n := strings.Count(dev.get(path).want(200).Body, offer); n != 2 {
			t.Errorf("the page of a disabled endpoint offers %q %d times, want twice, in its menu and in its alert", offer, n)
		}
	}
	since := time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05")
	form := url.Values{"action": {"replay"}, "status": {"failed"}, "all": {"true"}, "endpoint": {id.Endpoint.Format(ep)}, "since": {since}}
	dev.post(tn.path+"/deliveries/bulk", form).want(200, "Nothing to replay", "Since")
	missing := url.Values{"action": {"replay_missing"}, "all": {"true"}, "endpoint": {id.Endpoint.Format(ep)}, "since": {since}}
	dev.post(tn.path+"/deliveries/bulk", missing).want(200, "Nothing to send")
	if n := one[int](w, "SELECT count(*)::int FROM bulk_jobs"); n != 0 {
		t.Errorf("counting made %d jobs", n)
	}
	missing.Del("since")
	dev.post(tn.path+"/deliveries/bulk", missing).want(400, "since which deliveries or events are missing")
	missing.Set("from", "other")
	dev.post(tn.path+"/deliveries/bulk", missing).want(400, "since which deliveries or events are missing")
	missing.Set("from", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	dev.post(tn.path+"/deliveries/bulk", missing).want(200, "Nothing to send")
}

// A recovery starts when the endpoint began to fail, unless somebody chooses another time: the first attempt that
// failed ended later than its delivery was created.
func TestARecoveryBeginsWhereFailingBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	ep := w.endpoint(tn, "https://shop.example.com/hooks")
	began := time.Now().Add(-3 * time.Hour).UTC().Truncate(time.Second)
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, unhealthy_since, first_failure_at, last_failure_at, last_status,
		breaker_state, opened_at, next_probe_at) VALUES ($1, $2, 12, $3, $3, now(), 503, 1, $3::timestamptz + interval '5 minutes', now() + interval '1 minute')`,
		tn.id.String(), ep.String(), began)
	dialog := tn.of[access.Developer].get(tn.path+"/endpoints/"+id.Endpoint.Format(ep)).want(200,
		"When it began failing, "+components.Stamp(began), "The last hour", "The last 24 hours", "Another time").Body
	first := regexp.MustCompile(`id="recover-from"[^>]*>\s*<option value="([^"]*)"`).FindStringSubmatch(dialog)
	if first == nil {
		t.Fatal("no choice of times")
	}
	since, err := time.Parse(time.RFC3339, first[1])
	if err != nil || since.After(began.Add(-30*time.Second)) || since.Before(began.Add(-time.Minute)) {
		t.Errorf("the first choice is %v (%v), and failing began at %v", since, err, began)
	}
}

func TestFailuresSinceYesterdayAreOneClickAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	w.attempt(w.delivery(w.emit(tn, "order.paid", `{}`)), tried{status: 422, terminal: 3, reason: 2})
	owner := tn.of[access.Owner]
	_, rest, _ := strings.Cut(owner.get(tn.path+"/deliveries").want(200, "Failed since yesterday").lacks("Replay all results").Body, `href="`+tn.path+`/deliveries?since=`)
	since, _, _ := strings.Cut(rest, "&")
	list := owner.get(tn.path+"/deliveries?since="+since+"&status=dead_letter").want(200, "Replay all results…", `aria-current="true"`)
	if !strings.Contains(list.Body, `name="since" value="`) {
		t.Error("the replay is not limited to the time")
	}
	tn.of[access.Viewer].get(tn.path + "/deliveries?status=dead_letter").want(200).lacks("Replay all results")
	at, err := url.QueryUnescape(since)
	if err != nil {
		t.Fatal(err)
	}
	if day, err := time.Parse(time.RFC3339, at); err != nil || time.Since(day) < 24*time.Hour ||
		time.Since(day) > 48*time.Hour {
		t.Errorf("yesterday begins at %s", at)
	}
	owner.post(tn.path+"/deliveries/bulk", url.Values{"all": {"true"}, "action": {"replay"}, "status": {"dead_letter"}, "since": {at}}).want(200, "Replay 1 delivery")
}

// Four clicks: Replay all failed, Send one first, and Send the other 2.
func TestAReplayCanSendOneFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	for i := range 3 {
		w.attempt(w.delivery(w.emit(tn, "order.paid", fmt.Sprint(i))), tried{status: 500, terminal: 3, reason: 1})
	}
	ask := dev.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "all": {"true"}, "status": {"failed"}})
	form := confirmed(ask.want(200, "Replay 3 deliveries", `name="sample"`, "Send one first"))
	form.Set("sample", "true")
	job := dev.post(tn.path+"/bulk-jobs", form).to(tn.path + "/bulk-jobs/")
	dev.get(job).want(200, "sampled", "1 of 3", "One was sent", "The first delivery", "Send the other 2", "Stop here", `hx-trigger="every 1s"`).lacks("Cancel job")
	viewer.get(job).want(200, "The first delivery").lacks("Send the other 2", "Stop here")
	ask.keep("replay-confirm")
	viewer.post(job+"/continue", nil).want(http.StatusForbidden)

	sample := id.UUID(one[[16]byte](w, "SELECT id FROM deliveries WHERE replay_of IS NOT NULL"))
	w.attempt(sample, tried{status: 422, answer: "currency XTS is unknown", terminal: 3, reason: 2})
	dev.get(job+"/live", "HX-Request", "true").want(200, "422", "currency XTS is unknown", "What to do", id.Delivery.Format(sample)).lacks("<html")
	dev.get(job).keep("replay-sample")
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(job).want(200, "see responses").lacks("XTS")

	dev.post(job+"/continue", nil).to(job)
	dev.get(job).want(200, "queued", "1 of 3").lacks("Send the other")
	dev.post(job+"/continue", nil).want(http.StatusConflict, "Something changed in the meantime")

	again := dev.post(tn.path+"/bulk-jobs", form).to(tn.path + "/bulk-jobs/")
	dev.post(again+"/cancel", nil).to(again)
	dev.get(again).want(200, "canceled", "Stopped after the sample.")

	archive := dev.post(tn.path+"/deliveries/bulk", url.Values{"action": {"archive"}, "all": {"true"}, "status": {"failed"}})
	archive.want(200, "Archive 4 deliveries").lacks("Send one first")
}

func TestAReplayIsFollowedOnEveryPageUntilItIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev := tn.of[access.Developer]
	for i := range 3 {
		w.attempt(w.delivery(w.emit(tn, "order.paid", fmt.Sprint(i))), tried{status: 500, terminal: 3, reason: 1})
	}
	start := func(form url.Values) string { return dev.post(tn.path+"/bulk-jobs", form).to(tn.path + "/bulk-jobs/") }
	dev.get(tn.path + "/endpoints").want(200).lacks("job-watch")
	start(url.Values{"action": {"archive"}, "all": {"true"}, "status": {"canceled"}})
	dev.get(tn.path + "/endpoints").want(200).lacks("job-watch")

	job := start(url.Values{"action": {"replay"}, "all": {"true"}, "status": {"failed"}})
	dev.get(job).want(200).lacks("job-watch")
	for _, page := range []string{"", "/endpoints", "/deliveries"} {
		dev.get(tn.path+page).want(200, `hx-get="`+job+`/watch"`, "load, every 3s", job+"/dismiss").keep("replay-watch")
	}
	tn.of[access.Owner].get(tn.path + "/endpoints").want(200).lacks("job-watch")
	dev.get(job+"/watch", "HX-Request", "true").want(200, "0 of 3 delivered yet", "every 3s").lacks("<html")
	other.of[access.Owner].get(job + "/watch").want(404)

	due, err := deliveries.DueBulkJobs(t.Context(), w.db, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range due {
		if _, err := deliveries.StepBulkJob(t.Context(), w.db, one); err != nil {
			t.Fatal(err)
		}
	}
	var made []id.UUID
	for i := range 3 {
		made = append(made, id.UUID(one[[16]byte](w, "SELECT id FROM deliveries WHERE replay_of IS NOT NULL ORDER BY id OFFSET $1 LIMIT 1", i)))
	}
	w.attempt(made[0], tried{status: 204, terminal: 2})
	w.attempt(made[1], tried{status: 500, terminal: 3, reason: 1})
	dev.get(job+"/watch", "HX-Request", "true").want(200, "1 of 3 delivered yet, 1 failed again", "Dismiss")
	w.attempt(made[2], tried{status: 204, terminal: 2})
	dev.get(job+"/watch", "HX-Request", "true").want(286, "2 of 3 delivered, 1 failed again").lacks("hx-get", "Dismiss")
	dev.get(tn.path + "/endpoints").want(200).lacks("job-watch")

	again := start(url.Values{"action": {"replay"}, "all": {"true"}, "status": {"failed"}})
	at := tn.path + "/deliveries?status=failed"
	dev.get(at).want(200, "job-watch")
	dev.post(again+"/dismiss", nil, "Referer", base+at).to(at)
	dev.get(at).want(200).lacks("job-watch")
	dev.post(again+"/dismiss", nil, "Referer", "https://elsewhere.example.com"+other.path+"/").to(tn.path)
}
