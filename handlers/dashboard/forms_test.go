package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers/dashboard"
)

// trials are the forms that change nothing. They respond with a page: sending them again repeats nothing.
var trials = []string{"/settings/export", "/filter/try", "/transformation/try", "/mapping/try", "/signature", "/deliveries/bulk", "/test-connection"}

func triesOnly(path string) bool {
	for _, suffix := range trials {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// goodForms holds, for each form of a tenant's pages, values with which it succeeds.
var goodForms = map[string]url.Values{
	"/members/invite":                    {"email": {"new@example.com"}, "role": {"viewer"}},
	"/members/:member_id/role":           {"role": {"developer"}},
	"/members/:member_id/remove":         {},
	"/invitations/:invitation_id/revoke": {},
	"/leave":                             {},
	"/settings":                          {"name": {"Other"}, "retention_days": {"30"}},
	"/settings/notices":                  {"contacts": {"ops@example.com"}},
	"/settings/transfer":                 {},
	"/settings/sso":                      {}, // TestAnOwnerSetsUpSingleSignOn saves it
	"/settings/sso/remove":               {},
	"/settings/sso/domains":              {"domain": {"example.com"}},
	"/settings/sso/domains/verify":       {"domain": {"example.com"}},
	"/settings/sso/domains/remove":       {"domain": {"example.com"}},
	"/settings/delete":                   {"name": {"Acme"}},
	"/endpoints":                         newForm(),
	"/endpoints/:endpoint_id/verify":     {},
	"/endpoints/:endpoint_id/pause":      {},
	"/endpoints/:endpoint_id/resume":     {},
	"/endpoints/:endpoint_id/delete":     {},
	// TestAnOwnerManagesTheConsumersOfAFeed sends these.
	"/endpoints/:endpoint_id/consumers":                  {"name": {"warehouse"}},
	"/endpoints/:endpoint_id/consumers/:consumer/rewind": {"start": {"oldest"}},
	"/endpoints/:endpoint_id/consumers/:consumer/rotate": {},
	"/endpoints/:endpoint_id/consumers/:consumer/delete": {},
	"/endpoints/:endpoint_id/settings":                   newForm(),
	"/endpoints/:endpoint_id/filter":                     {"filter": {""}},
	"/endpoints/:endpoint_id/transformation":             {"kind": {"cel"}, "expression": {"data"}},
	"/endpoints/:endpoint_id/secrets":                    {"overlap": {"0"}},
	"/endpoints/:endpoint_id/switch-secret":              {},
	"/endpoints/:endpoint_id/certificate-request":        {},
	"/endpoints/:endpoint_id/rewind":                     {"start": {"oldest"}},
	"/endpoints/:endpoint_id/mute":                       {"for": {"3600"}},
	"/endpoints/:endpoint_id/unmute":                     {},
	"/endpoints/:endpoint_id/secrets/:secret_id/check":   {},
	"/endpoints/:endpoint_id/secrets/:secret_id/end":     {},
	"/endpoints/:endpoint_id/secrets/:secret_id/extend":  {"overlap": {"60"}},
	"/endpoints/:endpoint_id/signing-keys/rotate":        {"starts_in": {"0"}},
	"/endpoints/:endpoint_id/test":                       {"type": {"posthorn.test"}, "data": {"{}"}},
	"/endpoints/:endpoint_id/inbox/answer":               {"answer": {"ok"}},
	"/endpoints/:endpoint_id/inbox/clear":                {},
	"/inboxes":                                           {},
	"/deliveries/:delivery_id/archive":                   {},
	"/deliveries/:delivery_id/cancel":                    {},
	"/deliveries/:delivery_id/replay":                    {},
	"/deliveries/:delivery_id/retry-now":                 {},
	"/deliveries/:delivery_id/share":                     {"expires_in": {"3600"}},
	"/deliveries/:delivery_id/shares/:share_id/revoke":   {},
	"/deliveries/:delivery_id/unarchive":                 {},
	"/subscriptions/:subscription_id/revoke":             {},
	// TestASourceIsManagedOnItsPages sends these.
	"/sources":                                          {"name": {"taken"}, "kind": {"kafka"}, "kafka_bootstrap_servers": {"b.example.com:9092"}, "kafka_topic": {"a"}, "kafka_tls": {"on"}},
	"/sources/:source_id/settings":                      {"mapping": {"body"}},
	"/sources/:source_id/mapping/try":                   {"mapping": {"body"}, "sample": {"{}"}},
	"/sources/:source_id/pause":                         {},
	"/sources/:source_id/resume":                        {},
	"/sources/:source_id/delete":                        {},
	"/sources/:source_id/rejected/:rejected_id/retry":   {},
	"/sources/:source_id/rejected/:rejected_id/discard": {},
	"/bulk-jobs":                                        {"action": {"archive"}, "all": {"true"}, "status": {"failed"}},
	"/bulk-jobs/:job_id/cancel":                         {},
	"/bulk-jobs/:job_id/continue":                       {}, // TestAReplayCanSendOneFirst continues one
	"/bulk-jobs/:job_id/dismiss":                        {},
	"/events":                                           {"type": {"order.paid"}, "data": {"{}"}},
	"/events/:event_id/replay":                          {},
	"/events/:event_id/expunge":                         {"reason": {"asked for"}},
	"/event-types":                                      {"name": {"a.b"}},
	"/event-types/:name":                                {"description": {"x"}},
	"/event-types/:name/delete":                         {},
	"/history/:day/restore":                             {}, // TestListsSayWhichDaysAreInStorageAndBringThemBack presses it
	"/subscriptions/access":                             {"audience": {"https://agents.example.com"}},
	"/keys":                                             {"name": {"k"}, "scopes": {"events:write"}},
	"/keys/:key_id/revoke":                              {},
	"/notices/read":                                     {},
	"/notices/preferences":                              {},
	"/alerts/mute":                                      {"kind": {"key.created"}, "muted": {"true"}},
	"/portal":                                           {"role": {"viewer"}, "session_seconds": {"3600"}},
	"/portal/:portal_link_id/revoke":                    {},
}

// TestEveryFormThatSucceedsLeadsToAPage sends each form of the route table as an owner. Each one redirects, so that
// reloading repeats nothing. An error because of the object's state is good enough here: the tests of each form send
// it successfully, and check every response in the same way (browser.send).
func TestEveryFormThatSucceedsLeadsToAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	led := 0
	for _, r := range dashboard.Routes(dashboard.Deps{}) {
		short := strings.TrimPrefix(r.Path, dashboard.Root)
		if r.Method != http.MethodPost || triesOnly(r.Path) {
			continue
		}
		form, ok := goodForms[short]
		if !ok {
			t.Errorf("POST %s has no form here", short)
			continue
		}
		tn := w.tenant("Acme")
		path := fill(r.Path, tn.path, w.things(tn))
		if strings.Contains(path, "//") || strings.Contains(short, "invitation_id") || strings.Contains(short, "portal_link_id") {
			continue // its own test creates one
		}
		switch short {
		case "/settings/transfer":
			form = url.Values{"member": {id.Member.Format(id.UUID(one[[16]byte](w, "SELECT id FROM memberships WHERE tenant_id = $1 AND role = 'admin'", tn.id.String())))}, "confirm": {"Acme"}}
		case "/leave":
			w.SQL("UPDATE memberships SET role = 'owner' WHERE tenant_id = $1", tn.id.String())
		}
		got := tn.of[access.Owner].post(path, form)
		switch {
		case got.Status == http.StatusSeeOther:
			led++
		case got.Status/100 != 4:
			t.Errorf("POST %s answered %d", short, got.Status)
		default:
			t.Logf("POST %s answered %d", short, got.Status)
		}
	}
	if led < 25 {
		t.Errorf("%d forms led to a page", led)
	}
}

// Of two pages that are opened together, one shows what is shown once.
func TestAValueShownOnceIsSealedUntilThen(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	created := owner.post(w.root+"/endpoints", newForm()).to(w.root + "/endpoints/")
	if n := one[int](w.world, "SELECT count(*) FROM sessions WHERE once IS NOT NULL AND position('whsec' IN encode(once, 'escape')) = 0"); n != 1 {
		t.Errorf("%d sessions keep a sealed secret", n)
	}
	w.as(access.Admin).get(created).want(200, "can&#39;t be shown again").lacks("whsec_")
	owner.send("HEAD", created, nil).want(200) // a check of the address uses nothing up
	owner.get(created).want(200, "whsec_", "Install the signing secret").keep("endpoint-created")
	owner.get(created).want(200, "can&#39;t be shown again", "Open secrets").lacks("whsec_").keep("endpoint-created-again")
	if n := one[int](w.world, "SELECT count(*) FROM sessions WHERE once IS NOT NULL"); n != 0 {
		t.Errorf("%d sessions still keep it", n)
	}
	if n := one[int](w.world, "SELECT count(*) FROM endpoints"); n != 1 {
		t.Errorf("%d endpoints", n)
	}
}

func TestASignInLinkSeesTheSecretOfWhatItAdded(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	theirs := w.add()
	guest, other := w.portalSession(w.tn, access.Developer), w.portalSession(w.tn, access.Developer)
	created := guest.post(w.root+"/endpoints", newForm()).to(w.root + "/endpoints/")
	path := strings.TrimSuffix(created, "/created")
	guest.get(created).want(200, "whsec_", `id="secret"`).keep("portal-endpoint-created")
	guest.get(created).want(200, "rotate the secret to get a new one").lacks("whsec_", `id="secret"`)
	guest.get(path+"/secrets").want(200, "Rotate secret")
	guest.next(path+"/secrets", url.Values{"overlap": {"0"}}).want(200, "whsec_").keep("portal-endpoint-rotated")
	guest.post(path+"/switch-secret", nil).want(http.StatusConflict, "nothing to switch")

	for _, c := range []struct {
		b    *browser
		path string
	}{{guest, theirs}, {other, path}, {w.portalSession(w.tn, access.Viewer), path}} {
		c.b.get(c.path+"/secrets").want(200).lacks("Rotate secret", "whsec_")
		c.b.post(c.path+"/secrets", url.Values{"overlap": {"0"}}).want(http.StatusForbidden)
		c.b.post(c.path+"/switch-secret", nil).want(http.StatusForbidden)
		c.b.get(c.path+"/created").want(200).lacks("whsec_", `id="secret"`, "Open secrets")
	}
	guest.get(theirs+"/secrets").want(200, "you added with it").keep("portal-endpoint-secrets")
	guest.post(w.root+"/endpoints/"+id.Endpoint.Format(db.NewID())+"/secrets", url.Values{"overlap": {"0"}}).want(http.StatusNotFound)
	guest.get(w.root + "/members").want(http.StatusForbidden).lacks("@example.com")
}
