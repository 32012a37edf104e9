package admin_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/tools/pagetest"
)

var seenField = regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`)

func (w *console) seen(path string) string {
	w.t.Helper()
	m := seenField.FindStringSubmatch(w.page(path))
	if m == nil {
		w.t.Fatalf("%s has no version", path)
	}
	return m[1]
}

func TestPlatformSettingsAreKeptWithinTheirRangesAndAudited(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	form := url.Values{
		"seen":                   {w.seen("/console/settings")},
		settings.EventsPerSecond: {"9"},
		settings.RetentionDays:   {"30"},
		settings.Digest:          {"off"},
		"health.gone":            {""},
	}
	wrong := url.Values{"seen": form["seen"], settings.RetentionDays: {"0"}, settings.Digest: {"perhaps"}}
	res := w.send("POST", "/console/settings", wrong, w.cookie)
	if body := res.Body.String(); res.Code != http.StatusBadRequest || strings.Count(body, "aria-invalid") != 2 ||
		!strings.Contains(body, "from 1 to 3650") || len(pagetest.Faults(body)) > 0 {
		t.Errorf("out of range: %d %v", res.Code, pagetest.Faults(body))
	}
	if res := w.send("POST", "/console/settings", form, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'platform.updated' AND actor_id = $1 AND details->'retention_days' = '[\"\", \"30\"]'", id.Operator.Format(w.op)); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
	res = w.send("POST", "/console/settings", form, w.cookie)
	if body := res.Body.String(); res.Code != http.StatusConflict || !strings.Contains(body, "Someone else changed") ||
		!strings.Contains(body, `value="30"`) {
		t.Errorf("over a newer version: %d", res.Code)
	}
	if days := w.ask("SELECT retention_days FROM tenants WHERE id = $1", w.tenant("New")); days != 30 {
		t.Errorf("a new tenant keeps %d days", days)
	}
}

func TestATenantsLimitsLieOverThePlatforms(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	w.exec(`UPDATE platform SET settings = '{"limits":{"events_per_month":5000}}'`)
	if page := w.page(at); !strings.Contains(page, `placeholder="5000"`) {
		t.Error("the platform's limit is not shown")
	}
	form := url.Values{"seen": {w.seen(at)}, "retention_days": {"7"}, settings.EventsPerMonth: {"100"}, settings.MaxEndpoints: {""}}
	for name, text := range map[string]string{"retention_days": "3651", settings.MaxPayload: "1"} {
		wrong := url.Values{"seen": form["seen"], "retention_days": {"7"}}
		wrong.Set(name, text)
		if res := w.send("POST", at+"/limits", wrong, w.cookie); res.Code != http.StatusBadRequest ||
			!strings.Contains(res.Body.String(), "aria-invalid") || len(pagetest.Faults(res.Body.String())) > 0 {
			t.Errorf("%s=%s: %d", name, text, res.Code)
		}
	}
	var both sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for range 2 {
		both.Go(func() {
			res := w.send("POST", at+"/limits", form, w.cookie)
			mu.Lock()
			defer mu.Unlock()
			codes[res.Code]++
			if res.Code == http.StatusConflict && !strings.Contains(res.Body.String(), `value="100"`) {
				t.Error("who came second does not see the result")
			}
		})
	}
	both.Wait()
	if codes[http.StatusSeeOther] != 1 || codes[http.StatusConflict] != 1 {
		t.Errorf("two at once: %v", codes)
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.updated' AND actor_kind = 'operator'", tenant); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
}

func TestAShorterRetentionOfATenantAsksFirst(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	w.exec("UPDATE tenants SET retention_days = 90")
	w.exec("INSERT INTO books (tenant_id, day, events) VALUES ($1, current_date - 50, 1234), ($1, current_date - 3, 7)", tenant)
	days := func() int { return w.ask("SELECT retention_days FROM tenants WHERE id = $1", tenant) }
	form := url.Values{"seen": {w.seen(at)}, "retention_days": {"30"}}
	if res := w.send("POST", at+"/limits", form, w.cookie); res.Code != http.StatusConflict || !strings.Contains(res.Body.String(),
		"1,234 events are older than 30 days") || days() != 90 {
		t.Errorf("it did not ask: %d, %d days", res.Code, days())
	}
	form.Set("delete_beyond", "60") // confirmed for another number
	if res := w.send("POST", at+"/limits", form, w.cookie); res.Code != http.StatusConflict || days() != 90 {
		t.Errorf("it took a confirmation of something else: %d, %d days", res.Code, days())
	}
	form.Set("delete_beyond", "30")
	if res := w.send("POST", at+"/limits", form, w.cookie); res.Code != http.StatusSeeOther || days() != 30 {
		t.Errorf("confirmed: %d, %d days", res.Code, days())
	}
}

func TestPlatformKeysAreShownOnceAndRevokedOnce(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	if res := w.send("POST", "/console/keys", url.Values{"name": {" "}}, w.cookie); res.Code != http.StatusBadRequest ||
		len(pagetest.Faults(res.Body.String())) > 0 {
		t.Errorf("without a name or scopes: %d %v", res.Code, pagetest.Faults(res.Body.String()))
	}
	res := w.send("POST", "/console/keys", url.Values{"name": {"billing"}, "scopes": {"tenants:write", "events:write"}}, w.cookie)
	if res.Code != http.StatusSeeOther || !regexp.MustCompile(`php_[0-9A-Za-z]{49}`).MatchString(w.page("/console/keys")) {
		t.Fatalf("%d", res.Code)
	}
	list := w.page("/console/keys")
	if regexp.MustCompile(`php_[0-9A-Za-z]{49}`).MatchString(list) || !strings.Contains(list, "billing") || !strings.Contains(list, "tenants:write") {
		t.Error("the list of keys")
	}
	u := regexp.MustCompile(`/console/keys/(key_[a-z0-9]+)/revoke`).FindStringSubmatch(list)[1]
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if res := w.send("POST", "/console/keys/"+u+"/revoke", url.Values{}, w.cookie); res.Code != http.StatusSeeOther {
				t.Errorf("revoked: %d", res.Code)
			}
		})
	}
	both.Wait()
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'key.revoked' AND object_id = $1", u); n != 1 {
		t.Errorf("revoked %d times", n)
	}
	if page := w.page("/console/keys"); !strings.Contains(page, "revoked") {
		t.Error("the list does not say so")
	}
}

// Every action on a deleted object says that it is deleted, and changes nothing.
func TestAnActionOnAVanishedObjectSaysSo(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	kinds := map[string]id.Kind{"id": id.Tenant, "mail_id": id.Mail, "key_id": id.Key, "delivery_id": id.Delivery, "event_id": id.Event, "pause_id": id.Job}
	form := url.Values{"reason": {"x"}, "minutes": {"15"}, "retention_days": {"7"}, "name": {"x"}}
	tried := 0
	for _, r := range w.routes {
		if !r.Access.Operator || !strings.Contains(r.Path, "/:") {
			continue
		}
		path := regexp.MustCompile(`:([a-z_]+)`).ReplaceAllStringFunc(r.Path,
			func(name string) string { return kinds[name[1:]].Format(db.NewID()) })
		res := w.send(r.Method, path, map[string]url.Values{"POST": form}[r.Method], w.cookie)
		if res.Code != http.StatusNotFound && res.Code != http.StatusConflict ||
			len(pagetest.Faults(res.Body.String())) > 0 {
			t.Errorf("%s %s: %d", r.Method, r.Path, res.Code)
		}
		tried++
	}
	if tried < 8 || w.ask("SELECT count(*) FROM audit_log") != 0 {
		t.Errorf("%d routes tried; something was entered in the audit log", tried)
	}
}
