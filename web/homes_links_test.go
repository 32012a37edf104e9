package main

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/sso"
	"posthorn/handlers"
	"posthorn/tools/optest"
)

// linked is a tenant with everything that people and receivers have links to. The links were made in its first home.
type linked struct {
	t             *testing.T
	home          *someHome
	homes         map[string]*someHome
	tenant        id.UUID
	event         string
	hook          *counts
	inbox         string // the path of a test inbox
	inboxEndpoint string
	link          string  // the path of the signed link of the event's delivery
	sent          id.UUID // the delivery of the link
	op            *optest.Provider
}

// newLinked gives a home's tenant an endpoint, an event, a test inbox, and a provider of single sign-on.
func newLinked(t *testing.T, h *someHome) *linked {
	t.Helper()
	l := &linked{t: t, home: h, tenant: uuidOf(t, id.Tenant, h.tenant), hook: newCounts(t)}
	var endpoint, event struct{ ID string }
	h.do(t, "POST", "/endpoints", map[string]any{"url": l.hook.URL + "/hook", "verification": "simple", "event_types": []string{"order.completed"}}, &endpoint)
	until(t, "the endpoint is active", func() bool {
		var now struct{ Status string }
		h.do(t, "GET", "/endpoints/"+endpoint.ID, nil, &now)
		return now.Status == "active"
	})
	h.do(t, "POST", "/events", json.RawMessage(anEvent), &event)
	l.event = event.ID
	until(t, "the event is delivered", func() bool { return l.hook.of(l.event) == 1 })
	var sent struct{ Data []struct{ ID string } }
	h.do(t, "GET", "/events/"+l.event+"/deliveries", nil, &sent)
	l.sent = uuidOf(t, id.Delivery, sent.Data[0].ID)
	l.link = l.eventLink(h, l.sent)
	var inbox struct{ ID, URL string }
	h.do(t, "POST", "/inboxes", map[string]any{"event_types": []string{"never.emitted"}}, &inbox)
	u, err := url.Parse(inbox.URL)
	if err != nil {
		t.Fatal(err)
	}
	l.inbox, l.inboxEndpoint = u.Path, inbox.ID
	l.op = optest.New(t, h.URL()+handlers.SSOPath(l.tenant)+"/callback")
	ring := l.ring(h)
	to := accounts.NewSSO{
		Connection: accounts.Connection{
			Tenant: l.tenant,
			Config: sso.Config{
				Issuer:   l.op.URL,
				ClientID: l.op.ClientID,
				Default:  access.Viewer,
				Join:     true,
				Session:  time.Hour,
			},
		},
		Plain: &l.op.Secret,
		Keys:  ring,
	}
	if err := accounts.ChangeSSO(t.Context(), h.pools[0], to, db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	if err := h.pools[0].Console(t.Context(), func(q *db.Tx) error {
		if _, err := q.InsertDomain(t.Context(), sql.InsertDomainParams{
			TenantID: l.tenant,
			Domain:   "example.com",
			Proof:    "proof",
		}); err != nil {
			return err
		}
		_, err := q.VerifyDomain(t.Context(), l.tenant, "example.com")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return l
}

// ring is the master key of a home.
func (l *linked) ring(h *someHome) *seal.Ring {
	l.t.Helper()
	text := ""
	for _, pair := range h.environ {
		if name, value, _ := strings.Cut(pair, "="); name == "POSTHORN_MASTER_KEY" {
			text = value
		}
	}
	ring, err := seal.NewRing(text)
	if err != nil {
		l.t.Fatal(err)
	}
	return ring
}

// unsubscribe is the path of a link to stop mails, as a home writes it.
func (l *linked) unsubscribe(h *someHome, address string) string {
	links := accounts.Links{Keys: l.ring(h)}
	return links.Unsubscribe(notice.Subscription{
		Tenant:    l.tenant,
		Recipient: notice.AddressRecipient(address),
		Kind:      notice.Digest,
	})
}

// eventLink is the path of the signed link of a delivery, as a home writes it.
func (l *linked) eventLink(h *someHome, dlv id.UUID) string {
	return queue.Links{Keys: l.ring(h)}.Of(l.tenant, dlv)
}

// portal makes a link of a provider's customer, and returns its path.
func (l *linked) portal() string {
	l.t.Helper()
	var link struct{ URL string }
	l.home.do(l.t, "POST", "/portal-links", map[string]any{"role": "viewer"}, &link)
	u, err := url.Parse(link.URL)
	if err != nil {
		l.t.Fatal(err)
	}
	return u.RequestURI()
}

// invite makes an invitation, and returns the path in its mail.
func (l *linked) invite(email string) (path, token string) {
	l.t.Helper()
	token = "token-of-" + email
	if err := l.home.pools[0].Console(l.t.Context(), func(q *db.Tx) error {
		return q.InsertInvitation(l.t.Context(), sql.InsertInvitationParams{
			TenantID:  l.tenant,
			ID:        db.NewID(),
			Email:     email,
			Role:      "viewer",
			Hash:      accounts.HashToken(token),
			InvitedBy: "Ada",
			CreatedAt: time.Now(),
			Lives:     3600,
		})
	}); err != nil {
		l.t.Fatal(err)
	}
	return "/invitations/accept?token=" + token, token
}

// now is the address of a home by its name.
func (l *linked) now(name string) string { return l.homes[name].at() }

// at is where the home's own web process is.
func (h *someHome) at() string { return "http://" + h.Config.Addr }

// tab is a browser at one web process.
type tab struct {
	t    *testing.T
	base string
	*http.Client
}

func newTab(t *testing.T, base string) *tab {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &tab{t, base, &http.Client{Jar: jar}}
}

func (b *tab) get(path string) answer {
	return asker{b.t, b.Client}.request("GET", b.base+path, "", "", "Accept", "text/html")
}

func (b *tab) post(path string, form url.Values) answer {
	began := time.Now()
	got := asker{b.t, b.Client}.request("POST", b.base+path, "", form.Encode(), "Accept", "text/html", "Origin", b.base, "Content-Type", "application/x-www-form-urlencoded")
	if got.status == http.StatusServiceUnavailable {
		b.t.Logf("%s after %s: %.600s", path, time.Since(began), plainText(got.body))
	}
	return got
}

var leads = regexp.MustCompile(`^0; url=(.*)$`)

// mailedLinks are links to a tenant that people have, and the token of the invitation.
type mailedLinks struct{ portal, invitation, token, unsubscribe string }

// worksThrough uses all of the tenant's links at a web process of a home, which is its own or not. home is where the
// tenant is.
func (l *linked) worksThrough(what string, by *someHome, home string, k mailedLinks) {
	portal, invitation, token, unsubscribe := k.portal, k.invitation, k.token, k.unsubscribe
	t := l.t
	t.Helper()
	shows := func(link string, got answer, texts ...string) {
		t.Helper()
		holds(t, what+": "+link, got, texts...)
		if at := got.header.Get("Posthorn-Home"); at != home {
			t.Errorf("%s: %s was shown by %s, want %s", what, link, at, home)
		}
	}
	before := l.hook.of(l.event)
	until(t, what+": what arrived is on record", func() bool {
		got := ask(t, "GET", by.at()+"/api/v1/events/"+l.event+"/deliveries", l.home.key, "")
		return strings.Count(got.body, `"status":"delivered"`) == before
	})
	if got := ask(t, "POST", by.at()+"/api/v1/events/"+l.event+"/replay", l.home.key, `{}`); got.status/100 != 2 || got.header.Get("Posthorn-Home") != home {
		t.Errorf("%s: a replay: %d by %s %s", what, got.status, got.header.Get("Posthorn-Home"), got.body)
	}
	until(t, what+": the replay is delivered", func() bool { return l.hook.of(l.event) == before+1 })

	received := func() int {
		got := ask(t, "GET", by.at()+"/api/v1/endpoints/"+l.inboxEndpoint+"/inbox/requests", l.home.key, "")
		return strings.Count(got.body, `"received_at"`)
	}
	there := received()
	if got := ask(t, "POST", by.at()+l.inbox, "", `{"through":"`+what+`"}`); got.status != http.StatusOK || got.header.Get("Posthorn-Home") != home {
		t.Errorf("%s: the inbox: %d by %s %s", what, got.status, got.header.Get("Posthorn-Home"), got.body)
	}
	if now := received(); now != there+1 {
		t.Errorf("%s: the inbox has %d requests, want %d", what, now, there+1)
	}

	customer := newTab(t, by.at())
	shows("the portal link", customer.get(portal), "Overview")
	shows("the portal's events", customer.get("/t/"+l.home.tenant+"/events"), l.event)

	shows("the signed link to an event", newTab(t, by.at()).get(l.link), `{"n":1}`)
	shows("the link to unsubscribe", newTab(t, by.at()).get(unsubscribe), "Of eu1")
	shows("the one click", newTab(t, by.at()).post(unsubscribe, url.Values{"List-Unsubscribe": {"One-Click"}}), "these emails anymore")

	// A form that no cookie leads to its home.
	guest := newTab(t, by.at())
	shows("the invitation", guest.get(invitation), "Join Of eu1")
	fresh := newTab(t, l.now(home))
	shows("joining", fresh.post("/invitations/accept", url.Values{"token": {token}, "name": {"Ben"}, "password": {"correct horse battery"}}), "Overview")
	email := strings.TrimPrefix(token, "token-of-")
	member := newTab(t, l.now(home))
	shows("signing in", member.post("/sign-in", url.Values{"email": {email}, "password": {"correct horse battery"}}), "Of eu1")

	l.op.SignIn(optest.User{Subject: "sub-" + email, Email: "sso-" + email, Name: "Cleo"})
	person := newTab(t, l.now(home))
	provider := leads.FindStringSubmatch(person.get(handlers.SSOPath(l.tenant)).header.Get("Refresh"))
	if provider == nil {
		t.Fatalf("%s: single sign-on leads nowhere", what)
	}
	back := l.op.Follow(provider[1])
	shows("single sign-on", person.get(back.RequestURI()), "Overview")
}

// Replays, test inboxes, portal links, invitations, links to unsubscribe, passwords and single sign-on work after a
// move at the address that they were made for, which leads to the new home.
func TestLinksWorkAfterAMove(t *testing.T) {
	t.Parallel()
	two, one := newMovingHomes(t)
	l := newLinked(t, two)
	l.homes = map[string]*someHome{"eu1": two, "eu2": one}
	var old []mailedLinks
	for _, name := range []string{"a", "b", "c"} {
		invitation, token := l.invite(name + "@example.com")
		old = append(old, mailedLinks{l.portal(), invitation, token, l.unsubscribe(two, name+"@example.com")})
	}
	use := l.worksThrough
	use("before", two, "eu1", old[0])
	succeed(t, moveEnviron(two, one), &struct{}{}, "tenant", "move", two.tenant, "--to", "eu2", "--json")
	l.op.Redirect(one.URL() + handlers.SSOPath(l.tenant) + "/callback") // as an administrator of the provider allows it
	use("moved, at the home that it left", two, "eu2", old[1])
	first := l.link
	l.link = l.eventLink(one, l.sent)
	use("moved, at its new home", one, "eu2", mailedLinks{old[2].portal, old[2].invitation, old[2].token, l.unsubscribe(one, "c@example.com")})
	// A link that another home has signed for a tenant that it does not have opens nothing.
	if got := newTab(t, one.at()).get(first); got.status != http.StatusNotFound {
		t.Errorf("a link to an event that another home has signed: %d", got.status)
	}
	if got := newTab(t, one.at()).get(old[2].unsubscribe); got.status != http.StatusNotFound {
		t.Errorf("a link to unsubscribe that another home has signed: %d", got.status)
	}
	forged := l.unsubscribe(two, "d@example.com")
	if got := newTab(t, two.at()).get(forged[:len(forged)-2] + "AA"); got.status != http.StatusNotFound {
		t.Errorf("a link to unsubscribe with a wrong signature: %d", got.status)
	}
	// Who joined before the move signs in at the new home with the same password.
	if got := newTab(t, one.at()).post("/sign-in", url.Values{"email": {"a@example.com"}, "password": {"correct horse battery"}}); got.status != http.StatusOK ||
		!strings.Contains(got.body, "Of eu1") {
		t.Errorf("signing in after the move: %d", got.status)
	}
}

// A member who has an account of another id in the new home keeps the choice of mails, and can change it with a link of
// before the move.
func TestAMembersChoiceOfMailsMovesToTheirOtherAccount(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	tenant := uuidOf(t, id.Tenant, one.tenant)
	var here, there id.UUID
	for h, person := range map[*someHome]*id.UUID{one: &here, two: &there} {
		if err := h.pools[0].Console(t.Context(), func(q *db.Tx) (err error) {
			*person, err = accounts.AddPerson(t.Context(), q, "olga@example.com", "Olga", "none")
			if err == nil && h == one {
				_, err = accounts.AddMember(t.Context(), q, tenant, here, access.Owner)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	l := &linked{t: t, tenant: tenant}
	link := func(kind notice.Kind) string {
		return accounts.Links{Keys: l.ring(one)}.Unsubscribe(notice.Subscription{
			Tenant:    tenant,
			Recipient: notice.PersonRecipient(here),
			Kind:      kind,
		})
	}
	kinds := notice.KindsFor(access.Owner)
	stop := func(by *someHome, kind notice.Kind) {
		t.Helper()
		if got := newTab(t, by.at()).post(link(kind), url.Values{"List-Unsubscribe": {"One-Click"}}); got.status != http.StatusOK {
			t.Errorf("%s: %d %.300s", kind, got.status, got.body)
		}
	}
	stop(one, kinds[0])
	succeed(t, moveEnviron(one, two), &struct{}{}, "tenant", "move", one.tenant, "--to", "eu2", "--json")
	stop(one, kinds[1])
	stop(one, kinds[2])
	if n := two.count(t, "SELECT count(*) FROM notice_preferences WHERE tenant_id = $1 AND recipient = $2 AND NOT wanted", tenant, notice.PersonRecipient(there)); n != 3 {
		t.Errorf("%d of 3 choices are those of the account there", n)
	}
}
