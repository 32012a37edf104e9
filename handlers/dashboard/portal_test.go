package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/signature"
	"posthorn/handlers/dashboard"
)

// shown is what people read of a page: its text, and the attributes that are read out or shown.
func shown(body string) string {
	body = strings.ReplaceAll(body, "User-Agent: "+signature.UserAgent, "") // what the receiver gets is shown as it is
	body = regexp.MustCompile(`(?s)<(script|style|link)\b[^>]*>`).ReplaceAllString(body, "")
	return regexp.MustCompile(`(href|src|action|id|class|for|data-[a-z-]+|name|value|hx-[a-z-]+)="[^"]*"`).ReplaceAllString(body, "")
}

// eachPage calls every page of a tenant.
func (w *world) eachPage(b *browser, tn tenant, look func(path string, p *page)) {
	w.t.Helper()
	ids := w.things(tn)
	ids["format"] = "openapi"
	for _, r := range w.routes {
		if path := fill(r.Path, tn.path, ids); r.Method == http.MethodGet && !strings.Contains(path, "//") {
			look(path, b.get(path+queries[strings.TrimPrefix(r.Path, dashboard.Root)]))
		}
	}
}

// A provider's customers never read the name of who makes the dashboard, and its documentation opens outside the frame.
func TestNoPageOfABrandedPortalNamesPosthorn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	all := access.Parts{Secrets: true, Replay: true, EventTypes: true, Payloads: true}
	branded := w.portalSessionOf(tn, accounts.NewPortalLink{Role: access.Admin, Brand: "Shop", Parts: all})
	n := 0
	w.eachPage(branded, tn, func(path string, p *page) {
		if p.Status != http.StatusOK || !strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			return
		}
		n++
		if at := strings.Index(shown(p.Body), "Posthorn"); at >= 0 {
			t.Errorf("%s: %.120s", path, shown(p.Body)[max(at-60, 0):])
		}
		if strings.Contains(p.Body, `href="/docs`) {
			t.Errorf("%s links to the documentation", path)
		}
	})
	if n < 25 {
		t.Errorf("only %d pages were seen", n)
	}
	docs := regexp.MustCompile(`<a\b[^>]*href="/docs[^>]*>`)
	plain := w.portalSessionOf(tn, accounts.NewPortalLink{Role: access.Admin, Parts: all})
	for _, path := range []string{"/", "/signature", "/keys/new"} {
		links := docs.FindAllString(plain.get(tn.path+path).want(200).Body, -1)
		if len(links) == 0 {
			t.Errorf("%s has no link to the documentation", path)
		}
		for _, link := range links {
			if !strings.Contains(link, `target="_blank"`) {
				t.Errorf("%s: %s opens in the frame", path, link)
			}
		}
	}
}

// What a link leaves out is neither on the pages nor behind them.
func TestAPortalLinkLeavesPartsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ids := w.things(tn)
	delivery, event := tn.path+"/deliveries/"+ids["delivery_id"], tn.path+"/events/"+ids["event_id"]
	const data = "of " // in the event's data
	session := func(change func(*access.Parts)) *browser {
		parts := access.Parts{Secrets: true, Replay: true, EventTypes: true, Payloads: true}
		change(&parts)
		return w.portalSessionOf(tn, accounts.NewPortalLink{Role: access.Admin, Parts: parts})
	}
	all := session(func(*access.Parts) {})
	all.get(delivery).want(200, "/replay")
	all.get(event).want(200, data+tn.path)
	all.get(tn.path + "/event-types").want(200)
	all.get(tn.path+"/").want(200, tn.path+"/keys", tn.path+"/event-types")

	noReplay := session(func(p *access.Parts) { p.Replay = false })
	noReplay.get(delivery).want(200).lacks("/replay")
	noReplay.post(delivery+"/replay", url.Values{}).want(http.StatusForbidden)
	noReplay.post(tn.path+"/bulk-jobs", url.Values{"kind": {"replay"}}).want(http.StatusForbidden)

	noTypes := session(func(p *access.Parts) { p.EventTypes = false })
	noTypes.get(tn.path + "/").want(200).lacks("/event-types")
	noTypes.get(tn.path + "/palette").want(200).lacks("/event-types")
	for _, path := range []string{"/event-types", "/event-types/order.paid", "/event-types/new", "/catalogue/openapi"} {
		noTypes.get(tn.path + path).want(http.StatusForbidden)
	}
	noTypes.post(tn.path+"/event-types", url.Values{"name": {"a.b"}}).want(http.StatusForbidden)

	noPayloads := session(func(p *access.Parts) { p.Payloads = false })
	noPayloads.get(event).want(200).lacks(data + tn.path)
	noPayloads.get(event + "/data").want(http.StatusForbidden)
	noPayloads.get(delivery + "/body").want(http.StatusForbidden)

	noSecrets := session(func(p *access.Parts) { p.Secrets = false })
	noSecrets.post(tn.path+"/endpoints/"+ids["endpoint_id"]+"/secrets", url.Values{}).want(http.StatusForbidden)
	for name, b := range map[string]*browser{"replay": noReplay, "event types": noTypes, "payloads": noPayloads, "secrets": noSecrets} {
		b.get(tn.path + "/").want(200).lacks(tn.path + "/keys")
		if got := b.post(tn.path+"/keys", url.Values{"name": {"k"}, "scopes": {"events:read"}}); got.Status != http.StatusForbidden {
			t.Errorf("without %s, creating a key answered %d", name, got.Status)
		}
	}
}

// The preview shows what the form says, in a frame of this server and nowhere else, and changes nothing.
func TestThePreviewOfAPortalIsWhatItsVisitorSees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	admin, preview := tn.of[access.Admin], tn.path+"/portal/preview?"
	frame := []string{"Sec-Fetch-Dest", "iframe"}
	page := admin.get(tn.path+"/portal").want(200, preview, "posthorn-portal", "POSTHORN_FRAME_ANCESTORS", "/docs/portal")
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-src 'self'") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Error(csp)
	}
	form := url.Values{"role": {"viewer"}, "brand_name": {"Shop <b>"}, "accent": {"#c2410c"}, "return_url": {"https://shop.example.com"}, "allow_event_types": {"true"}}
	got := admin.get(preview+form.Encode(), frame...).want(200, "Shop &lt;b&gt;", "c2410c", "https://shop.example.com", "/event-types").
		lacks("Posthorn", tn.path+"/members", tn.path+"/keys", tn.path+"/portal", "Sign out")
	if csp := got.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'self'") {
		t.Error(csp)
	}
	admin.get(preview+"role=owner&accent=red&return_url=javascript:alert(1)", frame...).want(200).lacks("javascript:alert")
	tn.of[access.Developer].get(preview, frame...).want(http.StatusForbidden)
	w.portalSession(tn, access.Admin).get(preview, frame...).want(http.StatusForbidden)
	admin.get(tn.path+"/endpoints", frame...).want(http.StatusUnauthorized)
}
