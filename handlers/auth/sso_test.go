package auth_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/sso"
	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/handlers/openid"
	"posthorn/tools/optest"
	"posthorn/worker/send"
)

// loopback permits the tests' provider, as an installation does with POSTHORN_EGRESS_ALLOW.
func loopback(t *testing.T) egress.Policy {
	t.Helper()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// company is a tenant with a provider of its own.
type company struct {
	*world
	tenant id.UUID
	path   string
	owner  id.UUID
	op     *optest.Provider
}

// withProviders is a world whose tenants can have providers.
func withProviders(t *testing.T) *world {
	t.Helper()
	policy := loopback(t)
	return newWorld(t, func(_ *handlers.Config, d *auth.Deps) { d.OpenID = openid.New(send.NewClient(policy), d.Now) })
}

// company makes a tenant with a provider and a verified domain.
func (w *world) company(name, domain string, change ...func(*accounts.NewSSO)) *company {
	w.t.Helper()
	c := &company{world: w, owner: w.person("owner@" + domain)}
	c.tenant, c.path = w.tenant(name, c.owner)
	c.op = optest.New(w.t, base+handlers.SSOPath(c.tenant)+"/callback")
	c.configure(change...)
	if domain != "" {
		w.SQL("INSERT INTO sso_domains (tenant_id, domain, proof, created_at, verified_at) VALUES ($1, $2, 'proof', now(), now())", c.tenant, domain)
	}
	return c
}

func (c *company) configure(change ...func(*accounts.NewSSO)) {
	c.t.Helper()
	to := accounts.NewSSO{
		Connection: accounts.Connection{
			Tenant: c.tenant,
			Config: sso.Config{
				Issuer:   c.op.URL,
				ClientID: c.op.ClientID,
				Default:  access.Viewer,
				Join:     true,
				Session:  time.Hour,
			},
		},
		Plain: &c.op.Secret,
		Keys:  c.ring,
	}
	for _, fn := range change {
		fn(&to)
	}
	if err := accounts.ChangeSSO(c.t.Context(), c.db, to, db.Author{Kind: "command"}); err != nil {
		c.t.Fatal(err)
	}
}

var refreshTo = regexp.MustCompile(`^0; url=(.*)$`)

// departs starts a sign-in at the provider, and returns the redirect URI with its query.
func (b *browser) departs(path string) string {
	b.w.t.Helper()
	p := b.get(path).want(http.StatusOK, "Continue to 127.0.0.1:")
	found := refreshTo.FindStringSubmatch(p.Header.Get("Refresh"))
	if found == nil || !strings.Contains(html.UnescapeString(p.Body), found[1]) {
		b.w.t.Fatalf("%s leads nowhere: %v", path, p.Header)
	}
	return found[1]
}

// comeBack opens the redirect URI.
func (c *company) comeBack(b *browser, start string) *page {
	c.t.Helper()
	return b.get(c.op.Follow(start).RequestURI())
}

// signIn signs a user in by the tenant's provider.
func (c *company) signIn(b *browser, u optest.User) *page {
	c.t.Helper()
	c.op.SignIn(u)
	return c.comeBack(b, b.departs(handlers.SSOPath(c.tenant)))
}

func (c *company) role(email string) string {
	c.t.Helper()
	return one[string](c.world, "SELECT coalesce((SELECT m.role FROM memberships m JOIN people p ON p.id = m.person_id WHERE m.tenant_id = $1 AND p.email = $2), '')", c.tenant, email)
}

// audited counts entries of the tenant's audit log.
func (c *company) audited(action string) int {
	c.t.Helper()
	return one[int](c.world, "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = $2", c.tenant, action)
}

var ada = optest.User{Subject: "sub-ada", Email: "Ada@acme.test", Name: "Ada Lovelace"}

func TestANewMemberGetsTheMappedRole(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test", func(n *accounts.NewSSO) {
		n.RoleClaim, n.Roles = "groups", sso.Mapping{"eng": access.Developer, "ops": access.Admin}
	})
	b := w.browser()
	u := ada
	u.Claims = map[string]any{"groups": []string{"eng", "all"}}
	c.signIn(b, u).to(c.path)
	b.get(c.path).want(http.StatusOK, "Acme")
	if got := c.role("ada@acme.test"); got != "developer" {
		t.Errorf("the new member is a %q", got)
	}
	if c.audited("member.joined") != 1 || c.audited("sign_in.succeeded") != 1 {
		t.Error("the audit log does not tell how the member came")
	}
	// The provider knows better later, and each sign-in follows it.
	u.Claims = map[string]any{"groups": []string{"ops"}}
	c.signIn(b, u).to(c.path)
	if got := c.role("ada@acme.test"); got != "admin" || c.audited("member.role_changed") != 1 {
		t.Errorf("the member is a %q after the group changed", got)
	}
	// No group, and then the default. The sign-in page finds the provider by the domain.
	u.Claims = map[string]any{"groups": []string{}}
	c.op.SignIn(u)
	found := w.browser()
	p := found.post("/sign-in/sso", url.Values{"email": {"ada@ACME.test"}}).want(http.StatusOK, "Continue")
	start := refreshTo.FindStringSubmatch(p.Header.Get("Refresh"))[1]
	if !strings.Contains(start, "login_hint=ada%40acme.test") || !strings.Contains(start, "code_challenge_method=S256") || !strings.Contains(start, "nonce=") {
		t.Errorf("the provider is asked with %s", start)
	}
	c.comeBack(found, start).to(c.path)
	if got := c.role("ada@acme.test"); got != "viewer" {
		t.Errorf("the member without a group is a %q", got)
	}
	found.post("/sign-in/sso", url.Values{"email": {"ada@elsewhere.test"}}).want(http.StatusBadRequest, "No tenant has set up single sign-on for elsewhere.test")
}

// A test sign-in goes all the way to the provider and back, and says what a sign-in would do. It does nothing.
func TestATestSignInSaysWhatASignInWouldDo(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test", func(n *accounts.NewSSO) {
		n.RoleClaim, n.Roles, n.Default = "groups", sso.Mapping{"eng": access.Developer}, ""
	})
	try := func(groups ...string) *page {
		b, u := w.browser(), ada
		u.Claims = map[string]any{"groups": groups}
		c.op.SignIn(u)
		back := c.comeBack(b, b.departs(handlers.SSOPath(c.tenant)+"?test=true"))
		b.get(c.path).to("/sign-in") // nobody is signed in
		return back
	}
	try("eng").want(http.StatusOK, "The test sign-in works", "ada@acme.test becomes a member with the role developer")
	try("sales").want(http.StatusForbidden, "Sign-in failed")
	if got := c.role("ada@acme.test"); got != "" || c.audited("member.joined") != 0 || c.audited("sign_in.succeeded") != 0 {
		t.Errorf("the test made a %q", got)
	}
	c.op.SignIn(optest.User{Subject: ada.Subject, Email: ada.Email, Claims: map[string]any{"groups": []string{"eng"}}})
	c.comeBack(w.browser(), w.browser().departs(handlers.SSOPath(c.tenant)+"?test=true")).want(http.StatusGone)
}

func TestAMalformedProviderAnswerIsRejected(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	hour := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, change := range map[string]func(map[string]any){
		"wrong audience":           func(s map[string]any) { s["aud"] = "another-client" },
		"issued to another client": func(s map[string]any) { s["aud"] = []string{"posthorn", "b"}; s["azp"] = "b" },
		"two audiences, no azp":    func(s map[string]any) { s["aud"] = []string{"posthorn", "b"}; delete(s, "azp") },
		"another nonce":            func(s map[string]any) { s["nonce"] = "stolen" },
		"no nonce":                 func(s map[string]any) { delete(s, "nonce") },
		"another issuer":           func(s map[string]any) { s["iss"] = "https://evil.example" },
		"expired":                  func(s map[string]any) { s["exp"] = hour(-time.Hour) },
		"not yet valid":            func(s map[string]any) { s["nbf"] = hour(time.Hour) },
		"no subject":               func(s map[string]any) { delete(s, "sub") },
		"a subject of no text":     func(s map[string]any) { s["sub"] = 1 },
	} {
		c.op.Change(change)
		if p := c.signIn(w.browser(), ada); p.Status != http.StatusForbidden || len(p.Cookies) > 0 &&
			p.Cookies[0].Name == "posthorn" {
			t.Errorf("%s: answered %d: %s", name, p.Status, p.Body)
		}
	}
	c.op.Forge()
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "isn&#39;t valid for this sign-in")
	c.op.Change(func(s map[string]any) { s["session_expiry"] = hour(-time.Minute) })
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "session at your provider is over")
	c.op.Change(func(s map[string]any) { s["email_verified"] = false })
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "verified")
	c.op.Change(func(s map[string]any) { delete(s, "email_verified") })
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "verified")
	if got := c.role("ada@acme.test"); got != "" {
		t.Errorf("a rejected token made a %q", got)
	}
	if c.audited("sign_in.failed") < 14 || c.audited("sign_in.succeeded") != 0 {
		t.Errorf("the audit log has %d failures", c.audited("sign_in.failed"))
	}
	c.op.Change(nil)
	c.signIn(w.browser(), ada).to(c.path)
	if strings.Contains(w.log.String(), c.op.Secret) {
		t.Error("the log holds the client's secret")
	}
}

func TestAProvidersKeysRotate(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	c.signIn(w.browser(), ada).to(c.path)
	c.op.Rotate()
	c.signIn(w.browser(), ada).to(c.path)
	// A key that the provider no longer publishes is rejected immediately.
	c.op.Withdraw()
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "isn&#39;t valid for this sign-in")
	c.op.Change(nil)
	c.signIn(w.browser(), ada).to(c.path)
	c.op.HideKeys(true)
	if p := c.signIn(w.browser(), ada); p.Status != http.StatusForbidden && p.Status != http.StatusServiceUnavailable {
		t.Errorf("without keys a sign-in answered %d", p.Status)
	}
}

func TestACodeAndAStateWorkOnceAndInOneBrowser(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	c.op.SignIn(ada)
	b, thief := w.browser(), w.browser()
	back := c.op.Follow(b.departs(handlers.SSOPath(c.tenant)))
	thief.get(back.RequestURI()).want(http.StatusGone, "another browser")
	thief.departs(handlers.SSOPath(c.tenant)) // with a cookie of its own
	thief.get(back.RequestURI()).want(http.StatusGone)
	if len(thief.cookies) != 1 {
		t.Errorf("the thief has %v", thief.cookies)
	}
	// The thief has not used it up.
	b.get(back.RequestURI()).to(c.path)
	b.get(back.RequestURI()).want(http.StatusGone, "already finished")
	// A code that was used is replayed with a new state of the same browser: the provider and PKCE refuse it.
	again, err := url.Parse(b.departs(handlers.SSOPath(c.tenant)))
	if err != nil {
		t.Fatal(err)
	}
	q := back.Query()
	q.Set("state", again.Query().Get("state"))
	b.get(back.Path+"?"+q.Encode()).want(http.StatusForbidden, "isn&#39;t valid for this sign-in")
	// A code of the thief's own sign-in, in the victim's browser: the verifier is another browser's.
	own := c.op.Follow(thief.departs(handlers.SSOPath(c.tenant)))
	victim := w.browser()
	mine, _ := url.Parse(victim.departs(handlers.SSOPath(c.tenant)))
	q = own.Query()
	q.Set("state", mine.Query().Get("state"))
	victim.get(own.Path + "?" + q.Encode()).want(http.StatusForbidden)
	// A state that has expired.
	late := c.op.Follow(b.departs(handlers.SSOPath(c.tenant)))
	w.SQL("UPDATE one_time_links SET expires_at = now() - interval '1 second' WHERE purpose = 'sso'")
	b.get(late.RequestURI()).want(http.StatusGone)
	// A state of one tenant at the callback of another.
	other := w.company("Other", "other.test")
	mixed := c.op.Follow(b.departs(handlers.SSOPath(c.tenant)))
	b.get(strings.Replace(mixed.RequestURI(), handlers.SSOPath(c.tenant), handlers.SSOPath(other.tenant), 1)).want(http.StatusGone)
	// The provider declines.
	declined, _ := url.Parse(b.departs(handlers.SSOPath(c.tenant)))
	b.get(handlers.SSOPath(c.tenant) + "/callback?error=access_denied&state=" + declined.Query().Get("state")).want(http.StatusForbidden)
	// The provider's configuration changes in between.
	moved := c.op.Follow(b.departs(handlers.SSOPath(c.tenant)))
	c.configure(func(n *accounts.NewSSO) { n.ClientID = "posthorn2" })
	if p := b.get(moved.RequestURI()); p.Status < 400 {
		t.Errorf("a sign-in of the former configuration answered %d", p.Status)
	}
}

// TestAHostileProviderStaysInItsTenant is the account takeover that a provider of a tenant's own makes possible: it can
// assert any address. It must open that tenant alone, for its own people.
func TestAHostileProviderStaysInItsTenant(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	victim := w.person("victim@bank.test")
	bank, bankPath := w.tenant("Bank", victim)
	evil := w.company("Evil", "evil.test")
	posing := optest.User{Subject: "x", Email: "victim@bank.test", Name: "Victim"}
	b := w.browser()
	evil.signIn(b, posing).want(http.StatusForbidden, "aren&#39;t a member of this tenant")
	// Even where the victim accepted an invitation to the hostile tenant, the session opens nothing else of theirs.
	w.join(evil.tenant, victim, access.Viewer)
	evil.signIn(b, posing).to(evil.path)
	b.get(evil.path).want(http.StatusOK)
	for _, path := range []string{bankPath, bankPath + "/members", bankPath + "/keys"} {
		b.get(path).want(http.StatusNotFound)
	}
	for _, path := range []string{"/account", "/tenants/new", "/account/confirm", "/account/totp"} {
		b.get(path).want(http.StatusForbidden, "opens that tenant only")
	}
	for _, path := range []string{
		"/account/password", "/account/email", "/account/totp/start", "/account/delete", "/account/name", "/account/sessions/end-others", "/account/recovery-codes", "/tenants/new",
	} {
		b.post(path, url.Values{"password": {"a new password for the victim"}, "email": {"x@evil.test"}, "name": {"x"}}).want(http.StatusForbidden)
	}
	for _, path := range []string{"/tenants", evil.path, "/"} {
		if p := b.get(path); strings.Contains(p.Body, "Bank") || strings.Contains(p.Body, id.Tenant.Format(bank)) {
			t.Errorf("%s names another tenant of the victim", path)
		}
	}
	b.post("/sign-out", url.Values{}).to("/sign-in")
	if n := one[int](w, "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND (action LIKE 'sign%')", bank); n != 0 {
		t.Errorf("the bank's audit log has %d entries about another tenant's sign-ins", n)
	}
	// An invitation to another tenant is not accepted in the victim's name.
	owner := w.signedIn("victim@bank.test")
	owner.post(bankPath+"/members/invite", url.Values{"email": {"owner@evil.test"}, "role": {"admin"}}).to(bankPath)
	evil.signIn(b, optest.User{Subject: "y", Email: "owner@evil.test"}).to(evil.path)
	link := w.lastMail("owner@evil.test", "invitation").Token
	b.post("/invitations/accept", url.Values{"token": {link}}).want(http.StatusSeeOther)
	if n := one[int](w, "SELECT count(*) FROM memberships WHERE tenant_id = $1", bank); n != 1 {
		t.Error("a session of another tenant's provider accepted an invitation")
	}
	// An address of a domain that the tenant has not verified makes no account, invited or not.
	w.signedIn("owner@evil.test").post(evil.path+"/members/invite", url.Values{"email": {"new@bank.test"}, "role": {"viewer"}}).to(evil.path)
	evil.signIn(w.browser(), optest.User{Subject: "z", Email: "new@bank.test"}).want(http.StatusForbidden)
	if n := one[int](w, "SELECT count(*) FROM people WHERE email = 'new@bank.test'"); n != 0 {
		t.Error("a provider made an account for an address that it does not speak for")
	}
	// Another account of the provider does not take a linked member over.
	evil.signIn(w.browser(), optest.User{Subject: "x2", Email: "victim@bank.test"}).want(http.StatusForbidden, "another account")
}

func TestSSOOnlyRefusesPasswordsExceptTheBreakGlassAccount(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	member := w.join(c.tenant, w.person("dev@acme.test"), access.Developer)
	second := w.join(c.tenant, w.person("boss@acme.test"), access.Owner)
	owner, err := id.Member.Parse(w.members(c.tenant, "owner@acme.test")["owner@acme.test"])
	if err != nil {
		t.Fatal(err)
	}
	only := func(glass *id.UUID) func(*accounts.NewSSO) {
		return func(n *accounts.NewSSO) { n.Only, n.BreakGlass = true, glass }
	}
	for name, glass := range map[string]*id.UUID{"nobody": nil, "a developer": &member} {
		to := accounts.NewSSO{
			Connection: accounts.Connection{Tenant: c.tenant, Only: true, BreakGlass: glass},
			Keys:       w.ring,
		}
		if err := accounts.ChangeSSO(t.Context(), w.db, to, db.Author{Kind: "command"}); err == nil {
			t.Errorf("%s is the break-glass account", name)
		}
	}
	dev := w.signedIn("dev@acme.test")
	dev.get(c.path).want(http.StatusOK)
	c.configure(only(&owner))
	// A session by password ends at the tenant's pages, also an older one, and for another owner.
	to := dev.get(c.path + "/endpoints").to(handlers.SSOPath(c.tenant))
	if !strings.Contains(to, "next=") {
		t.Errorf("it leads to %s", to)
	}
	dev.post(c.path+"/leave", url.Values{}).to(handlers.SSOPath(c.tenant))
	w.signedIn("boss@acme.test").get(c.path).to(handlers.SSOPath(c.tenant))
	glass := w.signedIn("owner@acme.test")
	glass.get(c.path).want(http.StatusOK)
	// They sign in by the provider, and return to the page that they wanted.
	c.op.SignIn(optest.User{Subject: "dev", Email: "dev@acme.test"})
	c.comeBack(dev, dev.departs(to)).to(c.path + "/endpoints")
	dev.get(c.path).want(http.StatusOK)
	// The break-glass account stays an owner and a member.
	glass.post(c.path+"/members/"+id.Member.Format(owner)+"/role", url.Values{"role": {"viewer"}}).want(http.StatusConflict, "break-glass")
	glass.post("/account/delete", url.Values{}).want(http.StatusConflict, "break-glass")
	glass.post(c.path+"/members/"+id.Member.Format(second)+"/remove", url.Values{}).to(c.path)
	if c.audited("sso.changed") < 2 {
		t.Error("the change is not in the audit log")
	}
}

func TestSessionsEndWhenTheProviderSaysSo(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	logout := func(token string, status int) {
		t.Helper()
		w.browser().post(handlers.SSOPath(c.tenant)+"/logout", url.Values{"logout_token": {token}}, "Accept", "application/json").want(status)
	}
	withSID := func(sid string) {
		c.op.Change(func(s map[string]any) { s["sid"] = sid })
	}
	laptop, phone, other := w.browser(), w.browser(), w.browser()
	withSID("one")
	c.signIn(laptop, ada).to(c.path)
	withSID("two")
	c.signIn(phone, ada).to(c.path)
	c.op.Change(nil)
	c.signIn(other, optest.User{Subject: "sub-bob", Email: "bob@acme.test"}).to(c.path)
	// Tokens that are none of this client's end nothing.
	for name, change := range map[string]func(map[string]any){
		"another client's":   func(s map[string]any) { s["aud"] = "b" },
		"another issuer's":   func(s map[string]any) { s["iss"] = "https://evil.example" },
		"without its event":  func(s map[string]any) { delete(s, "events") },
		"with a nonce":       func(s map[string]any) { s["nonce"] = "n" },
		"expired":            func(s map[string]any) { s["exp"] = time.Now().Add(-time.Hour).Unix() },
		"without an id":      func(s map[string]any) { delete(s, "jti") },
		"without a subject":  func(s map[string]any) { delete(s, "sub"); delete(s, "sid") },
		"without expiration": func(s map[string]any) { delete(s, "exp") },
	} {
		t.Log(name)
		logout(c.op.LogoutToken("bad", "sub-ada", "", change), http.StatusBadRequest)
	}
	logout("nonsense", http.StatusBadRequest)
	laptop.get(c.path).want(http.StatusOK)
	// One session of the provider.
	logout(c.op.LogoutToken("first", "sub-ada", "one", nil), http.StatusOK)
	laptop.get(c.path).to("/sign-in")
	phone.get(c.path).want(http.StatusOK)
	// All of the account. The same token ends nothing a second time.
	all := c.op.LogoutToken("second", "sub-ada", "", nil)
	logout(all, http.StatusOK)
	phone.get(c.path).to("/sign-in")
	other.get(c.path).want(http.StatusOK)
	c.signIn(phone, ada).to(c.path)
	logout(all, http.StatusOK)
	phone.get(c.path).want(http.StatusOK)
	if c.audited("sessions.ended") != 2 {
		t.Errorf("the audit log tells of %d logouts", c.audited("sessions.ended"))
	}
	// Another tenant's provider ends none of this tenant's sessions.
	evil := w.company("Evil", "evil.test")
	w.browser().post(handlers.SSOPath(evil.tenant)+"/logout", url.Values{"logout_token": {evil.op.LogoutToken("x", "sub-ada", "", nil)}}).want(http.StatusOK)
	phone.get(c.path).want(http.StatusOK)
	// The provider's own limit, and then the tenant's.
	c.op.Change(func(s map[string]any) { s["session_expiry"] = time.Now().Add(10 * time.Minute).Unix() })
	c.signIn(laptop, ada).to(c.path)
	if n := one[int](w, "SELECT count(*) FROM sessions WHERE expires_at < now() + interval '11 minutes' AND sso_tenant IS NOT NULL"); n != 1 {
		t.Errorf("%d sessions end with the provider's", n)
	}
	if n := one[int](w, "SELECT count(*) FROM sessions WHERE expires_at > now() + interval '61 minutes'"); n != 0 {
		t.Errorf("%d sessions outlive the tenant's limit", n)
	}
	w.SQL("UPDATE sessions SET expires_at = now() - interval '1 second' WHERE sso_tenant IS NOT NULL")
	laptop.get(c.path).to("/sign-in")
	phone.get(c.path).to("/sign-in")
}

func TestARemovedMemberDoesNotComeBackByTheProvider(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	b := w.browser()
	c.signIn(b, ada).to(c.path)
	owner := w.signedIn("owner@acme.test")
	member := w.members(c.tenant, "ada@acme.test")["ada@acme.test"]
	owner.post(c.path+"/members/"+member+"/remove", url.Values{}).to(c.path)
	b.get(c.path).want(http.StatusNotFound)
	c.signIn(b, ada).want(http.StatusForbidden, "You were removed from this tenant")
	owner.post(c.path+"/members/invite", url.Values{"email": {"ada@acme.test"}, "role": {"admin"}}).to(c.path)
	c.signIn(b, ada).to(c.path)
	if got := c.role("ada@acme.test"); got != "admin" {
		t.Errorf("the invited member is a %q", got)
	}
	w.SQL("UPDATE people SET disabled_at = now() WHERE email = 'ada@acme.test'")
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "disabled")
}

func TestAnAccountThatWasMadeAgainAtTheProviderIsLinkedAfterAnInvitation(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	c.signIn(w.browser(), ada).to(c.path)
	again := ada
	again.Subject = "sub-ada-again"
	c.signIn(w.browser(), again).want(http.StatusForbidden, "belongs to another account of your provider")
	owner := w.signedIn("owner@acme.test")
	remove := func() {
		t.Helper()
		member := w.members(c.tenant, "ada@acme.test")["ada@acme.test"]
		owner.post(c.path+"/members/"+member+"/remove", url.Values{}).to(c.path)
	}
	remove()
	// Removed means removed, with any account of the provider, although the domain is the tenant's own.
	c.signIn(w.browser(), again).want(http.StatusForbidden, "You were removed from this tenant")
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "You were removed from this tenant")
	owner.post(c.path+"/members/invite", url.Values{"email": {"ada@acme.test"}, "role": {"developer"}}).to(c.path)
	c.signIn(w.browser(), again).to(c.path)
	if got := c.role("ada@acme.test"); got != "developer" {
		t.Errorf("the invited member is a %q", got)
	}
	c.signIn(w.browser(), again).to(c.path)
	// The account of before is another person now.
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "belongs to another account of your provider")

	// The same by the invitation's link, without the provider.
	remove()
	w.person("ada2@acme.test")
	if err := w.db.Console(t.Context(), func(q *db.Tx) error {
		p, err := q.FindPerson(t.Context(), "ada@acme.test")
		if err == nil {
			_, err = accounts.AddMember(t.Context(), q, c.tenant, p.ID, access.Viewer)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	third := ada
	third.Subject = "sub-ada-third"
	c.signIn(w.browser(), third).to(c.path)
}

func TestAnOperatorsCommandUnlinksAMember(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c, other := w.company("Acme", "acme.test"), w.company("Beta", "beta.test")
	b := w.browser()
	c.signIn(b, ada).to(c.path)
	by := db.Author{Kind: "command", ID: "root"}
	n, err := accounts.UnlinkSSO(t.Context(), w.db, account.Person, "ada@acme.test", "the realm was rebuilt", by)
	if err != nil || n != 1 {
		t.Fatalf("unlinked in %d tenants: %v", n, err)
	}
	b.get(c.path).to("/sign-in")
	if c.audited("sso.unlinked") != 1 || other.audited("sso.unlinked") != 0 {
		t.Error("the audit log does not tell who was unlinked")
	}
	again := ada
	again.Subject = "sub-ada-again"
	c.signIn(w.browser(), again).to(c.path)
	// Who was removed is not let in by it.
	owner := w.signedIn("owner@acme.test")
	owner.post(c.path+"/members/"+w.members(c.tenant, "ada@acme.test")["ada@acme.test"]+"/remove", url.Values{}).to(c.path)
	if n, err := accounts.UnlinkSSO(t.Context(), w.db, account.Person, "ada@acme.test", "again", by); err != nil || n != 0 {
		t.Errorf("a removed member was unlinked in %d tenants: %v", n, err)
	}
	c.signIn(w.browser(), again).want(http.StatusForbidden, "You were removed")
}

func TestGroupsThatTheProviderDoesNotTellKeepTheRole(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test", func(n *accounts.NewSSO) {
		n.RoleClaim, n.Roles = "groups", sso.Mapping{"eng": access.Developer, "ops": access.Admin}
	})
	in := func(groups any) optest.User {
		u := ada
		u.Claims = map[string]any{"groups": groups}
		return u
	}
	overage := func(s map[string]any) {
		s["_claim_names"] = map[string]any{"groups": "src1"}
		s["_claim_sources"] = map[string]any{"src1": map[string]any{"endpoint": "https://graph.example.test"}}
	}
	gaps := []struct {
		name   string
		change func(map[string]any)
		user   optest.User
		says   string
	}{
		{"absent", nil, ada, "didn&#39;t send the claim"},
		{"too many, by the claim's name", overage, ada, "because there are too many"},
		{"too many, by hasgroups", func(s map[string]any) { s["hasgroups"] = true }, ada, "because there are too many"},
		{"a number", nil, in(7), "can&#39;t be read"},
		{"a list without names", nil, in([]any{map[string]any{"size": 3}}), "can&#39;t be read"},
	}
	// Someone new has no role that could stay.
	for _, gap := range gaps {
		c.op.Change(gap.change)
		c.signIn(w.browser(), gap.user).want(http.StatusForbidden, gap.says, "administrator of the provider")
	}
	c.op.Change(nil)
	c.signIn(w.browser(), in([]string{"ops"})).to(c.path)
	owner := w.signedIn("owner@acme.test")
	if p := owner.get(c.path + "/members").want(http.StatusOK); strings.Contains(p.Body, "Role kept") {
		t.Error("the page says that a role was kept which the provider set")
	}
	for i, gap := range gaps {
		c.op.Change(gap.change)
		c.signIn(w.browser(), gap.user).to(c.path)
		if got := c.role("ada@acme.test"); got != "admin" {
			t.Errorf("%s: the admin became a %q", gap.name, got)
		}
		owner.get(c.path+"/members").want(http.StatusOK, "Role kept. ", gap.says)
		if n := one[int](w, "SELECT count(*) FROM audit_log WHERE action = 'sign_in.succeeded' AND reason LIKE 'Role kept.%'"); n != i+1 {
			t.Errorf("%s: %d entries of the audit log say that the role was kept", gap.name, n)
		}
	}
	if !strings.Contains(w.log.String(), "did not tell the groups") {
		t.Error("the log says nothing about the groups")
	}
	// What is told counts, also that there are none.
	c.op.Change(nil)
	for _, none := range []any{[]string{}, []string{"other"}, map[string]any{"ops": false}, map[string]any{"ops": nil}, ""} {
		c.signIn(w.browser(), in([]any{map[string]any{"name": "ops"}})).to(c.path)
		if got := c.role("ada@acme.test"); got != "admin" {
			t.Errorf("a list of objects makes a %q", got)
		}
		c.signIn(w.browser(), in(none)).to(c.path)
		if got := c.role("ada@acme.test"); got != "viewer" {
			t.Errorf("with the groups %v the member is a %q", none, got)
		}
	}
	if p := owner.get(c.path + "/members").want(http.StatusOK); strings.Contains(p.Body, "Role kept") {
		t.Error("the page says that a role was kept which the provider set")
	}
}

func TestATokenIsNotRejectedForWhatASignInDoesNotNeed(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, change := range map[string]func(map[string]any){
		"a provider's clock is behind":   func(s map[string]any) { s["exp"] = at(-30 * time.Second) },
		"a provider's clock is ahead":    func(s map[string]any) { s["iat"], s["nbf"] = at(3*time.Minute), at(40*time.Second) },
		"auth_time is a text":            func(s map[string]any) { s["auth_time"] = strconv.FormatInt(at(-time.Minute), 10) },
		"auth_time is no time":           func(s map[string]any) { s["auth_time"] = map[string]any{"at": "noon"} },
		"name is an object":              func(s map[string]any) { s["name"] = map[string]any{"first": "Ada"} },
		"sid is a number":                func(s map[string]any) { s["sid"] = 7 },
		"session_expiry is a text":       func(s map[string]any) { s["session_expiry"] = strconv.FormatInt(at(time.Hour), 10) },
		"email_verified is a text":       func(s map[string]any) { s["email_verified"] = "true" },
		"a claim nobody knows is a list": func(s map[string]any) { s["xyz"] = []any{1, "a", nil} },
	} {
		c.op.Change(change)
		if p := c.signIn(w.browser(), ada); p.Status != http.StatusSeeOther {
			t.Errorf("%s: answered %d: %s", name, p.Status, p.Body)
		}
	}
	c.op.Change(func(s map[string]any) { s["exp"] = at(-2 * time.Minute) })
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "response has expired", "clock")
	c.op.Change(func(s map[string]any) { s["session_expiry"] = "soon" })
	c.signIn(w.browser(), ada).want(http.StatusForbidden, "isn&#39;t valid for this sign-in")
	// An auth_time as a text is as fresh as one as a number.
	c.op.Change(func(s map[string]any) { s["auth_time"] = strconv.FormatInt(at(-time.Second), 10) })
	b := w.browser()
	c.signIn(b, ada).to(c.path)
	if old := one[float64](w, "SELECT extract(epoch FROM now() - fresh_at) FROM sessions ORDER BY created_at DESC LIMIT 1"); old > 60 {
		t.Errorf("the sign-in counts as %v s old", old)
	}
}

func TestWhatNeedsAFreshSignInNeedsOneAtTheProvider(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test")
	b := w.browser()
	boss := optest.User{Subject: "boss", Email: "owner@acme.test"}
	c.op.Authenticated(time.Now().Add(-time.Hour))
	c.signIn(b, boss).to(c.path)
	to := b.get(c.path + "/settings/sso").to(handlers.SSOPath(c.tenant) + "/again?next=")
	start := b.departs(to)
	if !strings.Contains(start, "max_age=0") || !strings.Contains(start, "prompt=login") {
		t.Errorf("the provider is asked with %s", start)
	}
	c.op.Authenticated(time.Time{})
	c.comeBack(b, start).to(c.path + "/settings/sso")
	b.get(c.path+"/settings/sso").want(http.StatusOK, "Back-channel logout URI")
}

func TestWhatTheProviderTellsAtUserinfoCounts(t *testing.T) {
	t.Parallel()
	w := withProviders(t)
	c := w.company("Acme", "acme.test", func(n *accounts.NewSSO) {
		n.RoleClaim, n.Roles = "realm.roles", sso.Mapping{"eng": access.Developer}
	})
	c.op.Thin()
	u := ada
	u.Claims = map[string]any{"realm": map[string]any{"roles": map[string]any{"eng": "x"}}}
	c.signIn(w.browser(), u).to(c.path)
	if got := c.role("ada@acme.test"); got != "developer" {
		t.Errorf("the member is a %q", got)
	}
	if c.op.Asked("/userinfo") == 0 {
		t.Error("the userinfo endpoint was not asked")
	}
}

func TestProvidersAreReachedThroughTheGuard(t *testing.T) {
	t.Parallel()
	policy, err := egress.ParseAllow("")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *handlers.Config, d *auth.Deps) { d.OpenID = openid.New(send.NewClient(policy), d.Now) })
	c := w.company("Acme", "acme.test")
	b := w.browser()
	b.get(handlers.SSOPath(c.tenant)).want(http.StatusServiceUnavailable, "can&#39;t be reached")
	if c.op.Asked("/.well-known/openid-configuration") != 0 {
		t.Error("a private address was asked")
	}
	unknown := b.get(handlers.SSOPath(db.NewID())).want(http.StatusNotFound, "isn&#39;t set up")
	without, _ := w.tenant("Without", w.person("a@b.test"))
	for _, tenant := range []string{id.Tenant.Format(without), "nonsense"} {
		if p := b.get("/sso/" + tenant); p.Status != unknown.Status {
			t.Errorf("%s answered %d", tenant, p.Status)
		}
	}
}
