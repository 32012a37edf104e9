package dashboard_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/views/pages"
)

// newForm is the form for a new endpoint with nothing but the URL filled in.
func newForm(change ...string) url.Values {
	form := url.Values{
		"url":             {"https://hooks.acme-logistics.com/orders?token=canary"},
		"scope":           {"all"},
		"format":          {"standard"},
		"prefix":          {"Webhook"},
		"retry_policy":    {"standard"},
		"timeout_seconds": {"15"},
		"max_in_flight":   {"5"},
		"rate_limit":      {"50"},
		"burst":           {""},
		"ordering":        {"none"},
		"verification":    {"challenge"},
		"filter":          {""},
		"channels":        {""},
		"custom_headers":  {""},
		"payload_version": {""},
		"description":     {"Orders, production"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return form
}

var endpointInPage = regexp.MustCompile(`/t/ten_[a-z0-9]+/endpoints/(ep_[a-z0-9]+)`)

// desk is a world with one tenant and its members.
type desk struct {
	*world
	tn   tenant
	root string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	w := newWorld(t)
	tn := w.tenant("Acme Logistics")
	return &desk{w, tn, tn.path}
}

func (d *desk) as(role access.Role) *browser { return d.tn.of[role] }

// add creates an endpoint as its owner does, and returns its path.
func (d *desk) add(change ...string) string {
	d.t.Helper()
	got := d.as(access.Owner).next(d.root+"/endpoints", newForm(change...)).want(http.StatusOK, "whsec_").keep("endpoint-created")
	return endpointInPage.FindString(got.Body)
}

// activate makes an endpoint active as its verification would.
func (d *desk) activate(path string) {
	d.t.Helper()
	endpointID, err := id.Endpoint.Parse(path[strings.LastIndexByte(path, '/')+1:])
	if err != nil {
		d.t.Fatal(err)
	}
	d.SetStatus(endpointID.String(), "active")
}

// keep writes a page to the folder that POSTHORN_PAGES names, for people to view.
func (p *page) keep(name string) *page {
	p.t.Helper()
	if to := os.Getenv("POSTHORN_PAGES"); to != "" {
		if err := os.WriteFile(filepath.Join(to, name+".html"), []byte(p.Body), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	return p
}

func TestANewTenantIsToldWhatToDoFirst(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	owner.get(w.root+"/").want(200, "First steps", "Add an endpoint", "No deliveries yet").keep("overview-new")
	owner.get(w.root+"/endpoints").want(200, "No endpoints yet").keep("endpoints-empty")
	owner.get(w.root + "/endpoints/new").want(200).keep("endpoint-new")
	w.as(access.Viewer).get(w.root + "/endpoints").want(200).lacks("Add endpoint").keep("endpoints-viewer")
}

func TestAListMarksInboxesAndListeners(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner, words := w.as(access.Owner), map[string]string{"listen": "listener", "inbox": "test inbox"}
	ep := w.endpoint(w.tn, "http://localhost:3000/hook")
	owner.get(w.root+"/endpoints").want(200, "localhost:3000").lacks(words["listen"], words["inbox"])
	w.SQL("INSERT INTO listeners (tenant_id, endpoint_id) VALUES ($1, $2)", w.tn.id.String(), ep.String())
	for kind, word := range words {
		w.SQL("UPDATE endpoints SET kind = $2 WHERE id = $1", ep.String(), kind)
		owner.get(w.root+"/endpoints?kind="+kind).want(200, ">"+word+"<").keep("endpoints-" + kind)
		if kind == "listen" { // it comes and goes: a list has it only if it is asked for
			owner.get(w.root+"/endpoints").want(200, "Without listeners").lacks("localhost:3000")
		}
	}
}

func TestAnOverviewShowsWhatHappenedAndWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	good, bad := w.endpoint(w.tn, "https://hooks.acme-logistics.com/orders"), w.endpoint(w.tn, "https://erp.acme-logistics.com/in?key=canary")
	for _, kind := range []string{"order.completed", "invoice.paid", "order.completed", "shipment.delayed"} {
		ev := w.emit(w.tn, kind, `{"total":129.5}`)
		for _, ep := range []id.UUID{good, bad} {
			dlv := id.UUID(one[[16]byte](w.world, "SELECT id FROM deliveries WHERE event_id = $1 AND endpoint_id = $2", ev.String(), ep.String()))
			if ep == good {
				w.attempt(dlv, tried{status: 200, answer: "ok", terminal: 2})
			} else {
				w.attempt(dlv, tried{status: 503, answer: "down"})
			}
		}
	}
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, unhealthy_since, first_failure_at, last_failure_at, last_status, last_error,
		breaker_state, opened_at, next_probe_at)
		VALUES ($1, $2, 12, now() - interval '3 days', now() - interval '3 days', now(), 503, 'The server said 503.', 1, now(), now() + interval '40 seconds')`,
		w.tn.id.String(), bad.String())
	w.SQL(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, event_type, width, bucket, kind, n, us)
		SELECT $1, e.id, 'order.completed', 3600, date_trunc('hour', now()) - make_interval(hours => h), CASE WHEN e.id = $3 AND h < 6 THEN 3 * 16 + 9 ELSE 6 END,
			(200 + 120 * sin(h / 3.0))::int, 20000000
		FROM generate_series(2, 22) h, (VALUES ($2::uuid), ($3::uuid)) e(id)`, w.tn.id.String(), good.String(), bad.String())
	w.as(access.Owner).get(w.root+"/").want(200, "Endpoints with the highest failure rate", "erp.acme-logistics.com", "order.completed").lacks("canary", "First steps").keep("overview-busy")
	w.as(access.Owner).get(w.root+"/endpoints/"+id.Endpoint.Format(bad)).want(200, "Endpoint failing", ">failing<", "Probe now", "will be disabled", "503").keep("endpoint-failing")
	w.as(access.Viewer).get(w.root+"/live", "HX-Request", "true").want(200, "on hold", "delivered").lacks("<html")
	w.as(access.Owner).get(w.root+"/endpoints").want(200, "erp.acme-logistics.com").keep("endpoints-busy")
}

func TestEveryPageOfAnEndpointIsSound(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner, viewer := w.as(access.Owner), w.as(access.Viewer)
	path := w.add()
	owner.get(path).want(200, "Verification", "unverified").keep("endpoint-unverified").lacks("canary")
	w.activate(path)
	for _, tab := range []string{"", "/settings", "/filter", "/secrets", "/test"} {
		owner.get(path + tab).want(200).keep("endpoint" + strings.ReplaceAll(tab, "/", "-"))
		if tab != "/test" {
			viewer.get(path+tab).want(200).keep("viewer"+strings.ReplaceAll(tab, "/", "-")).lacks("canary", "Delete endpoint", "whsec_")
		}
	}
	owner.get(w.root+"/").want(200, "Overview").keep("overview")
	owner.get(w.root+"/endpoints").want(200, "hooks.acme-logistics.com").keep("endpoints").lacks("canary")
	owner.get(w.root+"/endpoints?q=nowhere").want(200, "No results").keep("endpoints-filtered")
	owner.get(w.root + "/endpoints?q=&status=").want(200)
	owner.get(w.root+"/endpoints?status=lost").want(400, "status must be one of")
	owner.get(w.root+"/endpoints?nonsense=1").want(400, "nonsense")
	for _, part := range []string{w.root + "/live", path + "/live", path + "/verification"} {
		owner.get(part, "HX-Request", "true").want(200)
	}
}

// The page says of secrets that sign together what holds for them, and of secrets that sign alone what holds for these.
func TestThePageSaysWhichSecretsSign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	owner := tn.of[access.Owner]
	for _, f := range signature.Formats() {
		ep := w.endpoint(tn, "https://hooks.example.com/"+string(f), func(s *endpoint.Settings) { s.Format = f })
		path := tn.path + "/endpoints/" + id.Endpoint.Format(ep) + "/secrets"
		owner.next(path, url.Values{"overlap": {"3600"}}).want(200, "New secret")
		page := owner.get(path)
		said := []string{"Each secret signs until its overlap ends", "Current secrets keep signing during the overlap"}
		if strings.Contains(page.Body, ">not yet<") {
			page.want(200, "One secret signs at a time", "The newest secret isn").lacks(said...)
		} else {
			page.want(200, said...).lacks("One secret signs at a time", "The newest secret isn")
		}
	}
}

func TestASecretIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add()
	owner.get(path).want(200).lacks("whsec_")
	owner.next(path+"/secrets", url.Values{"overlap": {"3600"}}).want(200, "whsec_", "New secret").keep("endpoint-rotated")
	owner.get(path+"/secrets").want(200, "Live secrets").lacks("whsec_")
	owner.post(path+"/secrets", url.Values{"overlap": {"9999999"}}).want(400, "Overlap must be from 0").lacks("whsec_")
}

func TestANewEndpointIsVerifiedWhenItsReceiverKnowsTheSecret(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	button := "I&#39;ve installed it: verify now"
	made := owner.next(w.root+"/endpoints", newForm()).want(200, "whsec_", button).keep("endpoint-created")
	path := endpointInPage.FindString(made.Body)
	if n := one[int](w.world, "SELECT count(*)::int FROM verifications"); n != 0 {
		t.Fatalf("%d verifications before anybody asked", n)
	}
	owner.get(path).want(200, button, "Deliveries are held")
	w.as(access.Viewer).get(path).want(200).lacks(button)
	part := owner.post(path+"/verify", url.Values{}, "HX-Request", "true").want(200, "Send the challenge").lacks("<html", button)
	if !strings.Contains(part.Body, `hx-get="`+path+`/verification"`) {
		t.Errorf("the part does not renew itself: %s", part.Body)
	}
	w.SQL("UPDATE verifications SET tries = 2, last_status = 401, last_detail = '401 Unauthorized instead of a 2xx.', due_at = now() + interval '10 seconds'")
	owner.get(path+"/verification", "HX-Request", "true").want(200, "401 Unauthorized", "check that it has this endpoint&#39;s signing secret", "Next try", "Try now")
	owner.get(path).want(200).keep("endpoint-verifying")
	w.SQL("UPDATE verifications SET state = 'failed', done_at = now(), last_status = 500, last_detail = '500 instead of a 2xx.'")
	owner.get(path).want(200, "Verify again", "500 instead").lacks("Next try", "signing secret.").keep("endpoint-unverifiable")
}

func TestAddingAnEndpointEndsWithAnEventThatIsDelivered(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	made := owner.next(w.root+"/endpoints", newForm()).want(200, "3. Send the first test event", "Available once the endpoint is verified")
	path := endpointInPage.FindString(made.Body)
	here := []string{"HX-Request", "true", "HX-Current-URL", base + path + "/created"}
	owner.post(path+"/verify", url.Values{}, here...).want(200, "Available once", `hx-swap-oob="true"`)
	owner.post(path+"/verify", url.Values{"first": {"true"}}).to(path + "/created") // without a script
	w.SetStatus(one[id.UUID](w.world, "SELECT id FROM endpoints ORDER BY id DESC LIMIT 1").String(), "active")
	w.SQL("UPDATE verifications SET state = 'succeeded', done_at = now()")
	owner.get(path+"/verification", here...).want(200, "Send test event", `action="`+path+`/test"`)
	// the endpoint's own page has a button already
	owner.get(path+"/verification", "HX-Request", "true").want(200).lacks("Send test event")
	w.as(access.Viewer).get(path+"/created").want(200, "can't send test events").lacks(`action="` + path + `/test"`)
	at := owner.post(path+"/test", url.Values{"from": {"created"}}).to(path + "/created?delivery=dlv_")
	owner.get(at).want(200, "Waiting for the response")
	w.attempt(w.delivery(one[id.UUID](w.world, "SELECT id FROM events ORDER BY id DESC LIMIT 1")), tried{status: 200, terminal: 2})
	owner.get(at).want(200, "delivered", "Open delivery").keep("endpoint-first-event")
}

func TestAKeyPairIsChosenWhereTheFormatKnowsOne(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	made := owner.next(w.root+"/endpoints", newForm("secret_type", "ed25519")).want(200, "whsk_", "whpk_").keep("endpoint-created-pair")
	path := endpointInPage.FindString(made.Body)
	owner.get(path+"/secrets").want(200, "ed25519", "whpk_").lacks("whsk_")
	owner.next(path+"/secrets", url.Values{"overlap": {"0"}}).want(200, "whsk_")
	owner.next(path+"/secrets", url.Values{"overlap": {"0"}, "secret_type": {"hmac"}}).want(200, "whsec_").keep("endpoint-secrets")
	owner.next(path+"/secrets", url.Values{"overlap": {"0"}, "secret_type": {"ed25519"}}).want(200, "whsk_")
	owner.post(path+"/secrets", url.Values{"overlap": {"3600"}, "secret_type": {"rsa"}}).want(400, `id="f-secret_type-error"`, "No secret was created", `value="3600" selected`)
	owner.post(w.root+"/endpoints", newForm("secret_type", "ed25519", "format", "raw")).want(400, `id="f-secret_type-error"`, "supports only HMAC")
	owner.post(w.root+"/endpoints", newForm("secret_type", "ed25519", "secret", "whsec_"+strings.Repeat("c2Vj", 10))).want(400, `id="f-secret-error"`)
	other := w.add("format", "raw")
	owner.get(other+"/secrets").want(200, "Rotate").lacks(`name="secret_type"`)
}

func TestWhatIsWrongIsSaidBesideItsFieldAndWhatWasTypedStays(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	got := owner.post(w.root+"/endpoints", newForm("url", "http://10.0.0.1/x", "timeout_seconds", "many", "description", "kept <b>text</b>", "filter", "data.(")).
		want(400, "The endpoint wasn&#39;t added", "Timeout must be from 1 to 30 seconds.", "kept &lt;b&gt;text", `value="many"`, `id="f-url-error"`, `id="f-filter-error"`)
	got.keep("endpoint-refused")
	path := w.add()
	owner.post(path+"/settings", newForm("max_in_flight", "0")).want(400, "Nothing changed", "Max concurrent requests must be from 1 to 100").keep("settings-refused")
	owner.post(path+"/filter", url.Values{"filter": {"type =="}}).want(400, `id="f-filter-error"`).keep("filter-refused")
	owner.post(w.root+"/endpoints", newForm("custom_headers", "no colon here")).want(400, "as Name: value.")
}

// A form's errors name its fields as the form does.
func TestNoFormSaysTheNameThatProgramsUse(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	form := newForm()
	for _, f := range pages.FormFields() {
		switch f.Type {
		case endpoint.Number:
			form.Set(f.Name, "-5")
		case endpoint.Choice:
			form.Set(f.Name, "no such choice")
		case endpoint.Text:
			form.Set(f.Name, strings.Repeat("x", 5000))
		}
	}
	page := w.as(access.Owner).post(w.root+"/endpoints", form).want(400)
	said := regexp.MustCompile(`(?s)data-error-summary.*?</ul>`).FindString(page.Body)
	texts := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(said, "\n")
	for _, f := range endpoint.Fields() {
		if strings.Contains(f.Name, "_") && strings.Contains(texts, f.Name) {
			t.Errorf("the form says %s:\n%s", f.Name, texts)
		}
	}
	for _, want := range []string{"Timeout must be from 1 to 30 seconds.", "Burst must be from", "or empty for"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no %q in %s", want, texts)
		}
	}
}

func TestSettingsAreSavedAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add("custom_headers", "X-Squad: payments\nAuthorization: Bearer canary-value")
	owner.get(path+"/settings").want(200, "X-Squad: payments", "Authorization: ***").lacks("canary-value")
	form := newForm("rate_limit", "", "retry_policy", "custom", "retry_delays", "5, 60 300", "scope", "some", "patterns", "order.*\ninvoice.paid", "custom_headers", "Authorization: ***")
	form.Del("filter")
	owner.post(path+"/settings", form).to(path + "/settings")
	owner.post(path+"/settings", newForm("url", "nowhere")).want(400, `name="url"`, `id="f-url-error"`).keep("settings-refused")
	owner.get(path+"/settings").want(200, "order.*\ninvoice.paid", `value="5 60 300"`, "Authorization: ***").lacks("X-Squad")
	owner.post(path+"/filter", url.Values{"filter": {`data.total > 99.0 && type != "<x>"`}}).to(path + "/filter")
	owner.get(path+"/filter").want(200, "data.total &gt; 99.0").keep("filter-saved")
	owner.get(path+"/settings").want(200, "order.*")
}

func TestWhenHeldAndMetadataAreSettings(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add("when_held", "drop", "metadata", "squad: 42\nplan: gold: <new>\n")
	owner.get(path+"/settings").want(200, `value="drop" selected`, "plan: gold: &lt;new&gt;\nsquad: 42")
	owner.post(path+"/settings", newForm()).to(path + "/settings")
	owner.get(path+"/settings").want(200, `value="drop" selected`, "squad: 42") // a form without the fields leaves them
	owner.post(path+"/settings", newForm("when_held", "lose", "metadata", "squad: 43")).want(400, `id="f-when_held-error"`, "squad: 43")
	owner.post(path+"/settings", newForm("metadata", "customer")).want(400, `id="f-metadata-error"`, "as key: value.")
	owner.post(path+"/settings", newForm("when_held", "hold", "metadata", "")).to(path + "/settings")
	owner.get(path+"/settings").want(200, `value="hold" selected`).lacks("squad")
}

func TestAFilterIsTriedOnPastEventsWithoutBeingSaved(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add()
	w.activate(path)
	for _, data := range []string{`{"total":50}`, `{"total":500}`} {
		owner.post(path+"/test", url.Values{"type": {"order.completed"}, "data": {data}}).to(path + "/test?delivery=dlv_")
	}
	owner.post(path+"/filter/try", url.Values{"filter": {"data.total > 99.0"}}).want(200, "It would have matched 1 of 2 past events", "not matched", "<summary>Data</summary>", "&#34;total&#34;", w.root+"/events/evt_").keep("filter-tried")
	owner.get(path + "/filter").want(200).lacks("data.total &gt; 99.0")
	viewer := w.as(access.Viewer)
	viewer.get(path+"/filter").want(200, "Try on past events")
	w.setting(w.tn, "viewers_read_payloads", false)
	viewer.get(path + "/filter").want(200).lacks("Try on past events")
	viewer.post(path+"/filter/try", url.Values{"filter": {"data.total > 99.0"}}).want(403, "can&#39;t see payloads").lacks("1 of 2")
	w.setting(w.tn, "viewers_read_payloads", true)
	viewer.post(path+"/filter/try", url.Values{"filter": {"data.total > 99.0"}}).want(200, "1 of 2")
}

func TestATestLeadsToItsAnswer(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add()
	owner.post(path+"/test", url.Values{"type": {"x.y"}, "data": {"{}"}}).want(409, "unverified").keep("test-refused")
	w.activate(path)
	owner.post(path+"/test", url.Values{"type": {"x.y"}, "data": {"{"}}).want(400, "Invalid JSON")
	sent := owner.post(path+"/test", url.Values{"type": {"x.y"}, "data": {"{}"}}).to(path + "/test?delivery=dlv_")
	owner.get(sent).want(200, "Waiting for the response").keep("test-sent")
	owner.get(sent, "HX-Request", "true").want(200, `id="sent"`).lacks("<html")
	other := w.add()
	owner.get(other + "/test?delivery=" + sent[strings.Index(sent, "dlv_"):]).want(404)
}

func TestPausingResumingAndDeletingAskFirstAndAreConfirmed(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add()
	w.activate(path)
	owner.get(path).want(200, "Pause this endpoint?", "Delete this endpoint?")
	owner.get(owner.post(path+"/pause", nil).to(path)).want(200, "The endpoint is paused.", "Resume this endpoint?").keep("endpoint-paused")
	owner.get(owner.post(path+"/resume", nil).to(path)).want(200, "The endpoint is being resumed.")
	owner.post(path+"/pause", nil).to(path)
	w.emit(w.tn, "order.completed", "{}")
	owner.get(owner.post(path+"/resume", url.Values{"held": {"drop"}}).to(path)).want(200, "held deliveries are being canceled")
	if n := one[int](w.world, "SELECT count(*)::int FROM bulk_jobs WHERE tenant_id = $1", w.tn.id.String()); n != 1 {
		t.Errorf("%d jobs drop what was held", n)
	}
	owner.post(path+"/verify", nil).to(path)
	owner.get(owner.post(path+"/delete", nil).to(w.root+"/endpoints")).want(200, "Endpoint deleted.")
	owner.get(path).want(404)
}

func TestViewersChangeNothing(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	path, viewer := w.add(), w.as(access.Viewer)
	for _, action := range []string{"/pause", "/resume", "/verify", "/delete", "/settings", "/filter", "/secrets", "/switch-secret", "/test"} {
		viewer.post(path+action, newForm()).want(403)
	}
	viewer.post(w.root+"/endpoints", newForm()).want(403)
	viewer.get(w.root + "/endpoints/new").want(403)
	viewer.get(path + "/test").want(403)
}

func TestAnOldSecretEndsWithOneButtonOnceTheNewOneWasAccepted(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner, path := w.as(access.Owner), w.add()
	w.activate(path)
	owner.next(path+"/secrets", url.Values{"overlap": {"86400"}}).want(200, "Send test event", "Stop signing now").keep("secrets-rotated")
	id := func(order string) string {
		return id.Secret.Format(id.UUID(one[[16]byte](w.world, "SELECT id FROM endpoint_secrets ORDER BY id "+order+" LIMIT 1")))
	}
	fresh, old := id("DESC"), id("")
	// Nothing answers the check here, so the page asks.
	asked := owner.next(path+"/secrets/"+old+"/end", nil).want(200, "Checking whether your receiver accepts", `data-poll`).keep("secrets-checking")
	if !strings.Contains(asked.what, "?end="+old) {
		t.Errorf("the page is %s", asked.what)
	}
	w.SQL("UPDATE endpoint_secrets SET check_state = 'rejected', check_status = 401, check_detail = 'The endpoint returned 401 Unauthorized instead of a 2xx.' WHERE check_state = 'pending'")
	owner.get(path+"/secrets?end="+old).want(200, "rejected a request signed with", "401 Unauthorized", "Check again", "Stop signing without a passed check?").keep("secrets-rejected")
	w.SQL("UPDATE endpoint_secrets SET check_state = 'accepted', check_status = 204 WHERE check_state = 'rejected'")
	owner.get(path+"/secrets?end="+old, "HX-Request", "true").want(200, "Your receiver accepts").lacks("<html")
	owner.next(path+"/secrets/"+old+"/extend", url.Values{"overlap": {"604800"}}).want(200, "The secret signs until")
	owner.next(path+"/secrets/"+old+"/end", nil).want(200, "The secret no longer signs.").lacks("Stop signing now")
	if n := one[int](w.world, "SELECT count(*)::int FROM endpoint_secrets"); n != 1 || fresh != id("") {
		t.Errorf("%d secrets are left", n)
	}
	w.as(access.Viewer).post(path+"/secrets/"+fresh+"/end", url.Values{"unchecked": {"true"}}).want(http.StatusForbidden)
}

func TestAlertsAreMutedAndPausesEndOnTheEndpointsPage(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner, path := w.as(access.Owner), w.add()
	w.activate(path)
	owner.get(path).want(200, "Mute alerts", "For 1 hour", "For 1 day", "Resume automatically").lacks("Until it recovers", "Alerts muted")
	owner.next(path+"/mute", url.Values{"for": {"3600"}}).want(200, "Alerts muted until", "Unmute").keep("endpoint-muted")
	owner.get(w.root+"/endpoints").want(200, "Alerts muted until").keep("endpoints-muted")
	owner.get(w.root+"/").want(200, "Alerts muted until").keep("overview-muted")
	owner.next(path+"/unmute", nil).want(200, "Mute alerts").lacks("Alerts muted until")
	owner.post(path+"/mute", url.Values{"for": {"recovered"}}).want(http.StatusConflict)
	owner.post(path+"/pause", url.Values{"for": {"at"}, "until": {"not a time"}}).want(http.StatusBadRequest, "Enter a date and a time")
	owner.next(path+"/pause", url.Values{"for": {"86400"}}).want(200, "The endpoint is paused until", "resumed automatically", "Until ").keep("endpoint-paused-until")
	w.as(access.Viewer).post(path+"/mute", url.Values{"for": {"3600"}}).want(http.StatusForbidden)
}
