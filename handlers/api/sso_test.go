package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/handlers/api"
	"posthorn/tools/optest"
)

// A platform key sets up a tenant's single sign-on, within the rules that hold an owner. A tenant's key can't: who
// configures the provider decides who enters.
func TestAPlatformKeySetsUpSingleSignOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	op := optest.New(t, "https://unused.example.com")
	at := "/api/v1/tenants/" + acme.id + "/sso"
	w.do("GET", at, w.platform, nil).problem(404, "sso_not_set_up")
	w.do("DELETE", at, w.platform, nil).problem(404, "sso_not_set_up")
	every := w.scoped(acme, access.TenantScopes()...)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		if got := w.do(method, at, every, map[string]any{}); got.Status < 400 {
			t.Errorf("%s with a tenant's key: %d %s", method, got.Status, got.Body)
		}
	}
	secret := "a-client-secret-of-the-provider"
	body := func(change ...any) map[string]any {
		m := map[string]any{"issuer": op.URL, "client_id": "posthorn", "client_secret": secret}
		for i := 0; i < len(change); i += 2 {
			m[change[i].(string)] = change[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name, code, field string
		body              map[string]any
	}{
		{"no issuer", "sso_issuer_invalid", "issuer", map[string]any{"client_id": "posthorn"}},
		{"nobody there", "sso_issuer_invalid", "issuer", body("issuer", "http://127.0.0.1:1024")},
		{"a private address", "sso_issuer_invalid", "issuer", body("issuer", "https://10.0.0.1")},
		{"no client", "sso_invalid", "client_id", map[string]any{"issuer": op.URL}},
		{"a long session", "sso_invalid", "session_seconds", body("session_seconds", 1209601)},
		{"a mapping without a claim", "sso_invalid", "role_claim", body("roles", map[string]any{"eng": "developer"})},
		{"an owner by a group", "sso_mapping_invalid", "roles", body("role_claim", "groups", "roles", map[string]any{"eng": "owner"})},
		{"required without a way in", "sso_break_glass_missing", "break_glass", body("required", true)},
		{"a break-glass account that is no owner", "sso_break_glass_missing", "break_glass", body("break_glass", "nobody@example.com")},
		{"a domain that is none", "sso_domain_invalid", "domains", body("domains", []string{"not a domain"})},
	} {
		if got := w.do("PATCH", at, w.platform, c.body); got.Status != 400 || !strings.Contains(string(got.Body), `"`+c.code+`"`) ||
			!strings.Contains(string(got.Body), `"`+c.field+`"`) {
			t.Errorf("%s: %d %s", c.name, got.Status, got.Body)
		}
	}
	w.do("GET", at, w.platform, nil).problem(404, "sso_not_set_up")

	read := func(a *answer, status int) (s api.SSO) {
		t.Helper()
		if a.Status != status || json.Unmarshal(a.Body, &s) != nil {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if strings.Contains(string(a.Body), secret) {
			t.Errorf("the response has the secret: %s", a.Body)
		}
		return s
	}
	s := read(w.do("PATCH", at, w.platform, body("domains", []string{"Example.com", "example.com", "shop.example.com"})), 200)
	if hint, _ := s.ClientSecretHint.Get(); hint != "ider" || len(s.Domains) != 2 || s.Domains[0].Domain != "example.com" ||
		s.Domains[0].Verified ||
		s.SessionSeconds != 12*3600 || !s.JoinMembers || s.Required {
		t.Errorf("a new connection: %+v", s)
	}
	w.member(acme, "ada@example.com", access.Owner)
	first := s.Domains[0].Text
	s = read(w.do("PATCH", at, w.platform, map[string]any{
		"required":     true,
		"break_glass":  "Ada@example.com",
		"default_role": nil,
		"join_members": false,
		"role_claim":   "groups",
		"roles":        map[string]any{"eng = all": "developer"},
		"domains":      []string{"example.com"},
	}), 200)
	if email, _ := s.BreakGlass.Get(); email != "ada@example.com" || !s.Required || s.Issuer != op.URL || s.Roles["eng = all"] != "developer" ||
		!s.DefaultRole.IsNull() || len(s.Domains) != 1 || s.Domains[0].Text != first {
		t.Errorf("after a change: %+v", s)
	}
	if hint, _ := s.ClientSecretHint.Get(); hint != "ider" {
		t.Errorf("the secret was lost by a change of something else: %+v", s)
	}
	s = read(w.do("PATCH", at, w.platform, map[string]any{"client_secret": "short"}), 200)
	if hint, err := s.ClientSecretHint.Get(); err != nil || hint != "" {
		t.Errorf("the end of a short secret is shown: %+v", s)
	}
	// Another provider never gets this one's secret.
	other := optest.New(t, "https://unused.example.com")
	if s = read(w.do("PATCH", at, w.platform, map[string]any{"issuer": other.URL}), 200); !s.ClientSecretHint.IsNull() {
		t.Errorf("a new issuer has the secret of the old one: %+v", s)
	}
	if got := w.do("DELETE", at, w.platform, nil); got.Status != 204 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	w.do("GET", at, w.platform, nil).problem(404, "sso_not_set_up")
}

// A test inbox is created like any other endpoint, by its kind, except for its URL.
func TestAnInboxIsCreatedByItsKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	at := "/api/v1/tenants/" + acme.id + "/endpoints"
	w.do("POST", at, w.platform, map[string]any{"kind": "inbox", "url": "https://elsewhere.example.com"}).problem(400, "inbox_url_fixed", "url")
	got := w.do("POST", at, w.platform, map[string]any{"kind": "inbox", "external_id": "box", "event_types": []string{"order.*"}})
	if got.Status != 201 || !strings.Contains(string(got.Body), "/inbox/") || !strings.Contains(string(got.Body), "whsec_") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := w.do("GET", at+"/box/inbox", w.platform, nil); got.Status != 200 || !strings.Contains(string(got.Body), `"200"`) {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}
