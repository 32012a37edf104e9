package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/listen"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
)

func TestViewersSeeNoPayloadWhereTheSettingSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	ev := w.emit(tn, "order.paid", `{"card":"canary-card"}`)
	dlv := w.delivery(ev)
	w.attempt(dlv, tried{status: 500, answer: "canary-answer", headers: "X-Canary: canary-header", terminal: 3, reason: 1})
	box, boxEndpoint := w.inboxOf(tn)
	w.receive(tn, boxEndpoint, listen.InboxRequest{Header: http.Header{"X-A": {"canary-copy"}}, Body: []byte("canary-body")})
	link := w.portalSession(tn, access.Viewer)
	w.setting(tn, "viewers_read_payloads", false)
	pages := []string{
		"/", "/live", "/events", "/events/" + id.Event.Format(ev), "/deliveries", "/deliveries/" + id.Delivery.Format(dlv), "/deliveries/" + id.Delivery.Format(dlv) + "?attempt=1",
		"/endpoints/" + id.Endpoint.Format(ep), strings.TrimPrefix(box, tn.path), "/endpoints/" + id.Endpoint.Format(ep) + "/filter", "/deliveries/" +
			id.Delivery.Format(dlv) + "/live", "/notices", "/audit-log", "/event-types",
	}
	files := []string{"/events/" + id.Event.Format(ev) + "/data", "/deliveries/" + id.Delivery.Format(dlv) + "/body"}
	try := tn.path + "/endpoints/" + id.Endpoint.Format(ep) + "/filter/try"
	form := url.Values{"filter": {`data.card == "canary-card"`}}
	for _, b := range []*browser{tn.of[access.Viewer], link} {
		for _, p := range pages {
			if got := b.get(tn.path + p); got.Status != 200 && got.Status != 286 { // 286 ends the polling
				t.Errorf("%s: %d", p, got.Status)
			} else {
				got.lacks("canary-", "Try on past events", "Exact bytes")
			}
		}
		for _, p := range files {
			b.get(tn.path + p).want(http.StatusForbidden).lacks("canary-")
		}
		// A filter would be an oracle: its matches reveal the content of an event.
		b.post(try, form).want(http.StatusForbidden)
	}
	settings := url.Values{"name": {"A"}, "retention_days": {"30"}, "viewers_read_payloads": {"true"}}
	tn.of[access.Developer].post(tn.path+"/settings", settings).want(http.StatusForbidden)
	tn.of[access.Admin].post(tn.path+"/settings", settings).to(tn.path + "/settings")
	tn.of[access.Admin].get(tn.path+"/settings").want(200, `name="viewers_read_payloads" type="checkbox" value="true" checked`)
	for _, b := range []*browser{tn.of[access.Viewer], link} {
		b.get(tn.path+pages[3]).want(200, "canary-card")
		b.get(tn.path+pages[5]).want(200, "canary-answer", "canary-header")
		b.get(tn.path+files[0]).want(200, "canary-card")
		b.get(box).want(200, "canary-copy", "canary-body")
		b.post(try, form).want(200)
	}
	settings.Del("viewers_read_payloads")
	tn.of[access.Admin].post(tn.path+"/settings", settings).to(tn.path + "/settings")
	tn.of[access.Viewer].get(tn.path + pages[3]).want(200).lacks("canary-")
}

// portalSession is the session of a portal link.
func (w *world) portalSession(tn tenant, role access.Role) *browser {
	w.t.Helper()
	return w.portalSessionOf(tn, accounts.NewPortalLink{Role: role, Parts: access.DefaultParts})
}

// portalSessionOf is the session of a certain portal link.
func (w *world) portalSessionOf(tn tenant, asked accounts.NewPortalLink) *browser {
	w.t.Helper()
	asked.Tenant, asked.SessionSeconds, asked.By = tn.id, 3600, db.Author{Kind: "command"}
	var link id.UUID
	err := w.db.Tenant(w.t.Context(), tn.id, func(q *db.Tx) error {
		row, _, err := accounts.MakePortalLink(w.t.Context(), q, asked)
		link = row.ID
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.signedIn(accounts.NewSession{Link: &link, Life: time.Hour})
	b.cookie.Name = handlers.NewSessions(w.db, base).Cookie(account.Portal)
	return b
}
