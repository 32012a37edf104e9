package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/dashboard"
	"posthorn/tools/pagetest"
	"posthorn/tools/webtest"
)

// stranger opens a link without signing in.
type stranger struct {
	w      *world
	engine http.Handler
}

func (w *world) stranger() stranger {
	routes := dashboard.SharedRoutes(dashboard.Deps{DB: w.db, Keys: w.ring, BaseURL: base, Log: w.Logger, Now: time.Now}, handlers.NewAddresses(time.Now))
	return stranger{w, webtest.Serve(w.Config(time.Now, base), routes)}
}

func (s stranger) open(link string) *page {
	s.w.t.Helper()
	r := httptest.NewRequestWithContext(s.w.t.Context(), "GET", link, nil)
	r.Header.Set("Accept", "text/html")
	recorder := httptest.NewRecorder()
	s.engine.ServeHTTP(recorder, r)
	p := &page{t: s.w.t, what: "GET " + link, Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.String()}
	for _, fault := range pagetest.Faults(p.Body) {
		s.w.t.Errorf("%s: %s", p.what, fault)
	}
	return p
}

var sharedLink = regexp.MustCompile(`value="(` + regexp.QuoteMeta(base) + `/shared/ten_[a-z0-9]+\?token=[A-Za-z0-9_-]+)"`)

func TestADeliveryIsSharedByALinkWithoutSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("Acme Shop"), w.tenant("Other")
	w.endpoint(tn, "https://hooks.example.com/in?key=s3cret", func(s *endpoint.Settings) {
		s.Description = "internal name"
		s.Headers = endpoint.Headers{"X-Shop": {Value: "north"}, "Authorization": {Value: "Bearer canary"}}
	})
	dlv := w.delivery(w.emit(tn, "order.paid", `{"order":17}`))
	beside := w.delivery(w.emit(tn, "order.paid", `{"order":18}`))
	w.attempt(dlv, tried{status: 500, answer: "first answer"})
	w.attempt(dlv, tried{status: 422, answer: "<b>currency XTS is unknown", terminal: 3, reason: 2})
	dev, path := tn.of[access.Developer], tn.path+"/deliveries/"+id.Delivery.Format(dlv)
	dev.get(path).want(200, ">Share<", "share-delivery").lacks("Shared links")
	dev.post(path+"/share", url.Values{"expires_in": {"60"}}).want(http.StatusBadRequest, "one hour to seven days")
	shown := dev.get(dev.post(path+"/share", url.Values{"expires_in": {"3600"}}).to(path)).want(200, "The link is ready", "Shared links", "not opened yet").keep("delivery-share")
	link := strings.ReplaceAll(sharedLink.FindStringSubmatch(shown.Body)[1], "&amp;", "&")
	dev.get(path).want(200, "Shared links").lacks("The link is ready", link)
	if n := one[int](w, "SELECT count(*)::int FROM delivery_shares WHERE position(convert_to($1, 'UTF8') IN hash) > 0", link[strings.Index(link, "token=")+6:]); n != 0 {
		t.Error("the token is stored")
	}

	s := w.stranger()
	page := s.open(link).want(200, "Acme Shop", "order.paid", "422", "&lt;b&gt;currency XTS is unknown", `&#34;order&#34;`, "webhook-signature: ***", "webhook-id: evt_", "Authorization: ***").keep("shared")
	page.lacks("c2lnbmVk", "s3cret", "canary", "internal name", id.Delivery.Format(beside), "/t/", "curl", ">Replay<", `brand-name">Posthorn`)
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow", "Cache-Control": "no-store"} {
		if got := page.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	s.open(link+"&attempt=1").want(200, "first answer").lacks("XTS")
	dev.get(path).want(200, "Shared links").lacks("not opened yet")
	if w.audited(tn, "delivery.share") != 1 || w.audited(tn, "delivery.share_open") != 1 {
		t.Error("the link is not audited once, and its opening once")
	}

	// The token opens nothing of another tenant, and what is deleted or expunged is not shown.
	_, token, _ := strings.Cut(link, "?")
	for _, foreign := range []string{strings.TrimPrefix(other.path, "/t/"), id.Tenant.Format(db.NewID())} {
		s.open(base+"/shared/"+foreign+"?"+token).want(http.StatusGone, "has expired or was revoked").lacks("XTS", "Acme")
	}
	s.open(base + "/shared/nonsense?" + token).want(404)
	s.open(link+"x").want(http.StatusGone).lacks("XTS", "Acme").keep("shared-gone")
	w.SQL("UPDATE events SET data = NULL")
	s.open(link).want(200, "has been deleted").lacks(`&#34;order&#34;`)

	shareID := id.Share.Format(id.UUID(one[[16]byte](w, "SELECT id FROM delivery_shares")))
	other.of[access.Owner].post(other.path+"/deliveries/"+id.Delivery.Format(dlv)+"/shares/"+shareID+"/revoke", nil).want(404)
	tn.of[access.Viewer].post(path+"/shares/"+shareID+"/revoke", nil).want(http.StatusForbidden)
	dev.post(path+"/shares/"+shareID+"/revoke", nil).to(path)
	dev.get(path).want(200).lacks("Shared links")
	s.open(link).want(http.StatusGone).lacks("XTS", "Acme")
	if w.audited(tn, "delivery.share_revoke") != 1 {
		t.Error("the end of the link is not audited")
	}
}

func TestALinkToADeliveryEndsWithItsTimeAndItsTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dlv := w.delivery(w.emit(tn, "order.paid", "1"))
	dev, path, s := tn.of[access.Developer], tn.path+"/deliveries/"+id.Delivery.Format(dlv), w.stranger()
	share := func() string {
		shown := dev.get(dev.post(path+"/share", url.Values{"expires_in": {"3600"}}).to(path))
		return sharedLink.FindStringSubmatch(shown.Body)[1]
	}
	link := share()
	s.open(link).want(200, "No attempts yet")
	w.SQL("UPDATE tenants SET state = 'suspended' WHERE id = $1", tn.id.String())
	s.open(link).want(http.StatusGone)
	w.SQL("UPDATE tenants SET state = 'active' WHERE id = $1", tn.id.String())
	w.SQL("UPDATE delivery_shares SET expires_at = now()")
	s.open(link).want(http.StatusGone)
	for range 10 {
		share()
	}
	dev.post(path+"/share", url.Values{"expires_in": {"3600"}}).want(http.StatusConflict, "can have 10 links")

	// Who sees no payloads can't show them to others.
	viewer := tn.of[access.Viewer]
	viewer.get(path).want(200).lacks(">Share<")
	viewer.post(path+"/share", url.Values{"expires_in": {"3600"}}).want(http.StatusForbidden)
}
