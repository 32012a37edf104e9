package auth_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/handlers/dashboard"
)

// probeForms holds the pages and actions around members, each with a form that it accepts. Here they are called with
// every role; handlers/dashboard probes the whole table.
var probeForms = map[string]string{
	"GET ":                            "",
	"GET /":                           "",
	"GET /members":                    "",
	"POST /members/invite":            "email=new@example.com&role=viewer",
	"POST /members/:member_id/role":   "role=viewer",
	"POST /members/:member_id/remove": "",
	"POST /invitations/:invitation_id/revoke": "",
	"POST /leave":             "",
	"GET /settings":           "",
	"POST /settings":          "name=Taken&retention_days=1",
	"POST /settings/notices":  "contacts=taken@example.com&digest=true",
	"POST /settings/transfer": "member=",
}

// who sends a probe, and what they see.
type prober struct {
	name string
	b    *browser
	role access.Role // in A; empty: nobody
}

// TestNobodySeesAnotherTenantsPages calls every page and action of a tenant as nobody, as a viewer of A, and as an
// owner of A, with an id of B, a random id, and a malformed id, for the tenant and for its object.
func TestNobodySeesAnotherTenantsPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const canary = "canary-of-b"
	ownerA, ownerB := w.person("owner-a@example.com"), w.person(canary+"@example.com")
	a, pathA := w.tenant("A", ownerA)
	b, pathB := w.tenant(canary, ownerB)
	w.join(a, w.person("viewer-a@example.com"), access.Viewer)
	theirs := map[string]string{"member_id": w.members(b, canary+"@example.com")[canary+"@example.com"]}
	ownersOfB := w.signedIn(canary + "@example.com")
	ownersOfB.post(pathB+"/members/invite", url.Values{"email": {canary + "@example.org"}, "role": {"viewer"}}).to(pathB)
	theirs["invitation_id"] = one[string](w, "SELECT id::text FROM invitations WHERE tenant_id = $1", b)
	theirs["invitation_id"] = strings.Replace(sessionID(t, theirs["invitation_id"]), "ses_", "inv_", 1)
	random := map[string]string{
		"member_id":     id.Member.Format(db.NewID()),
		"invitation_id": id.Invitation.Format(db.NewID()),
	}
	malformed := map[string]string{"member_id": "nonsense", "invitation_id": "nonsense"}

	probers := []prober{
		{"nobody", w.browser(), ""}, {"a viewer of A", w.signedIn("viewer-a@example.com"), access.Viewer}, {"the owner of A", w.signedIn("owner-a@example.com"), access.Owner},
	}
	before := w.belongings(b)
	tenants := []string{id.Tenant.Format(b), id.Tenant.Format(db.NewID()), "nonsense", strings.ToUpper(id.Tenant.Format(b)), "%00"}
	seen := 0
	for _, r := range dashboard.Routes(dashboard.Deps{}) {
		rest := strings.TrimPrefix(r.Path, dashboard.Root)
		form, ok := probeForms[r.Method+" "+rest]
		if !ok {
			continue // probed in handlers/dashboard
		}
		if r.Path == rest || r.Access.Action == "" || !r.Access.Session {
			t.Errorf("%s %s is no page of a tenant, or does not say what the role must allow", r.Method, r.Path)
		}
		seen++
		for _, p := range probers {
			// Another tenant's page, whatever its object.
			answers := map[string]string{}
			for _, tenant := range tenants {
				answers[tenant] = p.ask(t, r, "/t/"+tenant+fill(rest, theirs), form, canary)
			}
			want := "404"
			if p.role == "" {
				want = turnedAway(r, answers[tenants[0]])
			}
			for tenant, got := range answers {
				if !strings.HasPrefix(got, want) || p.role != "" && got != answers[tenants[0]] {
					t.Errorf("%s: %s %s of tenant %s: %.60s and %.60s", p.name, r.Method, rest, tenant, got, answers[tenants[0]])
				}
			}
			// A's own page, with B's object.
			if param := strings.Contains(rest, ":"); !param {
				continue
			}
			first, tried := "", theirs[strings.Trim(paramOf(rest), ":")]
			if tried == "" {
				t.Errorf("%s %s: B has no %s to try", r.Method, rest, paramOf(rest))
			}
			for _, object := range []map[string]string{theirs, random, malformed} {
				got := p.ask(t, r, pathA+fill(rest, object), form, canary)
				if first == "" {
					first = got
				}
				switch {
				case got != first:
					t.Errorf("%s: %s %s tells ids apart: %.80s and %.80s", p.name, r.Method, rest, got, first)
				case p.role == "" && !strings.HasPrefix(got, turnedAway(r, got)), p.role != "" && p.role.May(r.Access.Action) &&
					!strings.HasPrefix(got, "404"),
					p.role != "" && !p.role.May(r.Access.Action) && !strings.HasPrefix(got, "403"):
					t.Errorf("%s: %s %s answers %.80s", p.name, r.Method, rest, got)
				}
			}
		}
	}
	if seen != len(probeForms) {
		t.Errorf("%d routes were probed", seen)
	}
	if after := w.belongings(b); before != after {
		t.Error("B's rows changed")
	}
	ownersOfB.get(pathB+"/members").want(200, canary) // or the probe proved nothing
}

// turnedAway is how an answer to somebody who is not signed in begins. Who sent a form with text in it gets the text
// back, to copy it.
func turnedAway(r handlers.Route, got string) string {
	if r.Method != http.MethodGet && strings.HasPrefix(got, "401") {
		return "401"
	}
	return "303 /sign-in"
}

// TestEveryPageOfAnAccountNeedsASession checks that the account's own routes need a session.
func TestEveryPageOfAnAccountNeedsASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range auth.Routes(auth.Deps{Now: w.clock.now}) {
		if r.Access.Public {
			continue
		}
		got := w.browser().send(r.Method, strings.Replace(r.Path, ":session_id", id.Session.Format(db.NewID()), 1), nil)
		if got.Status != http.StatusSeeOther || !strings.HasPrefix(got.Location, "/sign-in") {
			t.Errorf("%s %s to nobody: %d %s", r.Method, r.Path, got.Status, got.Location)
		}
	}
}

// paramOf is the path parameter that names an object.
func paramOf(path string) string {
	_, rest, _ := strings.Cut(path, ":")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func fill(path string, ids map[string]string) string {
	for param, value := range ids {
		path = strings.ReplaceAll(path, ":"+param, value)
	}
	return path
}

// ask sends a probe and returns the status, the location, and a hash of the page.
func (p prober) ask(t *testing.T, r handlers.Route, path, form, canary string) string {
	t.Helper()
	values, err := url.ParseQuery(form)
	if err != nil {
		t.Fatal(err)
	}
	if r.Method == http.MethodGet {
		values = nil
	}
	got := p.b.send(r.Method, path, values, "X-Request-Id", "probe")
	if strings.Contains(got.Body, canary) {
		t.Errorf("%s: %s %s shows B's text", p.name, r.Method, path)
	}
	where, _, _ := strings.Cut(got.Location, "?")
	return fmt.Sprintf("%d %s %x", got.Status, where, sha256.Sum256([]byte(got.Body)))
}

// belongings is everything of a tenant as text that changes when it changes.
func (w *world) belongings(tenant id.UUID) string {
	w.t.Helper()
	var out strings.Builder
	w.Connection(func(c *pgx.Conn) error {
		for _, table := range []string{"tenants", "memberships", "invitations", "portal_links", "api_keys", "endpoints", "audit_log", "mails"} {
			column := "tenant_id"
			if slices.Contains([]string{"tenants"}, table) {
				column = "id"
			}
			var sum string
			err := c.QueryRow(w.t.Context(), fmt.Sprintf("SELECT coalesce(md5(string_agg(x::text, ' ' ORDER BY x::text)), '') FROM %s x WHERE %s = $1", table, column), tenant).Scan(&sum)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s %s\n", table, sum)
		}
		return nil
	})
	return out.String()
}
