package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/domain/id"
	"posthorn/tools/pagetest"
)

// The password of a proxy is stored sealed, and is on no page, in no error, and in no log of what was done.
func TestThePasswordOfAProxyIsNowhere(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme := w.tenant("Acme")
	const password = "canary-of-the-proxy"
	form := url.Values{
		"owner":               {"platform"},
		"type":                {"http"},
		"address":             {"proxy.example.com:3128"},
		"username":            {"ada"},
		"password":            {password},
		"published_addresses": {"203.0.113.7\r\n203.0.113.8"},
	}
	clean := func(what, text string) {
		t.Helper()
		if strings.Contains(text, "canary") {
			t.Errorf("%s has the password", what)
		}
	}
	bad := url.Values{}
	for name, values := range form {
		bad[name] = values
	}
	bad.Set("address", "10.0.0.1:3128")
	res := w.send("POST", "/console/egress", bad, w.cookie)
	if page := res.Body.String(); res.Code != http.StatusBadRequest || !strings.Contains(page, "POSTHORN_EGRESS_PROXY_ALLOW") || !strings.Contains(page, "10.0.0.1:3128") || len(pagetest.Faults(page)) > 0 {
		t.Errorf("a private address: %d %v", res.Code, pagetest.Faults(page))
	}
	clean("the form that was refused", res.Body.String())
	if res := w.send("POST", "/console/egress", form, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	own := url.Values{"owner": {id.Tenant.Format(acme)}, "type": {"direct"}}
	if res := w.send("POST", "/console/egress", own, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	page := w.page("/console/egress")
	for _, want := range []string{"proxy.example.com:3128", "HTTP CONNECT, ada with a password", "203.0.113.8/32", "Acme", "All tenants"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	clean("the page", page)
	for _, path := range append([]string{"/egress?owner=" + id.Tenant.Format(acme), "/tenants/" + id.Tenant.Format(acme)}, paths...) {
		clean(path, w.page("/console"+path))
	}
	w.exec("UPDATE egress_proxies SET failed_at = now(), failure = 'the egress proxy failed: it did not respond in time' WHERE type = 'http'")
	if page := w.page("/console"); !strings.Contains(page, "The egress proxy proxy.example.com:3128 fails.") {
		t.Error("the overview does not say that the proxy fails")
	}
	for _, column := range []string{"egress_proxies", "audit_log"} {
		if n := w.ask("SELECT count(*) FROM " + column + " x WHERE x::text LIKE '%canary%' OR x::text LIKE '%" + "63616e617279" + "%'"); n != 0 {
			t.Errorf("the table %s has it", column)
		}
	}
	remove := url.Values{"owner": {"platform"}}
	for range 2 { // one of two operators does it
		if res := w.send("POST", "/console/egress/remove", remove, w.cookie); res.Code != http.StatusSeeOther {
			t.Errorf("removed: %d", res.Code)
		}
	}
	if n := w.ask("SELECT count(*) FROM egress_proxies"); n != 1 {
		t.Errorf("%d proxies", n)
	}
}
