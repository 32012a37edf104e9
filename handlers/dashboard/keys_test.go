package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/signature"
)

func TestAKeyIsShownOnceAndRevokedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	dev := tn.of[access.Developer]
	tn.of[access.Viewer].get(tn.path + "/keys").want(http.StatusForbidden)
	// the one that the tenant started with
	w.SQL("UPDATE api_keys SET revoked_at = now() WHERE tenant_id = $1", tn.id.String())
	dev.get(tn.path+"/keys/new").want(200, `value="events:write" checked`, "Emit events")
	dev.post(tn.path+"/keys", url.Values{"name": {" "}, "expires_at": {"2020-01-01T00:00"}}).want(400, "A key needs at least one scope", "in the past", `value="2020-01-01T00:00"`)
	dev.post(tn.path+"/keys", url.Values{"name": {"Shop"}, "scopes": {"tenants:write"}}).want(400, "Only platform keys can have the scope", `value="Shop"`)
	made := dev.next(tn.path+"/keys", url.Values{"name": {"Shop"}, "scopes": {"events:write", "events:read"}, "expires_at": {"2099-01-01T00:00"}}).want(200, "Shown only once")
	text := regexp.MustCompile(`phk_[0-9A-Za-z]{49}`).FindString(made.Body)
	if text == "" || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the key is not shown, or kept by browsers: %v", made.Header)
	}
	list := dev.get(tn.path+"/keys").want(200, "Shop", text[:10], "events:write events:read", "never", "live").lacks(text)
	revoke := regexp.MustCompile(`action="([^"]+/revoke)"`).FindStringSubmatch(list.Body)
	dev.post(revoke[1], nil).to(tn.path + "/keys")
	dev.get(tn.path+"/keys").want(200, "revoked", "Revoked: Shop.").lacks("/revoke")
	dev.post(revoke[1], nil).to(tn.path + "/keys")
	if w.audited(tn, "key.created") != 2 || w.audited(tn, "key.revoked") != 1 { // the tenant's first key, too
		t.Error("keys are not audited once each")
	}
	dev.get(tn.path+"/audit-log?action=key.revoked").want(200, "key.revoked", "Shop", "member").lacks("key.created</span>", text)
}

func TestAKeyExpiresAfterTheChosenTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	dev := tn.of[access.Developer]
	dev.get(tn.path+"/keys/new").want(200, "In 30 days", "In 90 days", "In 1 year", "At another time")
	expiry := func(name, in, at string) *time.Time {
		t.Helper()
		dev.next(tn.path+"/keys", url.Values{"name": {name}, "scopes": {"events:write"}, "expires_in": {in}, "expires_at": {at}}).want(200, "Shown only once")
		return one[*time.Time](w, "SELECT expires_at FROM api_keys WHERE name = $1", name)
	}
	for in, days := range map[string]int{"30d": 30, "90d": 90, "365d": 365} {
		if at := expiry(in, in, ""); at == nil || at.Sub(time.Now().AddDate(0, 0, days)).Abs() > time.Minute {
			t.Errorf("%s: the key expires at %v", in, at)
		}
	}
	if at := expiry("never", "never", "2099-01-01T00:00"); at != nil {
		t.Errorf("a key that never expires does at %v", at)
	}
	if at := expiry("other", "other", "2099-01-01T00:00"); at == nil || at.UTC().Year() != 2099 {
		t.Errorf("a key with a time of its own expires at %v", at)
	}
	for _, at := range []string{"", "2020-01-01T00:00"} {
		dev.post(tn.path+"/keys", url.Values{"name": {"x"}, "scopes": {"events:write"}, "expires_in": {"other"}, "expires_at": {at}}).want(400)
	}
}

// A key that may change members would make a developer an admin, and a portal link a member.
func TestNobodyCreatesAKeyThatMayDoMoreThanThey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	form := url.Values{"name": {"Ladder"}, "scopes": {"events:write", "members:write"}}
	for name, who := range map[string]*browser{
		"developer":   tn.of[access.Developer],
		"portal link": w.portalSessionOf(tn, accounts.NewPortalLink{Role: access.Admin, Parts: access.Parts{Secrets: true, Replay: true, EventTypes: true, Payloads: true}}),
	} {
		who.get(tn.path+"/keys/new").want(200, `value="events:write"`).lacks("members:write")
		who.post(tn.path+"/keys", form).want(400, "Only owners and admins can create a key with members:write", `value="Ladder"`)
		if n := w.audited(tn, "key.created") - 1; n != 0 { // the first key came with the tenant
			t.Errorf("%s: %d keys were created", name, n)
		}
	}
	for n, role := range []access.Role{access.Owner, access.Admin} {
		tn.of[role].get(tn.path+"/keys/new").want(200, `value="members:write"`)
		tn.of[role].post(tn.path+"/keys", form).to(tn.path + "/keys/")
		if got := w.audited(tn, "key.created") - 1; got != n+1 {
			t.Errorf("%s: %d keys were created", role, got)
		}
	}
}

func TestTheAuditLogIsFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	viewer := tn.of[access.Viewer]
	for range 45 {
		tn.of[access.Developer].post(tn.path+"/keys", url.Values{"name": {"<b>k</b>"}, "scopes": {"events:write"}}).to(tn.path + "/keys/")
	}
	first := viewer.get(tn.path+"/audit-log").want(200, "key.created", "&lt;b&gt;k&lt;/b&gt;").lacks("<b>k")
	viewer.get(leads(first, "next")).want(200, "key.created")
	viewer.get(tn.path+"/audit-log?action=no.such").want(200, "No entries match these filters")
	viewer.get(tn.path+"/audit-log?action=DROP").want(400, "Action must be one complete action")
	viewer.get(tn.path+"/audit-log?until=2020-01-01").want(200, "No entries match these filters")
}

func TestTheSignatureDebuggerTellsWhichPartFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	viewer := tn.of[access.Viewer]
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	key, err := signature.ParseKey(signature.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	m := signature.Message{EventID: "evt_1", Type: "a.b", CreatedAt: time.Now(), Data: []byte("{\n\"a\": 1}")}
	body := signature.AppendBody(nil, signature.Standard, m)
	headers := "POST /in HTTP/1.1\r\n"
	for _, h := range (signature.Signing{Format: signature.Standard, Keys: []signature.Key{key}}).Headers(nil, m, body,
		signature.Send{At: time.Now(), Attempt: 1}) {
		headers += "> " + h.Name + ": " + h.Value + "\r\n"
	}
	before := w.counts(tn)
	viewer.get(tn.path+"/signature").want(200, "Signature debugger", "Nothing is stored").lacks("Result")
	form := url.Values{"format": {"standard"}, "secret": {secret}, "headers": {headers}, "body": {string(body)}}
	viewer.post(tn.path+"/signature", form).want(200, "Valid signature").lacks(secret)
	form.Set("body", string(body)+" ")
	viewer.post(tn.path+"/signature", form).want(200, "Invalid signature", "No signature matches", "evt_1").lacks(secret)
	form.Set("secret", "hunter22")
	viewer.post(tn.path+"/signature", form).want(200, "starts with whsec_", "fix the step above first").lacks("hunter22")
	form.Set("headers", "nonsense")
	viewer.post(tn.path+"/signature", form).want(400, "one header per line")
	form.Set("format", "none")
	viewer.post(tn.path+"/signature", form).want(400, "Unknown format")
	if after := w.counts(tn); after != before {
		t.Error("the debugger stored something")
	}
}
