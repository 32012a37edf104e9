package auth_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func sessionID(t *testing.T, text string) string {
	t.Helper()
	var sessionID id.UUID
	raw := strings.ReplaceAll(text, "-", "")
	for i := range sessionID {
		var b byte
		for _, c := range []byte(raw[2*i : 2*i+2]) {
			b = b<<4 | byte(strings.IndexByte("0123456789abcdef", c))
		}
		sessionID[i] = b
	}
	return id.Session.Format(sessionID)
}

func TestAnInvitationMakesAMemberOnceAndOfTheInvitedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, path := w.tenant("Acme", w.person("owner@example.com"))
	w.person("known@example.com")
	w.person("wrong@example.com")
	owner := w.signedIn("owner@example.com")
	invite := func(email, role string) string {
		owner.post(path+"/members/invite", url.Values{"email": {email}, "role": {role}}).to(path + "/members")
		return w.lastMail(email, "invitation").Token
	}
	// A new person sets a name and a password.
	token := invite("new@example.com", "developer")
	b := w.browser()
	b.get("/invitations/accept?token="+token).want(200, "Acme", "a developer", "new@example.com")
	b.post("/invitations/accept", url.Values{"token": {token}, "name": {"New"}, "password": {"acme12345"}}).want(400, "too common")
	b.post("/invitations/accept", url.Values{"token": {token}, "name": {"New"}, "password": {goodPassword}}).to(path)
	b.get(path).want(200, "developer")
	w.browser().get("/invitations/accept?token="+token).want(410, "invitation_gone")
	owner.post(path+"/members/invite", url.Values{"email": {"new@example.com"}, "role": {"admin"}}).want(409, "already a member of the tenant")

	// A person with an account signs in as the invited address.
	token = invite("known@example.com", "viewer")
	wrong := w.signedIn("wrong@example.com")
	wrong.get("/invitations/accept?token="+token).want(403, "another account", "k…@example.com")
	wrong.post("/invitations/accept", url.Values{"token": {token}}).want(403)
	known := w.browser()
	next := known.get("/invitations/accept?token=" + token).to("/sign-in?next=%2Finvitations%2Faccept")
	parsed, _ := url.Parse(next)
	to := known.post("/sign-in", url.Values{"email": {"known@example.com"}, "password": {goodPassword}, "next": {parsed.Query().Get("next")}}).to("/invitations/accept?token=")
	known.get(to).want(200, "Join Acme")
	known.post("/invitations/accept", url.Values{"token": {token}}).to(path)
	known.post("/invitations/accept", url.Values{"token": {token}}).want(410)

	// Replaced, revoked, and expired invitations are unusable.
	first := invite("late@example.com", "viewer")
	second := invite("late@example.com", "viewer")
	w.browser().get("/invitations/accept?token=" + first).want(410)
	w.SQL("UPDATE invitations SET expires_at = now()")
	w.browser().get("/invitations/accept?token=" + second).want(410)
	third := invite("late@example.com", "viewer")
	inv := regexp.MustCompile(`inv_[0-9a-z]{26}`).FindString(owner.get(path+"/members").want(200, "late@example.com").Body)
	owner.post(path+"/invitations/"+inv+"/revoke", nil).to(path + "/members")
	owner.post(path+"/invitations/"+inv+"/revoke", nil).want(404)
	w.browser().post("/invitations/accept", url.Values{"token": {third}, "name": {"L"}, "password": {goodPassword}}).want(410)
	if n := one[int](w, "SELECT count(*) FROM memberships"); n != 3 {
		t.Errorf("%d members", n)
	}
}

// members maps addresses to member ids, as in paths.
func (w *world) members(tenant id.UUID, emails ...string) map[string]string {
	found := map[string]string{}
	for _, email := range emails {
		text := one[string](w, "SELECT m.id::text FROM memberships m JOIN people p ON p.id = m.person_id WHERE p.email = $1 AND m.tenant_id = $2", email, tenant)
		found[email] = strings.Replace(sessionID(w.t, text), "ses_", "mem_", 1)
	}
	return found
}

func TestRolesAreAssignedByPermissionAndAnOwnerRemains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, path := w.tenant("Acme", w.person("owner@example.com"))
	for email, role := range map[string]access.Role{"admin@example.com": access.Admin, "dev@example.com": access.Developer, "viewer@example.com": access.Viewer} {
		w.join(tenant, w.person(email), role)
	}
	m := w.members(tenant, "owner@example.com", "admin@example.com", "dev@example.com", "viewer@example.com")
	role := func(of, to string) (string, url.Values) {
		return path + "/members/" + m[of] + "/role", url.Values{"role": {to}}
	}
	owner, admin := w.signedIn("owner@example.com"), w.signedIn("admin@example.com")
	for _, email := range []string{"dev@example.com", "viewer@example.com"} {
		b := w.signedIn(email)
		b.get(path+"/members").want(200, "owner@example.com")
		b.post(role("viewer@example.com", "admin")).want(403, "role_missing")
		b.post(path+"/members/invite", url.Values{"email": {"x@example.com"}, "role": {"viewer"}}).want(403)
		b.post(path+"/members/"+m["admin@example.com"]+"/remove", nil).want(403)
		b.get(path + "/settings").want(403)
	}
	admin.post(role("viewer@example.com", "developer")).to(path + "/members")
	admin.post(role("viewer@example.com", "owner")).want(403, "Ask an owner")
	admin.post(role("owner@example.com", "viewer")).want(403)
	admin.post(path+"/members/"+m["owner@example.com"]+"/remove", nil).want(403)
	admin.post(path+"/members/invite", url.Values{"email": {"x@example.com"}, "role": {"owner"}}).want(403)
	owner.post(role("owner@example.com", "admin")).want(409, "only owner")
	owner.post(path+"/leave", nil).want(409, "only owner")
	owner.post(path+"/members/"+m["owner@example.com"]+"/remove", nil).want(409)
	owner.post(role("admin@example.com", "owner")).to(path + "/members")
	owner.post(role("owner@example.com", "admin")).to(path + "/members")
	owner.post(path+"/settings/transfer", url.Values{"member": {m["dev@example.com"]}}).want(403)
	admin.post(path+"/settings/transfer", url.Values{"member": {m["dev@example.com"]}, "confirm": {"Acme"}}).to(path + "/members")
	admin.post(path+"/leave", nil).to("/")
	admin.get(path).want(404)
	for action, want := range map[string]int{"member.role_changed": 5, "member.removed": 1} {
		if n := one[int](w, "SELECT count(*) FROM audit_log WHERE action = $1 AND actor_kind = 'member'", action); n != want {
			t.Errorf("%s: %d in the audit log, want %d", action, n, want)
		}
	}
}

func TestSettingsAreCheckedAndKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, path := w.tenant("Acme", w.person("owner@example.com"))
	b := w.signedIn("owner@example.com")
	b.post(path+"/settings", url.Values{"name": {""}, "retention_days": {"0"}}).want(400, "Enter a name", "from 1 to 90")
	b.post(path+"/settings", url.Values{"name": {"Acme 2"}, "retention_days": {"30"}, "strict_types": {"true"}, "viewers_read_payloads": {"true"}}).to(path + "/settings")
	b.get(path+"/settings").want(200, "Acme 2", `value="30"`, "Saved.")
	if got := one[string](w, "SELECT details::text FROM audit_log WHERE action = 'tenant.updated'"); !strings.Contains(got, "Acme 2") {
		t.Error(got)
	}
	b.get(path+"/settings").want(200, `name="digest" type="checkbox" value="true" checked`)
	b.post(path+"/settings/notices", url.Values{"contacts": {"ops@acme.example nobody"}, "digest": {"true"}}).want(400, "&#34;nobody&#34; isn&#39;t a valid email address", "ops@acme.example nobody")
	b.post(path+"/settings/notices", url.Values{"contacts": {"Ops@Acme.example, b@acme.example\r\nops@acme.example"}}).to(path + "/settings")
	b.get(path+"/settings").want(200, "ops@acme.example\nb@acme.example</textarea>", `name="digest" type="checkbox" value="true" aria-describedby`, "Acme 2")
	b.post(path+"/settings/notices", url.Values{"digest": {"true"}}).to(path + "/settings")
	if got := one[string](w, "SELECT settings::text FROM tenants"); got != "{}" {
		t.Errorf("taken back, they leave %s", got)
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = 'tenant.updated'"); n != 3 {
		t.Errorf("%d changes are audited, want 3", n)
	}
}
