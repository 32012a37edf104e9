package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/listen"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

// inboxOf creates a test inbox with the button, and returns the id in its path.
func (w *world) inboxOf(tn tenant) (path string, ep id.UUID) {
	w.t.Helper()
	path = tn.of[access.Developer].post(tn.path+"/inboxes", nil).to(tn.path + "/endpoints/ep_")
	ep, err := id.Endpoint.Parse(strings.TrimSuffix(strings.TrimPrefix(path, tn.path+"/endpoints/"), "/inbox"))
	if err != nil || !strings.HasSuffix(path, "/inbox") {
		w.t.Fatal(path, err)
	}
	return path, ep
}

// receive stores a request as the receiver does.
func (w *world) receive(tn tenant, ep id.UUID, r listen.InboxRequest) {
	w.t.Helper()
	r.Method, r.At = "POST", time.Now()
	err := w.db.Tenant(w.t.Context(), tn.id, func(q *db.Tx) error {
		_, _, err := listen.ReceiveInInbox(w.t.Context(), q, w.ring, tn.id, ep, r)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestATestInboxShowsWhatArrivedAndAnswersAsChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	dev.get(tn.path+"/endpoints").want(200, "Create test inbox")
	dev.get(tn.path+"/endpoints/new").want(200, "Create test inbox")
	dev.get(tn.path).want(200, "Create test inbox")
	viewer.get(tn.path + "/endpoints").want(200).lacks("Create test inbox")
	path, ep := w.inboxOf(tn)
	dev.get(path).want(200, "Nothing has arrived yet", "This is your test inbox", "Then it gets a test event", base+"/inbox/", "Send the challenge", "nverified<")
	// it waits for the verification
	if n := one[int](w, "SELECT count(*)::int FROM deliveries WHERE endpoint_id = $1 AND event_type = 'endpoint.test'", ep.String()); n != 1 {
		t.Errorf("%d test events are on their way", n)
	}
	w.SetStatus(ep.String(), "active")
	dev.get(path, "HX-Request", "true").want(200, `id="endpoint-state" hx-swap-oob="true"`, "ctive<")
	dev.post(strings.TrimSuffix(path, "/inbox")+"/test", url.Values{"from": {"inbox"}}).to(path)
	dev.get(path).want(200, "The test event was sent.", `name="from" value="inbox"`).lacks(`href="` + strings.TrimSuffix(path, "/inbox") + `/test" class="btn`)
	w.receive(tn, ep, listen.InboxRequest{
		Header: http.Header{"X-Markup": {"<b>bold</b>"}, "Authorization": {"Bearer canary"}},
		Body:   []byte(`{"card":"<i>unmistakable</i>"}`),
	})
	got := dev.get(path).want(200, "&lt;b&gt;bold", "&lt;i&gt;unmistakable", "Invalid signature", "webhook-signature", "Send test event").lacks("canary", "<i>unmistakable")
	if part := dev.get(path, "HX-Request", "true").want(200, "unmistakable"); strings.Contains(part.Body, "<html") || !strings.Contains(got.Body, `hx-get="`+path+`"`) {
		t.Error("the part that is renewed")
	}
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(path).want(200, "Your role can't see", "Delivery").lacks("unmistakable", "bold", "Clear inbox")
	w.setting(tn, "viewers_read_payloads", true)
	viewer.get(path).want(200, "unmistakable")

	dev.post(path+"/answer", url.Values{"answer": {"teapot"}}).want(http.StatusBadRequest, "Unknown response")
	dev.post(path+"/answer", url.Values{"answer": {"500"}}).to(path)
	dev.post(path+"/answer", url.Values{"answer": {"500"}}).to(path)
	w.receive(tn, ep, listen.InboxRequest{Header: http.Header{}, Body: nil})
	dev.get(path).want(200, "500", "There was no body")
	for range 101 {
		w.receive(tn, ep, listen.InboxRequest{Header: http.Header{}, Body: []byte("many")})
	}
	if n := one[int](w, "SELECT count(*)::int FROM inbox_requests"); n != 100 {
		t.Errorf("%d requests are kept", n)
	}
	dev.get(path).want(200).lacks("unmistakable")
	w.SQL("UPDATE inbox_requests SET received_at = now() - interval '25 hours'")
	dev.get(path).want(200, "Nothing has arrived yet")
	dev.post(path+"/clear", nil).to(path)
	for action, n := range map[string]int{"endpoint.create": 1, "endpoint.inbox_answer": 1, "endpoint.inbox_empty": 1} {
		if got := w.audited(tn, action); got != n {
			t.Errorf("%s stands %d times in the audit log", action, got)
		}
	}
	for range 4 {
		w.inboxOf(tn)
	}
	dev.post(tn.path+"/inboxes", nil).want(http.StatusConflict, "up to 5 test inboxes")
}

func TestAnInboxIsNoOrdinaryEndpointAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	dev := tn.of[access.Developer]
	ordinary := w.endpoint(tn, "https://hooks.example.com/in")
	dev.get(tn.path + "/endpoints/" + id.Endpoint.Format(ordinary) + "/inbox").want(http.StatusNotFound)
	path, ep := w.inboxOf(tn)
	settings := strings.TrimSuffix(path, "/inbox") + "/settings"
	form := url.Values{
		"url":             {"https://hooks.example.com/elsewhere"},
		"scope":           {"all"},
		"format":          {"standard"},
		"prefix":          {"Webhook"},
		"retry_policy":    {"standard"},
		"timeout_seconds": {"15"},
		"max_in_flight":   {"5"},
		"ordering":        {"none"},
		"verification":    {"challenge"},
	}
	dev.post(settings, form).want(http.StatusBadRequest, "can&#39;t be changed")
	form.Set("url", one[string](w, "SELECT url FROM endpoints WHERE id = $1", ep.String()))
	dev.post(settings, form).to(settings)
	w.receive(tn, ep, listen.InboxRequest{Header: http.Header{}, Body: []byte("x")})
	foreign := other.of[access.Owner]
	foreign.get(other.path + "/endpoints/" + id.Endpoint.Format(ep) + "/inbox").want(http.StatusNotFound)
	dev.post(strings.TrimSuffix(path, "/inbox")+"/delete", nil).to(tn.path + "/endpoints")
	if n := one[int](w, "SELECT (SELECT count(*) FROM inbox_requests)::int + (SELECT count(*) FROM inboxes)::int"); n != 0 {
		t.Errorf("%d rows of the inbox are left", n)
	}
}
