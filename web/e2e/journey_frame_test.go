//go:build e2e && unix

package e2e

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"posthorn/tools/look"
)

// providerPage is a page of a provider at another origin, which shows in a frame what its query names.
func providerPage(t *testing.T) *httptest.Server {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(
			w,
			`<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1><iframe title="Webhooks" width="1200" height="800" src="%s"></iframe>`,
			html.EscapeString(r.URL.Query().Get("frame")),
		)
	}))
	t.Cleanup(provider.Close)
	return provider
}

// theFrame is the frame of a page, also within the web component.
const theFrame = chromedp.JSPath(`document.querySelector("iframe") ?? document.querySelector("posthorn-portal").shadowRoot.querySelector("iframe")`)

// framed waits until the frame of a page shows a text.
func framed(t *testing.T, tab *look.Tab, text string) {
	t.Helper()
	var shown string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		frames, err := chromedp.Run(tab, chromedp.Nodes(theFrame))
		if err != nil || len(frames) == 0 {
			continue
		}
		if shown, err = chromedp.Run(tab, chromedp.OuterHTML(chromedp.CSS(`body`), chromedp.FromNode(frames[0]),
			chromedp.AtLeast(0))); err == nil && strings.Contains(shown, text) {
			return
		}
	}
	t.Fatalf("the frame does not show %q: %.300s", text, shown)
}

// pressFramed clicks what a selector names in the frame of a page.
func pressFramed(t *testing.T, tab *look.Tab, selector string) {
	t.Helper()
	frames := look.Run(tab, chromedp.Nodes(theFrame))
	tab.Do(chromedp.Click(chromedp.CSS(selector), chromedp.FromNode(frames[0])))
}

// portalIsEmbedded opens a portal in a frame of a page at another origin that the server's settings name. It shows the
// provider's name, keeps its session from page to page, and its forms work.
func portalIsEmbedded(t *testing.T, s *stage) {
	o := s.office(t, "Embedded Ltd")
	ep, _ := o.endpoint("/hooks", nil)
	var link struct{ URL string }
	o.manage(http.MethodPost, "/portal-links", settings{"role": "developer", "brand_name": "Shopware", "accent": "#c2410c"}, &link)
	tab := s.browser.Visitor(t, look.View{})
	tab.Open(s.provider.URL + "/?frame=" + link.URL)
	framed(t, tab, "Shopware")
	framed(t, tab, "<h1>Overview</h1>")
	pressFramed(t, tab, `nav a[href$="/endpoints"]`)
	framed(t, tab, "<h1>Endpoints</h1>")
	framed(t, tab, ep)
	pressFramed(t, tab, `a[href$="/endpoints/new"]`)
	framed(t, tab, "<h1>Add endpoint</h1>")
	pressFramed(t, tab, `form[action$="/inboxes"] button`)
	framed(t, tab, "<h1>Test inbox</h1>")
}
