//go:build e2e && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"posthorn/tools/look"
)

// embedding is a server at https://hooks.test whose portal is shown in pages at https://shop.test, another site.
type embedding struct {
	*world
	browser *look.Browser
	// the origins of the server, of the product, and of a site that the server does not know
	hooks, shop, stranger string
	fails                 atomic.Bool  // the product's route gives no links
	links                 atomic.Int64 // that the product's route gave
}

// embed starts the server, and a browser that blocks the cookies of third parties.
func embed(t *testing.T) *embedding {
	t.Helper()
	e := &embedding{
		world: newWorld(t, nil),
		browser: look.Open(t, map[string]any{
			"host-resolver-rules":              "MAP *.test 127.0.0.1",
			"ignore-certificate-errors":        true,
			"test-third-party-cookie-phaseout": true,
			// all frames in one process, where the tests can read them
			"disable-features":              "Translate,BlinkGenPropertyTrees,IsolateOrigins,site-per-process",
			"disable-site-isolation-trials": true,
		}),
	}
	address := net.JoinHostPort("127.0.0.1", freePort(t))
	behind := &url.URL{Scheme: "http", Host: address}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	product := httptest.NewTLSServer(e.product())
	t.Cleanup(product.Close)
	at := func(name string, s *httptest.Server) string {
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		return "https://" + name + ".test:" + port
	}
	e.hooks, e.shop, e.stranger = at("hooks", proxy), at("shop", product), at("stranger", product)
	e.environ = append(e.environ, "POSTHORN_ADDR="+address, "POSTHORN_BASE_URL="+e.hooks, "POSTHORN_FRAME_ANCESTORS="+e.shop)
	p := e.launch("posthorn", "serve").ready()
	p.url = behind.String()
	e.serveAt(p)
	return e
}

// product has a page with an iframe, whose URL is in the query, a page with the web component, and the route of the
// component's links.
func (e *embedding) product() http.Handler {
	page := func(w http.ResponseWriter, content string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Shop</title><h1>Shop settings</h1>
<script>window.said = []; addEventListener("message", (e) => said.push(e.origin + " " + e.data?.type))</script>%s`, content)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /plain", func(w http.ResponseWriter, r *http.Request) {
		page(w, `<iframe title="Webhooks" width="1200" height="800" src="`+html.EscapeString(r.URL.Query().Get("frame"))+`"></iframe>`)
	})
	routes.HandleFunc("GET /component", func(w http.ResponseWriter, _ *http.Request) {
		page(w, `<script src="`+e.hooks+`/portal.js" defer></script><posthorn-portal link="/webhooks/portal-link"></posthorn-portal>`)
	})
	routes.HandleFunc("POST /webhooks/portal-link", func(w http.ResponseWriter, _ *http.Request) {
		if e.fails.Load() {
			http.Error(w, "no link", http.StatusBadGateway)
			return
		}
		e.links.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]string{"url": e.link()})
	})
	return routes
}

// link makes a link in the brand of the product.
func (e *embedding) link() string {
	var link struct{ URL string }
	e.manage(http.MethodPost, "/portal-links", settings{"role": "developer", "brand_name": "Shopware"}, &link)
	return link.URL
}

func (e *embedding) plain(tab *look.Tab, origin, link string) {
	tab.Open(origin + "/plain?frame=" + url.QueryEscape(link))
}

// told waits until the frame told the page something.
func (e *embedding) told(tab *look.Tab, what string) {
	tab.Until("the page is told "+what, fmt.Sprintf(`said.includes(%q)`, e.hooks+" posthorn:"+what))
}

// Two sites over TLS, third-party cookies blocked: what a customer sees of the portal from the first link to the last.
func TestAPortalIsAProductWithinAnotherSite(t *testing.T) {
	t.Parallel()
	e := embed(t)
	endpoint := e.endpoint("/hooks", nil)
	root := "/t/" + e.tenant

	tab, link := e.browser.Visitor(t, look.View{}), e.link()
	e.plain(tab, e.shop, link)
	framed(t, tab, "<h1>Overview</h1>")
	e.told(tab, "ready")
	tab.Do(chromedp.Reload()) // with the same link
	framed(t, tab, "<h1>Overview</h1>")
	pressFramed(t, tab, `nav a[href$="/endpoints"]`)
	framed(t, tab, endpoint)

	other := e.browser.Visitor(t, look.View{})
	e.plain(other, e.shop, link) // in another browser
	framed(t, other, "This link has expired")
	framed(t, other, "Shopware")
	e.told(other, "signed-out")
	e.plain(other, e.stranger, e.link())
	other.Until("the stranger's frame has loaded", `document.querySelector("iframe").contentDocument === null`)
	if shown := frameText(other); strings.Contains(shown, "Shopware") {
		t.Errorf("a site that is not configured shows the portal: %.200s", shown)
	}

	e.exec("UPDATE sessions SET expires_at = now() - interval '1 s' WHERE link_id IS NOT NULL")
	pressFramed(t, tab, `nav a[href$="/deliveries"]`)
	framed(t, tab, "You were signed out")
	framed(t, tab, "Shopware")
	e.told(tab, "signed-out")

	tab, link = e.browser.Visitor(t, look.View{}), e.link()
	e.plain(tab, e.shop, link)
	framed(t, tab, "<h1>Overview</h1>")
	e.exec("UPDATE portal_links SET revoked_at = now()")
	pressFramed(t, tab, `nav a[href$="/events"]`)
	framed(t, tab, "You were signed out")
	tab.Do(chromedp.Reload())
	framed(t, tab, "This link has expired")
	if shown := frameText(tab); strings.Contains(shown, "Posthorn") || strings.Contains(shown, root) {
		t.Errorf("a customer who was signed out reads %s", shown)
	}
}

// The documentation opens beside the product, and a secret that is shown once stays.
func TestTheDocumentationOpensOutsideOfThePortalsFrame(t *testing.T) {
	t.Parallel()
	e := embed(t)
	var link struct{ URL string }
	e.manage(http.MethodPost, "/portal-links", settings{"role": "developer"}, &link)
	tab := e.browser.Visitor(t, look.View{})
	e.plain(tab, e.shop, link.URL)
	framed(t, tab, "<h1>Overview</h1>")
	pressFramed(t, tab, `nav a[href$="/signature"]`)
	framed(t, tab, "/docs/verify")
	pressFramed(t, tab, `main a[href="/docs/verify"]`)
	pressFramed(t, tab, `.side-docs`)
	framed(t, tab, "<h1>Signature debugger</h1>")
}

// The web component shows the dashboard again after its session was ended, where the customer was, renews the session
// before its end without a reload, and says what is wrong if there is no link.
func TestThePortalsComponentRenewsItself(t *testing.T) {
	t.Parallel()
	e := embed(t)
	tab := e.browser.Visitor(t, look.View{})
	tab.Open(e.shop + "/component")
	framed(t, tab, "<h1>Overview</h1>")
	pressFramed(t, tab, `nav a[href$="/events"]`)
	framed(t, tab, "<h1>Events</h1>")
	e.exec("UPDATE portal_links SET revoked_at = now()")
	pressFramed(t, tab, `nav a[href$="/deliveries"]`)
	framed(t, tab, "<h1>Deliveries</h1>")
	if n := e.links.Load(); n != 2 {
		t.Errorf("%d links were asked for", n)
	}

	// a session that ends in five minutes and a second
	e.exec("UPDATE sessions SET expires_at = now() + interval '301 s' WHERE link_id IS NOT NULL")
	pressFramed(t, tab, `nav a[href$="/signature"]`)
	framed(t, tab, "<h1>Signature debugger</h1>")
	eventually(t, patience, "the session is renewed", func() bool {
		var n int
		err := e.sql.QueryRow(t.Context(), "SELECT count(*) FROM sessions WHERE link_id IS NOT NULL AND expires_at > now() + interval '1 h'").Scan(&n)
		return err == nil && n == 1
	})
	framed(t, tab, "<h1>Signature debugger</h1>") // where the customer was
	pressFramed(t, tab, `nav a[href$="/endpoints"]`)
	framed(t, tab, "<h1>Endpoints</h1>")

	e.fails.Store(true)
	e.exec("UPDATE portal_links SET revoked_at = now()")
	pressFramed(t, tab, `nav a[href$="/events"]`)
	tab.Until("the component says what is wrong", `document.querySelector("posthorn-portal").shadowRoot.textContent.includes("can't be loaded")`)
}

// frameText is what the frame of a page holds now.
func frameText(tab *look.Tab) string {
	frames, err := chromedp.Run(tab, chromedp.Nodes(theFrame))
	if err != nil || len(frames) == 0 {
		return ""
	}
	text, _ := chromedp.Run(tab, chromedp.OuterHTML(chromedp.CSS(`body`), chromedp.FromNode(frames[0]), chromedp.AtLeast(0)))
	return text
}
