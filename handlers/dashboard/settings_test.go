package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestAShorterRetentionAsksBeforeItDeletes(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	w.SQL("UPDATE tenants SET retention_days = 90")
	w.SQL("INSERT INTO books (tenant_id, day, events) VALUES ($1, current_date - 50, 1234), ($1, current_date - 3, 7), ($1, current_date - 200, 5)", w.tn.id.String())
	form := url.Values{"name": {"Typed"}, "retention_days": {"30"}}
	owner.post(w.root+"/settings", form).want(http.StatusConflict, "Not saved yet", "1,234 events are older than 30 days", `name="delete_beyond"`, `value="30"`, `value="Typed"`).keep("settings-beyond")
	days := func() int {
		return one[int](w.world, "SELECT retention_days FROM tenants WHERE id = $1", w.tn.id.String())
	}
	if days() != 90 {
		t.Fatal("it did not ask")
	}
	form.Set("delete_beyond", "60") // confirmed for another number
	owner.post(w.root+"/settings", form).want(http.StatusConflict)
	form.Set("delete_beyond", "30")
	owner.post(w.root+"/settings", form).to(w.root + "/settings")
	if days() != 30 {
		t.Errorf("%d days", days())
	}
	// nothing is lost
	owner.post(w.root+"/settings", url.Values{"name": {"Typed"}, "retention_days": {"20"}}).to(w.root + "/settings")
}

var seenIn = regexp.MustCompile(`name="seen" value="([^"]+)"`)

func TestASecondConcurrentChangeOfSettingsIsRejected(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	seen := seenIn.FindStringSubmatch(owner.get(w.root + "/settings").want(200).Body)[1]
	owner.post(w.root+"/settings", url.Values{"seen": {seen}, "name": {"New name"}, "retention_days": {"30"}}).to(w.root + "/settings")
	w.as(access.Admin).post(w.root+"/settings", url.Values{"seen": {seen}, "name": {"Acme Logistics"}, "retention_days": {"31"}}).
		want(http.StatusConflict, "changed these settings", `value="New name"`).keep("settings-changed")
	w.as(access.Admin).post(w.root+"/settings/notices", url.Values{"seen": {seen}, "contacts": {"a@example.com"}}).want(http.StatusConflict, "changed these settings")
	if name := one[string](w.world, "SELECT name FROM tenants WHERE id = $1", w.tn.id.String()); name != "New name" {
		t.Errorf("the name is %q again", name)
	}
}

func TestOwnershipIsTransferredByTypingTheNameAndBothAreTold(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	owner.get(w.root+"/settings").want(200, `Select a member`)
	to := id.Member.Format(id.UUID(one[[16]byte](w.world, "SELECT id FROM memberships WHERE tenant_id = $1 AND role = 'developer'", w.tn.id.String())))
	owner.post(w.root+"/settings/transfer", url.Values{"member": {to}}).want(http.StatusBadRequest, "This isn&#39;t the tenant&#39;s name").keep("settings-transfer")
	if n := one[int](w.world, "SELECT count(*) FROM mails"); n != 0 {
		t.Errorf("%d mails", n)
	}
	owner.post(w.root+"/settings/transfer", url.Values{"member": {to}, "confirm": {"Acme Logistics"}}).to(w.root + "/members")
	told := one[string](w.world, "SELECT string_agg(data->>'what', ';' ORDER BY recipient) FROM mails WHERE tenant_id = $1", w.tn.id.String())
	if !strings.Contains(told, "made you the owner of") || !strings.Contains(told, "You transferred the ownership of") {
		t.Errorf("they are told %q", told)
	}
}

func TestSettingsSayWhichContactsHaveNotAgreed(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	owner.get(w.root + "/settings").want(200).lacks("Not confirmed yet")
	owner.next(w.root+"/settings/notices", url.Values{"contacts": {"ops@example.com, night@bücher.example"}}).
		want(200, "Not confirmed yet: ops@example.com, night@bücher.example<").keep("settings-unconfirmed")
	if to := one[string](w.world, "SELECT string_agg(recipient, ' ' ORDER BY recipient) FROM mails WHERE kind = 'confirm_contact'"); to != "night@xn--bcher-kva.example ops@example.com" {
		t.Errorf("asked were %q", to)
	}
	w.SQL("INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) SELECT id, c, 'contact.confirmed', true FROM tenants, unnest(ARRAY['ops@example.com', 'night@xn--bcher-kva.example']) c WHERE id = $1", w.tn.id.String())
	owner.get(w.root + "/settings").want(200).lacks("Not confirmed yet")
}
