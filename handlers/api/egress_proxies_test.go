package api_test

import (
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
)

func TestAProxyIsSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	const all = "/api/v1/platform/egress-proxies"
	own := all + "/" + acme.id
	full := `{"type":"socks5","address":"Proxy.example.com:1080","username":"ada","password":"canary-p4ss","resolve_names":true,"published_addresses":["203.0.113.7","2001:db8::/48"]}`
	set := w.do("PUT", all+"/platform", w.platform, full).want(200)
	if set.get("tenant_id") != nil || set.text("address") != "proxy.example.com:1080" || set.get("has_password") != true || set.get("failed_at") != nil {
		t.Errorf("%s", set.Body)
	}
	if n := one[int](w, "SELECT count(*)::int FROM egress_proxies WHERE sealed IS NOT NULL AND position('canary'::bytea IN sealed) = 0 AND published = '{203.0.113.7/32,2001:db8::/48}'"); n != 1 {
		t.Error("it is not stored as it should be")
	}
	// Without a password the stored one stays, and goes nowhere else.
	kept := strings.Replace(full, `"password":"canary-p4ss",`, "", 1)
	if again := w.do("PUT", all+"/platform", w.platform, kept).want(200); again.get("has_password") != true {
		t.Errorf("%s", again.Body)
	}
	w.do("PUT", all+"/platform", w.platform, strings.Replace(kept, "Proxy.", "other.", 1)).problem(400, "proxy_password_needed", "password")
	w.do("PUT", own, w.platform, `{"type":"direct"}`).want(200)
	for body, want := range map[string]string{
		`{"type":"ftp","address":"p.example.com:1"}`:                                                          "proxy_invalid type",
		`{"type":"http","address":"p.example.com"}`:                                                           "proxy_invalid address",
		`{"type":"http","address":"10.0.0.1:3128"}`:                                                           "proxy_invalid address",
		`{"type":"http","address":"127.0.0.1:3128"}`:                                                          "proxy_invalid address",
		`{"type":"http","address":"169.254.169.254:80"}`:                                                      "proxy_invalid address",
		`{"type":"http","address":"127.1:3128"}`:                                                              "proxy_invalid address",
		`{"type":"http","address":"p.example.com:3128","password":"x"}`:                                       "proxy_invalid username",
		`{"type":"http","address":"p.example.com:3128","username":"a:b","password":"x"}`:                      "proxy_invalid username",
		`{"type":"http","address":"p.example.com:3128","username":"a","password":"x\ny"}`:                     "proxy_invalid password",
		`{"type":"socks5","address":"p.example.com:1080","username":"a"}`:                                     "proxy_password_needed password",
		`{"type":"http","address":"p.example.com:3128","published_addresses":["example.com"]}`:                "proxy_invalid published_addresses",
		`{"type":"http","address":"p.example.com:3128","published_addresses":["fe80::1%eth0"],"username":""}`: "proxy_invalid published_addresses",
	} {
		code, field, _ := strings.Cut(want, " ")
		w.do("PUT", own, w.platform, body).problem(400, code, field)
	}
	w.do("PUT", all+"/platform", w.platform, `{"type":"direct"}`).problem(400, "proxy_invalid", "type")
	w.do("PUT", all+"/nobody", w.platform, `{"type":"direct"}`).problem(400, "id_malformed", "owner")
	w.do("PUT", all+"/"+id.Tenant.Format(db.NewID()), w.platform, `{"type":"direct"}`).problem(404, "not_found")
	w.do("PUT", all+"/platform", acme.key, full).problem(403, "platform_key_required")
	list := w.do("GET", all, w.platform, nil).want(200)
	if data, ok := list.get("data").([]any); !ok || len(data) != 2 || strings.Contains(string(list.Body), "canary") {
		t.Errorf("%s", list.Body)
	}
	w.do("DELETE", own, w.platform, nil).want(204)
	w.do("DELETE", own, w.platform, nil).problem(404, "egress_proxy_not_found")
	w.do("DELETE", all+"/platform", w.platform, nil).want(204)
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action LIKE 'egress_proxy.%' AND details::text NOT LIKE '%canary%'"); n != 5 {
		t.Errorf("%d lines in the audit log", n)
	}
}
