package dashboard_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

// newForm is what the form for a new endpoint sends when nothing but the URL was written.
func newForm(change ...string) url.Values {
	form := url.Values{
		"url": {"https://hooks.acme.example/orders?token=canary"}, "scope": {"all"}, "format": {"standard"}, "prefix": {"Webhook"}, "retry_policy": {"standard"},
		"timeout_seconds": {"15"}, "max_in_flight": {"5"}, "rate_limit": {"50"}, "burst": {""}, "ordering": {"none"}, "verification": {"challenge"},
		"filter": {""}, "channels": {""}, "custom_headers": {""}, "payload_version": {""}, "description": {"Orders, production"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return form
}

var endpointInPage = regexp.MustCompile(`/t/ten_[a-z0-9]+/endpoints/(ep_[a-z0-9]+)`)

// add adds an endpoint and gives its path.
func (b *browser) add(change ...string) string {
	b.w.t.Helper()
	got := b.post(b.w.root+"/endpoints", newForm(change...)).want(http.StatusOK, "whsec_").sound("endpoint-created")
	return endpointInPage.FindString(got.Body)
}

// activate makes an endpoint what its verification would make it.
func (w *world) activate(path string) {
	w.t.Helper()
	u, err := id.Endpoint.Parse(path[strings.LastIndexByte(path, '/')+1:])
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.db.Tenant(w.t.Context(), w.tenant, func(q *db.Queries) error {
		_, err := q.SetEndpointStatus(w.t.Context(), db.SetEndpointStatusParams{Status: "active", TenantID: w.tenant, ID: u})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestANewTenantIsToldWhatToDoFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	owner.get(w.root+"/").want(200, "First steps", "Add an endpoint", "No deliveries yet").sound("overview-new")
	owner.get(w.root+"/endpoints").want(200, "No endpoints yet").sound("endpoints-empty")
	owner.get(w.root + "/endpoints/new").want(200).sound("endpoint-new")
	w.as(access.Viewer).get(w.root + "/endpoints").want(200).lacks("Add endpoint").sound("endpoints-viewer")
}

func TestEveryPageOfAnEndpointIsSound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, viewer := w.as(access.Owner), w.as(access.Viewer)
	path := owner.add()
	owner.get(path).want(200, "Verification", "unverified").sound("endpoint-unverified").lacks("canary")
	w.activate(path)
	for _, tab := range []string{"", "/settings", "/filter", "/secrets", "/test"} {
		owner.get(path + tab).want(200).sound("endpoint" + strings.ReplaceAll(tab, "/", "-"))
		if tab != "/test" {
			viewer.get(path+tab).want(200).sound("viewer"+strings.ReplaceAll(tab, "/", "-")).lacks("canary", "Delete endpoint", "whsec_")
		}
	}
	owner.get(w.root+"/").want(200, "Overview").sound("overview")
	owner.get(w.root+"/endpoints").want(200, "hooks.acme.example").sound("endpoints").lacks("canary")
	owner.get(w.root+"/endpoints?q=nowhere").want(200, "Nothing matches").sound("endpoints-filtered")
	for _, part := range []string{w.root + "/live", path + "/live", path + "/verification"} {
		owner.get(part, "HX-Request", "true").want(200)
	}
}

func TestASecretIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	path := owner.add()
	owner.get(path).want(200).lacks("whsec_")
	owner.post(path+"/secrets", url.Values{"overlap": {"3600"}}).want(200, "whsec_", "The new secret").sound("endpoint-rotated")
	owner.get(path+"/secrets").want(200, "Live secrets").lacks("whsec_")
	owner.post(path+"/secrets", url.Values{"overlap": {"9999999"}}).want(400, "overlap_seconds must be from 0").lacks("whsec_")
}

func TestWhatIsWrongIsSaidBesideItsFieldAndWhatWasTypedStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	got := owner.post(w.root+"/endpoints", newForm("url", "http://10.0.0.1/x", "timeout_seconds", "many", "description", "kept <b>text</b>", "filter", "data.(")).
		want(400, "The endpoint was not added", "timeout_seconds must be from 1 to 30 seconds.", "kept &lt;b&gt;text", `value="many"`, `id="f-url-error"`, `id="f-filter-error"`)
	got.sound("endpoint-refused")
	path := owner.add()
	owner.post(path+"/settings", newForm("max_in_flight", "0")).want(400, "Nothing was changed", "max_in_flight must be from 1 to 100").sound("settings-refused")
	owner.post(path+"/filter", url.Values{"filter": {"type =="}}).want(400, `id="f-filter-error"`).sound("filter-refused")
	owner.post(w.root+"/endpoints", newForm("custom_headers", "no colon here")).want(400, "as Name: value.")
}

func TestSettingsAreSavedAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	path := owner.add("custom_headers", "X-Team: payments\nAuthorization: Bearer canary-value")
	owner.get(path+"/settings").want(200, "X-Team: payments", "Authorization: ***").lacks("canary-value")
	form := newForm("rate_limit", "", "retry_policy", "custom", "retry_delays", "5, 60 300", "scope", "some", "patterns", "order.*\ninvoice.paid", "custom_headers", "Authorization: ***")
	form.Del("filter")
	owner.post(path+"/settings", form).to(path + "/settings")
	owner.get(path+"/settings").want(200, "order.*\ninvoice.paid", `value="5 60 300"`, "Authorization: ***").lacks("X-Team")
	owner.post(path+"/filter", url.Values{"filter": {`data.total > 100.0 && type != "<x>"`}}).to(path + "/filter")
	owner.get(path+"/filter").want(200, "data.total &gt; 100.0").sound("filter-saved")
	owner.get(path+"/settings").want(200, "order.*")
}

func TestAFilterIsTriedOnPastEventsWithoutBeingSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	path := owner.add()
	w.activate(path)
	for _, data := range []string{`{"total":50}`, `{"total":500}`} {
		owner.post(path+"/test", url.Values{"type": {"order.completed"}, "data": {data}}).to(path + "/test?delivery=dlv_")
	}
	owner.post(path+"/filter/try", url.Values{"filter": {"data.total > 100.0"}}).want(200, "It would have taken 1 of 2 past events", "left out").sound("filter-tried")
	owner.get(path + "/filter").want(200).lacks("data.total &gt; 100.0")
	w.as(access.Viewer).post(path+"/filter/try", url.Values{"filter": {"data.total > 100.0"}}).want(200, "1 of 2")
}

func TestATestLeadsToItsAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	path := owner.add()
	owner.post(path+"/test", url.Values{"type": {"x.y"}, "data": {"{}"}}).want(409, "unverified").sound("test-refused")
	w.activate(path)
	owner.post(path+"/test", url.Values{"type": {"x.y"}, "data": {"{"}}).want(400, "The data is not JSON")
	sent := owner.post(path+"/test", url.Values{"type": {"x.y"}, "data": {"{}"}}).to(path + "/test?delivery=dlv_")
	owner.get(sent).want(200, "Waiting for the answer").sound("test-sent")
	owner.get(sent, "HX-Request", "true").want(200, `id="sent"`).lacks("<html")
	other := owner.add()
	owner.get(other + "/test?delivery=" + sent[strings.Index(sent, "dlv_"):]).want(404)
}

func TestPausingResumingAndDeletingAskFirstAndAreSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(access.Owner)
	path := owner.add()
	w.activate(path)
	owner.get(path).want(200, "Pause this endpoint?", "Delete this endpoint?")
	owner.get(owner.post(path+"/pause", nil).to(path)).want(200, "The endpoint is paused.", "Resume this endpoint?").sound("endpoint-paused")
	owner.get(owner.post(path+"/resume", nil).to(path)).want(200, "The endpoint is being resumed.")
	owner.post(path+"/verify", nil).to(path)
	owner.get(owner.post(path+"/delete", nil).to(w.root+"/endpoints")).want(200, "The endpoint was deleted.")
	owner.get(path).want(404)
}

func TestViewersChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, viewer := w.as(access.Owner).add(), w.as(access.Viewer)
	for _, action := range []string{"/pause", "/resume", "/verify", "/delete", "/settings", "/filter", "/secrets", "/switch-secret", "/test"} {
		viewer.post(path+action, newForm()).want(403)
	}
	viewer.post(w.root+"/endpoints", newForm()).want(403)
	viewer.get(w.root + "/endpoints/new").want(403)
	viewer.get(path + "/test").want(403)
}

var someIDs = regexp.MustCompile(`(ten|ep|req)_[a-z0-9]+`)

func TestEndpointsOfOthersAreAsUnknownAsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.as(access.Owner).add()
	foreign := path[strings.LastIndexByte(path, '/')+1:]
	w.tenant, w.root = w.newTenant("Another")
	stranger := w.as(access.Owner)
	unknown := id.Endpoint.Format(db.NewID())
	bodies := map[string]string{}
	for _, tab := range []string{"", "/live", "/verification", "/settings", "/filter", "/secrets", "/test"} {
		for _, which := range []string{foreign, unknown, "ep_malformed"} {
			got := stranger.get(w.root + "/endpoints/" + which + tab).want(404)
			bodies[someIDs.ReplaceAllString(strings.ReplaceAll(got.Body, which, ""), "")] = tab
		}
	}
	if len(bodies) != 1 {
		t.Errorf("the answers differ: %d kinds", len(bodies))
	}
	for _, action := range []string{"/pause", "/resume", "/verify", "/delete", "/settings", "/filter", "/filter/try", "/secrets", "/switch-secret", "/test"} {
		for _, which := range []string{foreign, unknown} {
			form := newForm()
			maps.Copy(form, url.Values{"overlap": {"3600"}, "type": {"x.y"}, "data": {"{}"}, "secret": {""}})
			stranger.post(w.root+"/endpoints/"+which+action, form).want(404)
		}
	}
}
