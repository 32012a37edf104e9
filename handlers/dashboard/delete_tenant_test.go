package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/maintenance"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestAnOwnerDeletesTheTenantByTypingItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("Acme & <Sons>"), w.tenant("B")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	w.emit(tn, "order.paid", `{}`)
	w.endpoint(other, "https://hooks.example.com/in")
	before := w.counts(other)
	owner := tn.of[access.Owner]
	page := tn.path + "/settings/delete"
	tn.of[access.Admin].get(page).want(http.StatusForbidden)
	tn.of[access.Admin].get(tn.path + "/settings").want(200).lacks("Delete tenant")
	owner.get(tn.path+"/settings").want(200, "Delete tenant").keep("settings")

	// A person who has not just signed in signs in first, and comes back.
	w.SQL("UPDATE sessions SET fresh_at = now() - interval '1 day'")
	owner.get(page).to("/account/confirm?next=" + url.QueryEscape(page))
	w.SQL("UPDATE sessions SET fresh_at = now()")
	owner.get(page).want(200, "Acme &amp; &lt;Sons&gt;", "What happens", "4 members lose", "1 API key stops working", "1 endpoint is", "1 waiting delivery fails").keep("tenant-delete")
	owner.post(page, url.Values{"name": {"acme"}, "reason": {"we <b>move</b>"}}).want(http.StatusBadRequest, "This isn&#39;t the tenant&#39;s name", `value="acme"`, "we &lt;b&gt;move").keep("tenant-delete-refused")
	if n := one[int](w, "SELECT count(*)::int FROM memberships WHERE tenant_id = $1", tn.id.String()); n != 4 {
		t.Fatalf("%d members after a refusal", n)
	}
	owner.post(page, url.Values{"name": {"Acme & <Sons>"}, "reason": {strings.Repeat("x", 501)}}).want(http.StatusBadRequest, "at most 500 characters")
	owner.post(page, url.Values{"name": {"Acme & <Sons>"}, "reason": {"we move"}}).to("/tenants")
	for role, b := range tn.of {
		if got := b.get(tn.path + "/"); got.Status != http.StatusNotFound {
			t.Errorf("%s finds it: %d", role, got.Status)
		}
	}
	left := one[string](w, `SELECT concat_ws(' ', state, deleted_at IS NOT NULL, (SELECT count(*) FROM endpoints WHERE tenant_id = t.id AND deleted_at IS NULL),
		(SELECT count(*) FROM endpoint_secrets WHERE tenant_id = t.id), (SELECT count(*) FROM api_keys WHERE tenant_id = t.id AND revoked_at IS NULL),
		(SELECT count(*) FROM memberships WHERE tenant_id = t.id)) FROM tenants t WHERE id = $1`, tn.id.String())
	if left != "deleted t 0 0 0 0" {
		t.Errorf("what is left of it: %s", left)
	}
	// Its lane is deleted by the sweep, as that of any deleted endpoint.
	if n := one[int](w, "SELECT count(*)::int FROM lanes WHERE endpoint_id = $1 AND deleted", ep.String()); n != 1 {
		t.Error("what waits is not left to the worker's sweep")
	}
	if why := one[string](w, "SELECT reason FROM audit_log WHERE action = 'tenant.deleted'"); why != "we move" {
		t.Errorf("the audit log says %q", why)
	}
	if after := w.counts(other); after != before {
		t.Errorf("the other tenant was %s and is %s", before, after)
	}
	if _, err := (accounts.Keys{DB: w.db}).TenantState(t.Context(), tn.id); err == nil {
		t.Error("platform keys find it")
	}
}

// A person who accepts an invitation while the tenant is being deleted is possibly stored as a member after its
// members were deleted.
func TestNobodyIsAMemberOfADeletedTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	link := w.portalSession(tn, access.Developer)
	if err := maintenance.DeleteTenant(t.Context(), w.db, tn.id, "", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	w.SQL("DELETE FROM people")
	late := w.member(tn, access.Owner)
	w.SQL("UPDATE portal_links SET revoked_at = NULL")
	late.get(tn.path + "/").want(http.StatusNotFound)
	late.post(tn.path+"/endpoints", newForm()).want(http.StatusNotFound)
	link.get(tn.path + "/").to("/sign-in")
}

func TestThePlatformsOwnTenantCantBeDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Posthorn")
	w.SQL("UPDATE platform SET settings = jsonb_set(settings, '{tenant}', to_jsonb($1::text))", strings.TrimPrefix(tn.path, "/t/"))
	tn.of[access.Owner].post(tn.path+"/settings/delete", url.Values{"name": {"Posthorn"}}).want(http.StatusConflict, "platform&#39;s own tenant", `value="Posthorn"`)
	tn.of[access.Owner].get(tn.path + "/").want(200)
}

func TestTheOwnershipIsTransferred(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	owner, admin := tn.of[access.Owner], tn.of[access.Admin]
	heir := id.Member.Format(id.UUID(one[[16]byte](w, "SELECT id FROM memberships WHERE tenant_id = $1 AND role = 'admin'", tn.id.String())))
	owner.post(tn.path+"/settings/transfer", nil).want(http.StatusBadRequest, "Select a member.")
	owner.post(tn.path+"/settings/transfer", url.Values{"member": {id.Member.Format(tn.id)}, "confirm": {"A"}}).want(http.StatusNotFound)
	admin.post(tn.path+"/settings/transfer", url.Values{"member": {heir}}).want(http.StatusForbidden)
	owner.post(tn.path+"/settings/transfer", url.Values{"member": {heir}, "confirm": {"A"}}).to(tn.path + "/members")
	owner.get(tn.path + "/settings/delete").want(http.StatusForbidden)
	admin.get(tn.path+"/settings").want(200, "Transfer ownership", "Delete tenant")
	if n := w.audited(tn, "member.role_changed"); n != 2 {
		t.Errorf("%d changes of roles are audited", n)
	}
}

func TestAnOwnerExportsTheTenantWithAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	w.emit(tn, "order.paid", `{}`)
	owner, page := tn.of[access.Owner], tn.path+"/settings/export"
	owner.get(tn.path+"/settings/delete").want(200, "Export the data first", "Download export")
	tn.of[access.Admin].post(page, url.Values{"reason": {"mine"}}).want(http.StatusForbidden)
	owner.post(page, url.Values{"reason": {" "}}).want(http.StatusBadRequest, "Nothing was exported")
	got := owner.post(page, url.Values{"reason": {"we move"}}).want(200)
	if name := got.Header.Get("Content-Disposition"); !strings.HasPrefix(name, `attachment; filename="ten_`) || !strings.HasPrefix(got.Body, "PK") {
		t.Errorf("%s, %d bytes", name, len(got.Body))
	}
	if why := one[string](w, "SELECT string_agg(action || ' ' || reason, ', ' ORDER BY id) FROM audit_log WHERE action LIKE 'tenant.export%' AND actor_kind = 'member'"); why != "tenant.exported we move, tenant.export_sent " {
		t.Errorf("the audit log says %q", why)
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = 'tenant.exported'"); n != 1 {
		t.Errorf("%d exports on record, want 1", n)
	}
}

func TestReloadingTheErrorPageOfAFormLeadsToItsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	ep := id.Endpoint.Format(w.endpoint(tn, "https://hooks.example.com/in"))
	owner := tn.of[access.Owner]
	owner.get(tn.path + "/endpoints/" + ep + "/pause").to(tn.path + "/endpoints/" + ep)
	owner.get(tn.path + "/settings/transfer").to(tn.path + "/settings")
	owner.get(tn.path + "/members/invite").to(tn.path + "/members")
}

func TestATenantsDefaultScheduleIsChosenInItsSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	owner, page := tn.of[access.Owner], tn.path+"/settings"
	form := url.Values{"name": {"Acme"}, "retention_days": {"30"}, "retry_policy": {"quick"}}
	owner.get(page).want(200, "Default retry schedule", "Platform default")
	owner.post(page, form).to(page)
	if got := one[string](w, "SELECT settings #>> '{endpoints,retry_policy}' FROM tenants WHERE id = $1", tn.id.String()); got != "quick" {
		t.Errorf("the default is %q", got)
	}
	form.Set("retry_policy", "never")
	owner.post(page, form).want(http.StatusBadRequest)
	form.Set("retry_policy", "")
	owner.post(page, form).to(page)
	if n := one[int](w, "SELECT count(*)::int FROM tenants WHERE id = $1 AND settings ? 'endpoints'", tn.id.String()); n != 0 {
		t.Error("the default is still there")
	}
}
