package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/tools/pagetest"
)

func TestAPauseIsShownOnEveryPageUntilItEnds(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme := w.tenant("Acme")
	ep := w.endpoint(acme, "https://down.example.com/hooks?token=s3cr3t", "active", 0)
	w.queued(acme, ep, 1, 1)
	for _, tt := range []struct{ scope, of, says string }{
		{"platform", "everything", "All deliveries are paused. Nothing is sent."},
		{"tenant", id.Tenant.Format(acme), "paused for the tenant Acme"},
		{"host", "https://Down.example.com/", "paused for the host down.example.com"},
		{"endpoint", id.Endpoint.Format(ep), "paused for the endpoint https://down.example.com/hooks"},
	} {
		if res := w.send("POST", "/console/pauses", url.Values{"scope": {tt.scope}, "of": {tt.of}, "reason": {"flood of " + tt.scope}},
			w.cookie); res.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", tt.scope, res.Code, res.Body)
		}
		for _, path := range append([]string{"/pauses", "/tenants/" + id.Tenant.Format(acme)}, paths...) {
			page := w.page("/console" + path)
			if !strings.Contains(page, tt.says) || !strings.Contains(page, "flood of "+tt.scope) || strings.Contains(page, "s3cr3t") {
				t.Errorf("%s does not say that dispatch is paused for %s", path, tt.scope)
			}
		}
		if page := w.page("/console/queue"); !strings.Contains(page, "paused by operator") {
			t.Errorf("%s: the lane does not say why it waits", tt.scope)
		}
		if strings.Contains(w.page("/console"), ">Acme</a>") {
			t.Errorf("%s: what is paused counts as late", tt.scope)
		}
		end := "/console/pauses/" + pauseIn(t, w.page("/console/pauses")) + "/resume"
		for range 2 { // one of two operators does it, and both see the result
			if res := w.send("POST", end, url.Values{"reason": {"over"}}, w.cookie); res.Code != http.StatusSeeOther {
				t.Errorf("%s: resumed: %d %s", tt.scope, res.Code, res.Body)
			}
		}
		if page := w.page("/console/pauses"); strings.Contains(page, tt.says) || !strings.Contains(page, "No pauses") {
			t.Errorf("%s: the pause is still there", tt.scope)
		}
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'dispatch.paused' AND reason LIKE 'flood of %' AND actor_kind = 'operator'"); n != 4 {
		t.Errorf("%d pauses in the audit log, want 4", n)
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'dispatch.resumed' AND reason = 'over'"); n != 4 {
		t.Errorf("%d ends in the audit log, want 4", n)
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action LIKE 'dispatch.%' AND tenant_id = $1", acme); n != 4 {
		t.Errorf("%d lines in the tenant's audit log, want those of the tenant and of its endpoint", n)
	}
}

func pauseIn(t *testing.T, page string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "/console/pauses/")
	u, _, ended := strings.Cut(rest, "/")
	if !found || !ended {
		t.Fatal("no pause on the page")
	}
	return u
}

func TestAPauseNeedsAReasonAndSomethingToPause(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	for name, form := range map[string]url.Values{
		"no reason":            {"scope": {"platform"}, "of": {"everything"}},
		"all by default":       {"reason": {"x"}},
		"all unconfirmed":      {"scope": {"platform"}, "reason": {"x"}},
		"a platform by name":   {"scope": {"platform"}, "of": {"x"}, "reason": {"x"}},
		"no tenant":            {"scope": {"tenant"}, "reason": {"x"}},
		"an unknown tenant":    {"scope": {"tenant"}, "of": {id.Tenant.Format(db.NewID())}, "reason": {"x"}},
		"an unknown endpoint":  {"scope": {"endpoint"}, "of": {id.Endpoint.Format(db.NewID())}, "reason": {"x"}},
		"a host that is none":  {"scope": {"host"}, "of": {"a b"}, "reason": {"x"}},
		"a scope that is none": {"scope": {"moon"}, "reason": {"x"}},
	} {
		res := w.send("POST", "/console/pauses", form, w.cookie)
		if res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), "aria-invalid") ||
			len(pagetest.Faults(res.Body.String())) > 0 {
			t.Errorf("%s: %d %v", name, res.Code, pagetest.Faults(res.Body.String()))
		}
	}
	acme := w.tenant("Acme <1>")
	w.endpoint(acme, "https://known.example.com/hooks", "active", 0)
	form := w.page("/console/pauses")
	for _, part := range []string{`<option value="" selected>Select what to pause`, `<option value="` + id.Tenant.Format(acme) + `">Acme &lt;1&gt;`, `<option value="known.example.com">`} {
		if !strings.Contains(form, part) {
			t.Errorf("the form does not hold %s", part)
		}
	}
	if n := w.ask("SELECT count(*) FROM dispatch_pauses"); n != 0 {
		t.Errorf("%d pauses", n)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if res := w.send("POST", "/console/pauses", url.Values{"scope": {"platform"}, "of": {"everything"}, "reason": {"x"}}, w.cookie); res.Code != http.StatusSeeOther {
				t.Errorf("%d", res.Code)
			}
		})
	}
	both.Wait()
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'dispatch.paused'"); n != 1 {
		t.Errorf("two operators at once made %d pauses", n)
	}
	w.send("POST", "/console/pauses", url.Values{"scope": {"platform"}, "of": {"everything"}, "reason": {"x"}}, w.cookie)
	if page := w.page("/console/pauses"); !strings.Contains(page, "It was already paused by operator ") || strings.Contains(page, "paused by operator opr_") {
		t.Errorf("who paused it is not named: %s", page)
	}
}
