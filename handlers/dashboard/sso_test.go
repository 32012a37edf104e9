package dashboard_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/dashboard"
	"posthorn/handlers/openid"
	"posthorn/tools/optest"
	"posthorn/tools/webtest"
	"posthorn/worker/send"
)

// ssoWorld is a dashboard with a DNS of its own, from which the tests' providers can be reached.
func ssoWorld(t *testing.T, records map[string][]string) *world {
	t.Helper()
	w := newWorld(t)
	w.engine = webtest.Serve(w.Config(time.Now, base), dashboard.Routes(dashboard.Deps{
		DB:      w.db,
		Keys:    w.ring,
		BaseURL: base,
		Log:     w.Logger,
		Now:     time.Now,
		Egress:  w.Egress,
		OpenID:  openid.New(send.NewClient(w.Egress), time.Now),
		LookupTXT: func(_ context.Context, name string) ([]string, error) {
			if texts, ok := records[name]; ok {
				return texts, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		},
	}))
	return w
}

func TestAnOwnerSetsUpSingleSignOn(t *testing.T) {
	t.Parallel()
	w := ssoWorld(t, nil)
	tn := w.tenant("Acme")
	owner, root := tn.of[access.Owner], tn.path+"/settings/sso"
	op := optest.New(t, base+handlers.SSOPath(tn.id)+"/callback")
	form := func(change ...string) url.Values {
		v := url.Values{
			"issuer":        {op.URL},
			"client_id":     {"posthorn"},
			"client_secret": {op.Secret},
			"session_hours": {"1.5"},
			"role_claim":    {"groups"},
			"role_map":      {"eng = developer"},
			"default_role":  {"viewer"},
			"join":          {"true"},
		}
		for i := 0; i+1 < len(change); i += 2 {
			v.Set(change[i], change[i+1])
		}
		return v
	}
	owner.get(root).want(200, base+handlers.SSOPath(tn.id)+"/callback", base+handlers.SSOPath(tn.id)+"/logout")
	owner.get(tn.path+"/settings").want(200, root)
	for _, role := range []access.Role{access.Admin, access.Developer, access.Viewer} {
		tn.of[role].get(root).want(http.StatusForbidden)
		tn.of[role].post(root, form()).want(http.StatusForbidden)
		tn.of[role].post(root+"/domains", url.Values{"domain": {"acme.test"}}).want(http.StatusForbidden)
	}
	for name, c := range map[string]struct{ field, value, part string }{
		"a private address":         {"issuer", "https://10.0.0.1", "public"},
		"plain http":                {"issuer", "http://login.example.com", "https://"},
		"a query":                   {"issuer", op.URL + "/?a=b", "no query"},
		"nobody there":              {"issuer", "http://127.0.0.1:1024", "can&#39;t read the provider&#39;s configuration"},
		"another issuer":            {"issuer", op.URL + "/", "can&#39;t read the provider&#39;s configuration"},
		"an owner by a group":       {"role_map", "eng = owner", "can&#39;t make owners"},
		"no client":                 {"client_id", "", "client id"},
		"a session without an end":  {"session_hours", "1000", "0.25 to 336"},
		"a session of nothing":      {"session_hours", "x", "0.25 to 336"},
		"a role that there is not":  {"default_role", "owner", "admin, developer, or viewer"},
		"SSO only without a way in": {"sso_only", "true", "Select an owner who has a password"},
	} {
		got := owner.post(root, form(c.field, c.value))
		if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, c.part) {
			t.Errorf("%s: answered %d: %s", name, got.Status, got.Body)
		}
	}
	if n := one[int](w, "SELECT count(*) FROM sso_connections"); n != 0 {
		t.Fatalf("%d connections are stored", n)
	}
	w.SQL("UPDATE people SET password = 'a hash' WHERE id IN (SELECT person_id FROM memberships WHERE role = 'owner')")
	member := id.Member.Format(id.UUID(one[[16]byte](w, "SELECT id FROM memberships WHERE tenant_id = $1 AND role = 'owner'", tn.id.String())))
	owner.post(root, form("sso_only", "true", "break_glass", member)).to(root)
	owner.get(root).want(200, "A secret is stored", "eng = developer", `value="1.5"`).lacks(op.Secret)
	if n := one[int](w, "SELECT count(*) FROM sso_connections WHERE position($1::bytea IN client_secret) = 0 AND client_secret IS NOT NULL AND sso_only", []byte(op.Secret)); n != 1 {
		t.Error("the secret is not sealed")
	}
	// The stored secret stays with its provider, and never goes to another one.
	owner.post(root, form("client_secret", "", "sso_only", "")).to(root)
	if n := one[int](w, "SELECT count(*) FROM sso_connections WHERE client_secret IS NOT NULL"); n != 1 {
		t.Error("an empty field deleted the secret")
	}
	other := optest.New(t, base)
	owner.post(root, form("client_secret", "", "issuer", other.URL)).to(root)
	if n := one[int](w, "SELECT count(*) FROM sso_connections WHERE client_secret IS NULL"); n != 1 {
		t.Error("another provider got the secret of the first")
	}
	// The stored accounts are deleted when the client changes.
	w.SQL("INSERT INTO sso_identities (tenant_id, subject, person_id, created_at, seen_at) SELECT tenant_id, 'x', person_id, now(), now() FROM memberships WHERE tenant_id = $1 AND role = 'viewer'", tn.id.String())
	owner.post(root, form("client_id", "b", "issuer", other.URL)).to(root)
	if n := one[int](w, "SELECT count(*) FROM sso_identities"); n != 0 {
		t.Error("the accounts of another client are still known")
	}
	owner.post(root+"/remove", url.Values{}).to(tn.path + "/settings")
	owner.post(root+"/remove", url.Values{}).want(http.StatusNotFound)
	if n := one[int](w, "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action LIKE 'sso.%'", tn.id.String()); n != 5 {
		t.Errorf("%d entries in the audit log", n)
	}
	if strings.Contains(w.log.String(), op.Secret) {
		t.Error("the log holds the secret")
	}
}

func TestADomainIsVerifiedByItsRecord(t *testing.T) {
	t.Parallel()
	records := map[string][]string{}
	w := ssoWorld(t, records)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	rootA, rootB := acme.path+"/settings/sso", other.path+"/settings/sso"
	a, b := acme.of[access.Owner], other.of[access.Owner]
	domain := url.Values{"domain": {"Acme.TEST"}}
	proof := func(tn tenant) string {
		return one[string](w, "SELECT proof FROM sso_domains WHERE tenant_id = $1", tn.id.String())
	}
	verified := func() string {
		return one[string](w, "SELECT coalesce(string_agg(t.name, ','), '') FROM sso_domains d JOIN tenants t ON t.id = d.tenant_id WHERE verified_at IS NOT NULL")
	}
	a.post(rootA+"/domains", url.Values{"domain": {"localhost"}}).want(http.StatusBadRequest, "isn&#39;t an email domain")
	a.post(rootA+"/domains/verify", domain).want(http.StatusNotFound)
	a.post(rootA+"/domains", domain).to(rootA)
	a.post(rootA+"/domains", domain).to(rootA)
	a.get(rootA).want(200, "_posthorn.acme.test", "posthorn-domain="+proof(acme), "not verified")
	a.post(rootA+"/domains/verify", domain).want(http.StatusBadRequest, "isn&#39;t there yet")
	records["_posthorn.acme.test."] = []string{"something else", "posthorn-domain=" + proof(acme)}
	// The other tenant's record does not exist: this tenant's record does not verify the domain for them.
	b.post(rootB+"/domains", domain).to(rootB)
	b.post(rootB+"/domains/verify", domain).want(http.StatusBadRequest, "isn&#39;t there yet")
	a.post(rootA+"/domains/verify", domain).to(rootA)
	a.get(rootA).want(200, "verified").lacks("not verified")
	// While both records exist, the domain stays with its owner.
	records["_posthorn.acme.test."] = append(records["_posthorn.acme.test."], "posthorn-domain="+proof(other))
	b.post(rootB+"/domains/verify", domain).want(http.StatusBadRequest, "Another tenant")
	if got := verified(); got != "Acme" {
		t.Errorf("the domain is verified for %q", got)
	}
	records["_posthorn.acme.test."] = []string{"posthorn-domain=" + proof(other)}
	b.post(rootB+"/domains/verify", domain).to(rootB)
	if got := verified(); got != "Other" {
		t.Errorf("the domain is verified for %q", got)
	}
	if n := one[int](w, "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'sso.domain_lost'", acme.id.String()); n != 1 {
		t.Error("the tenant is not told that it lost the domain")
	}
	// A provider is found by the domain once it is set up.
	if _, err := accounts.TenantOfDomain(t.Context(), w.db, "acme.test"); err == nil {
		t.Error("a tenant without a provider was found")
	}
	w.SQL("INSERT INTO sso_connections (tenant_id, issuer, client_id, session_seconds, created_at, updated_at) VALUES ($1, 'https://a.example', 'x', 3600, now(), now())", other.id.String())
	if got, err := accounts.TenantOfDomain(t.Context(), w.db, "acme.test"); err != nil || got != other.id {
		t.Errorf("found %s, %v", got, err)
	}
	b.post(rootB+"/domains/remove", domain).to(rootB)
	b.post(rootB+"/domains/remove", domain).want(http.StatusNotFound)
	if _, err := accounts.TenantOfDomain(t.Context(), w.db, "acme.test"); err == nil {
		t.Error("a removed domain still leads to the tenant")
	}
}
