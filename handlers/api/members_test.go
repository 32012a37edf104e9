package api_test

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// member creates a person who is a member of a tenant, and returns the member's id.
func (w *world) member(t tenant, email string, role access.Role) string {
	w.t.Helper()
	var member id.UUID
	err := w.db.Console(w.t.Context(), func(q *db.Tx) error {
		person, err := accounts.AddPerson(w.t.Context(), q, email, "Name", "no password opens this")
		if err != nil {
			return err
		}
		member, err = accounts.AddMember(w.t.Context(), q, t.uuid, person, role)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id.Member.Format(member)
}

func TestMembersAreManagedByKeysAsByAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	owner, dev := w.member(a, "owner@example.com", access.Owner), w.member(a, "dev@example.com", access.Developer)
	list := w.do("GET", "/api/v1/members?limit=1", a.key, nil).want(200)
	if list.text("next_cursor") == "" || !strings.Contains(string(list.Body), "owner@example.com") || strings.Contains(string(list.Body), "password") {
		t.Error(string(list.Body))
	}
	if got := w.do("GET", "/api/v1/members/"+dev, a.key, nil).want(200); got.text("role") != "developer" {
		t.Error(string(got.Body))
	}
	w.do("PATCH", "/api/v1/members/"+dev, a.key, `{"role":"admin"}`).want(200)
	w.do("PATCH", "/api/v1/members/"+dev, a.key, `{"role":"king"}`).problem(400, "role_unknown", "role")
	w.do("PATCH", "/api/v1/members/"+dev, a.key, `{"role":"owner"}`).problem(403, "role_beyond_own")
	w.do("DELETE", "/api/v1/members/"+owner, a.key, nil).problem(403, "role_beyond_own")
	named := "/api/v1/tenants/" + a.id + "/members/"
	w.do("DELETE", named+owner, w.platform, nil).problem(409, "last_owner")
	w.do("PATCH", named+dev, w.platform, `{"role":"owner"}`).want(200)
	w.do("DELETE", named+owner, w.platform, nil).want(204)
	w.do("GET", "/api/v1/members/"+owner, a.key, nil).problem(404, "not_found")
	w.do("GET", "/api/v1/members", w.scoped(a, access.KeysWrite), nil).problem(403, "scope_missing")
}

func TestKeysInvite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	w.member(a, "here@example.com", access.Viewer)
	w.do("POST", "/api/v1/invitations", a.key, `{"email":"no","role":"king"}`).problem(400, "email_invalid", "email", "role")
	w.do("POST", "/api/v1/invitations", a.key, `{"email":"here@example.com","role":"viewer"}`).problem(409, "member_already")
	w.do("POST", "/api/v1/invitations", a.key, `{"email":"x@example.com","role":"owner"}`).problem(403, "role_beyond_own")
	if said := string(w.do("POST", "/api/v1/invitations", a.key, `{"email":"x@example.com","role":"owner"}`).Body); !strings.Contains(said, "platform key") {
		t.Errorf("nobody is told who can invite an owner: %s", said)
	}
	made := w.do("POST", "/api/v1/invitations", a.key, `{"email":"X@example.com","role":"viewer"}`).want(201)
	if made.text("email") != "x@example.com" || strings.Contains(string(made.Body), "token") {
		t.Error(string(made.Body))
	}
	w.do("POST", "/api/v1/tenants/"+a.id+"/invitations", w.platform, `{"email":"boss@example.com","role":"owner"}`).want(201)
	if n := one[int](w, "SELECT count(*) FROM mails WHERE kind = 'invitation' AND sealed IS NOT NULL AND data = '{}'"); n != 2 {
		t.Errorf("%d mails whose link is sealed", n)
	}
	if n := len(ids(w.do("GET", "/api/v1/invitations?order=desc", a.key, nil).want(200))); n != 2 {
		t.Errorf("%d invitations", n)
	}
	w.do("DELETE", "/api/v1/invitations/"+made.text("id"), a.key, nil).want(204)
	w.do("DELETE", "/api/v1/invitations/"+made.text("id"), a.key, nil).problem(404, "not_found")
}

func TestInvitationsAreLimitedByAddressAndByTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.tenant("A"), w.tenant("B")
	invite := func(of tenant, email string) *answer {
		return w.do("POST", "/api/v1/invitations", of.key, `{"email":"`+email+`","role":"viewer"}`)
	}
	for range account.Invitations.Tries {
		made := invite(a, "victim@example.com").want(201)
		w.do("DELETE", "/api/v1/invitations/"+made.text("id"), a.key, nil).want(204)
	}
	refused := invite(a, "Victim@example.com")
	refused.problem(429, "mails_limit")
	if refused.Header.Get("Retry-After") == "" {
		t.Error("nobody is told when to try again")
	}
	invite(b, "victim@example.com").problem(429, "mails_limit") // of another tenant too
	for i := range account.TenantInvitations.Tries - account.Invitations.Tries {
		invite(a, fmt.Sprintf("p%d@example.com", i)).want(201)
	}
	invite(a, "one.more@example.com").problem(429, "mails_limit")
	invite(b, "one.more@example.com").want(201)
	if mails := one[int](w, "SELECT count(*) FROM posthorn.mails WHERE recipient = 'victim@example.com'"); mails != account.Invitations.Tries {
		t.Errorf("%d mails to one address", mails)
	}
}

func TestNamesFollowOneRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	for _, name := range []string{`A\u202ecba`, `A\u2028B`, `A\u200bB`, `b\nc`, ` `, `https://evil.example/login`} {
		w.do("PATCH", "/api/v1/tenant", a.key, `{"name":"`+name+`"}`).problem(400, "text_characters", "name")
		w.do("POST", "/api/v1/tenants", w.platform, `{"name":"`+name+`"}`).problem(400, "text_characters", "name")
		w.do("POST", "/api/v1/keys", a.key, `{"name":"`+name+`","scopes":["events:read"]}`).problem(400, "text_characters", "name")
		w.do("POST", "/api/v1/portal-links", a.key, `{"brand_name":"`+name+`"}`).problem(400, "text_characters", "brand_name")
	}
	for _, email := range []string{"a@127.0.0.1", "a@[127.0.0.1]", "a@example.c"} {
		w.do("POST", "/api/v1/invitations", a.key, `{"email":"`+email+`","role":"viewer"}`).problem(400, "email_invalid", "email")
	}
}

func TestPortalLinksAreMadeCheckedAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	w.do("POST", "/api/v1/portal-links", a.key, `{"role":"owner","accent":"red","return_url":"javascript:alert(1)","session_seconds":59}`).
		problem(400, "role_unknown", "role", "accent", "return_url", "session_seconds")
	made := w.do("POST", "/api/v1/tenants/"+a.id+"/portal-links", w.platform, `{"role":"viewer","brand_name":"Shop","accent":"#1f6feb","return_url":"https://app.example.com/x"}`).want(201)
	if !strings.HasPrefix(made.text("url"), "https://hooks.example.com/portal/open?token=") {
		t.Error(string(made.Body))
	}
	w.do("POST", "/api/v1/portal-links", a.key, nil).want(201)
	listed := w.do("GET", "/api/v1/portal-links", a.key, nil).want(200)
	if len(ids(listed)) != 2 || strings.Contains(string(listed.Body), "token") {
		t.Error(string(listed.Body))
	}
	for range 2 {
		w.do("DELETE", "/api/v1/portal-links/"+made.text("id"), a.key, nil).want(204)
	}
	if n := one[int](w, "SELECT count(*) FROM audit_log WHERE action = 'portal_link.revoked'"); n != 1 {
		t.Errorf("%d revocations in the audit log", n)
	}
}

func TestBothFormsOfAnInternationalDomainAreOneMailbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	invite := func(email string) *answer {
		t.Helper()
		return w.do("POST", "/api/v1/invitations", a.key, `{"role":"viewer","email":"`+email+`"}`)
	}
	if got := invite("User@Bücher.example").want(201); got.text("email") != "user@bücher.example" || got.get("mail_failed") != false {
		t.Error(string(got.Body))
	}
	invite("user@xn--bcher-kva.example").want(201)
	list := w.do("GET", "/api/v1/invitations", a.key, nil).want(200)
	if n := len(list.get("data").([]any)); n != 1 || !strings.Contains(string(list.Body), "user@bücher.example") {
		t.Errorf("%d invitations: %s", n, list.Body)
	}
	for _, email := range []string{"jörg@example.com", "İ@example.com", "\u212A@example.com"} {
		if got := invite(email).problem(400, "email_invalid", "email"); !strings.Contains(string(got.Body), "letters other than a to z") {
			t.Error(string(got.Body))
		}
	}
	w.member(a, "ada@xn--bcher-kva.example", access.Viewer)
	invite("ada@bücher.example").problem(409, "member_already")
	got := w.do("PATCH", "/api/v1/tenant", a.key, `{"contacts":["Ops@Bücher.example","ops@xn--bcher-kva.example"]}`).want(200)
	if fmt.Sprint(got.get("contacts")) != "[ops@bücher.example]" {
		t.Error(string(got.Body))
	}
}

func TestAContactIsAskedWhenItsAddressIsSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	w.member(a, "ada@acme.example", access.Owner)
	save := func(tn tenant, contacts ...string) string {
		t.Helper()
		got := w.do("PATCH", "/api/v1/tenant", tn.key, map[string]any{"contacts": append([]string{}, contacts...)}).want(200)
		if shown := w.do("GET", "/api/v1/tenant", tn.key, nil).want(200); fmt.Sprint(shown.get("contacts_unconfirmed")) != fmt.Sprint(got.get("contacts_unconfirmed")) {
			t.Errorf("the change says %s, and the tenant %s", got.Body, shown.Body)
		}
		return fmt.Sprint(got.get("contacts_unconfirmed"))
	}
	asked := func(address string) int {
		t.Helper()
		return one[int](w, "SELECT count(*)::int FROM mails WHERE kind = 'confirm_contact' AND recipient = $1", address)
	}
	if left := save(a, "ops@bücher.example", "ada@acme.example"); left != "[ops@bücher.example]" {
		t.Errorf("a member is verified and the other address is not, but %s are listed", left)
	}
	if n, members := asked("ops@xn--bcher-kva.example"), asked("ada@acme.example"); n != 1 || members != 0 {
		t.Errorf("the contact was asked %d times, and the member %d times", n, members)
	}
	save(a)
	save(a, "ops@bücher.example", "new@acme.example") // saved again within the week
	if again, first := asked("ops@xn--bcher-kva.example"), asked("new@acme.example"); again != 1 || first != 1 {
		t.Errorf("the contact of before was asked %d times, and the new one %d times", again, first)
	}
	w.SQL("INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) VALUES ($1, 'ops@xn--bcher-kva.example', 'contact.confirmed', true)", a.uuid.String())
	if left := save(a, "ops@bücher.example", "new@acme.example"); left != "[new@acme.example]" {
		t.Errorf("who agreed is listed with %s", left)
	}
	for i := range account.AllContactAsks.Tries + 2 {
		save(w.tenant(fmt.Sprint("T", i)), "victim@elsewhere.example")
	}
	if n := asked("victim@elsewhere.example"); n != account.AllContactAsks.Tries {
		t.Errorf("all tenants together asked an address %d times", n)
	}
}
