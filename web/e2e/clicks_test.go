//go:build e2e && unix

package e2e

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"posthorn/tools/look"
)

// counted is a tab in which clicks are counted.
type counted struct {
	*look.Tab
	clicks int
}

func (c *counted) press(name string) {
	c.clicks++
	c.Press(name)
}

// TestTasksTakeFewClicks counts the clicks of what people do most. What they type is not counted.
func TestTasksTakeFewClicks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	desk := operator(t, s)
	for _, task := range []struct {
		name string
		most int
		do   func(*testing.T) *counted
	}{
		{"replay all failures since yesterday", 4, func(t *testing.T) *counted {
			o := s.office(t, "Replaying Ltd")
			o.endpoint("/hooks", nil)
			o.customer.status.Store(http.StatusUnprocessableEntity)
			for range 3 {
				o.emitted("order.paid", `{}`)
			}
			o.await("failed", 3)
			o.customer.status.Store(http.StatusOK)
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root)
			c.press("Deliveries")
			c.press("Failed since yesterday")
			c.press("Replay all results…")
			c.press("Replay 3 deliveries")
			o.await("delivered", 3)
			return c
		}},
		{"register and verify an endpoint, and send the first event", 6, func(t *testing.T) *counted {
			o := s.office(t, "Registering Ltd")
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root)
			c.press("Add endpoint")
			c.Fill("URL", o.customer.url+"/hooks")
			c.press("Add endpoint")
			c.press("I've installed it: verify now")
			c.press("Send test event") // appears once the endpoint is verified
			c.Sees("delivered")
			inspectOpen(t, c.Tab)
			return c
		}},
		{"the first webhook, in a test inbox", 2, func(t *testing.T) *counted {
			o := s.office(t, "Starting Ltd")
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root)
			c.press("Create test inbox")
			c.Sees("endpoint.test") // in the body of the newest request, once the inbox is verified
			c.Sees("Valid signature")
			return c
		}},
		{"see why an event was not delivered", 2, func(t *testing.T) *counted {
			o := s.office(t, "Wondering Ltd")
			o.endpoint("/hooks", nil)
			o.customer.status.Store(http.StatusUnprocessableEntity)
			o.emitted("order.paid", `{}`)
			o.await("failed", 1)
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root)
			c.press("order.paid")
			c.Sees("What to do:")
			return c
		}},
		{"find an event by a value in its data", 2, func(t *testing.T) *counted {
			o := s.office(t, "Searching Ltd")
			o.endpoint("/hooks", nil)
			ev := o.emitted("order.paid", `{"order_id":"ord_10338"}`)
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root)
			c.press("Search Ctrl K")
			look.Type(c.Tab, chromedp.CSS("#palette input"), "ord_10338\r")
			c.Sees("data.order_id")
			c.clicks++
			c.Do(chromedp.Click(chromedp.CSS("td.cell-lead a")))
			c.Arrives(o.root + "/events/" + ev)
			return c
		}},
		{"end an old secret", 2, func(t *testing.T) *counted {
			o := s.office(t, "Rotating Ltd")
			ep, _ := o.endpoint("/hooks", nil)
			o.manage(http.MethodPost, "/endpoints/"+ep+"/rotate-secret", nil, nil)
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root + "/endpoints/" + ep)
			c.press("Secrets")
			c.press("Stop signing now") // the receiver is asked first whether it accepts the new one alone
			c.Sees("no longer signs")
			var left struct {
				Data []struct{ Check struct{ State string } }
			}
			o.manage(http.MethodGet, "/endpoints/"+ep+"/secrets", nil, &left)
			if len(left.Data) != 1 || left.Data[0].Check.State != "accepted" {
				t.Errorf("the secrets that remain: %+v", left.Data)
			}
			return c
		}},
		{"mute the alerts of an endpoint", 2, func(t *testing.T) *counted {
			o := s.office(t, "Muting Ltd")
			ep, _ := o.endpoint("/hooks", nil)
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root + "/endpoints/" + ep)
			c.press("Mute alerts")
			c.press("For 1 day")
			c.Sees("Alerts muted until")
			return c
		}},
		{"pause the endpoint of the open page by keyboard alone", 0, func(t *testing.T) *counted {
			o := s.office(t, "Typing Ltd")
			ep, _ := o.endpoint("/hooks", settings{"description": "Old CRM"})
			c := &counted{Tab: o.owner.tab(look.View{})}
			c.Open(s.url + o.root + "/endpoints/" + ep)
			c.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
			c.Sees("Pause Old CRM")
			look.Type(c.Tab, chromedp.CSS("#palette input"), "theme")
			c.Sees("Theme: dark")
			inspectOpen(t, c.Tab)
			for range "theme" {
				c.Do(chromedp.KeyEvent(kb.Backspace))
			}
			look.Type(c.Tab, chromedp.CSS("#palette input"), "pause\r")
			c.Sees("Pause this endpoint?")
			c.Do(chromedp.KeyEvent(kb.Escape))
			return c
		}},
		{"pause a noisy tenant as an operator", 3, func(t *testing.T) *counted {
			o := s.office(t, "Loud Ltd")
			o.endpoint("/hooks", oneASecond)
			batch := fmt.Sprintf(`{"events":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"type":"order.paid","data":{}},`, 150), ","))
			if status, answer, err := o.call(http.MethodPost, o.web()+"/api/v1/events/batch", batch, ""); err != nil ||
				status != http.StatusAccepted {
				t.Fatalf("the backlog: %d %s %v", status, answer, err)
			}
			c := &counted{Tab: desk.tab(look.View{})}
			c.Open(s.url + "/console")
			c.press("Pause Loud Ltd")
			c.Fill("Reason", "It sends too much.")
			c.press("Pause tenant")
			c.Sees("Deliveries are paused")
			return c
		}},
	} {
		t.Run(task.name, func(t *testing.T) {
			t.Parallel()
			c := task.do(t)
			t.Logf("%d clicks", c.clicks)
			if c.clicks > task.most {
				t.Errorf("it takes %d clicks, want %d at most", c.clicks, task.most)
			}
			quiet(t, c.Tab)
		})
	}
}

// TestMenusAndDialogsHoldUpInABrowser opens each menu and each dialog of every page once, in both themes: axe-core
// finds nothing wrong, and the first focus of a dialog is a field or the way out, not the cross.
func TestMenusAndDialogsHoldUpInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := inhabit(t, s)
	pages := w.pages(t)
	heaviest, where := 0, ""
	for _, p := range pages {
		if n := wire(t, p); n > heaviest {
			heaviest, where = n, p.path
		}
	}
	t.Logf("the heaviest of %d pages is %s: %d bytes with its style sheet and scripts", len(pages), where, heaviest)
	if heaviest > maxWire {
		t.Errorf("%s has %d bytes over the wire, want %d at most", where, heaviest, maxWire)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	first := func(name string) bool {
		mu.Lock()
		defer mu.Unlock()
		known := seen[name]
		seen[name] = true
		return !known
	}
	const lanes = 3
	for lane := range lanes {
		t.Run(fmt.Sprintf("part %d", lane+1), func(t *testing.T) {
			t.Parallel()
			tabs := map[*visitor]*look.Tab{}
			for i := lane; i < len(pages); i += lanes {
				p := pages[i]
				if tabs[p.who] == nil {
					as := *p.who
					as.t = t
					tabs[p.who] = as.tab(look.View{})
				}
				openEach(t, tabs[p.who], s.url, p.path, first)
			}
		})
	}
}

// openEach opens the menus and dialogs of a page that were on no page before it.
func openEach(t *testing.T, tab *look.Tab, url, path string, first func(string) bool) {
	t.Helper()
	tab.Show(look.View{})
	tab.Open(url + path)
	parts := look.Run(tab, chromedp.Evaluate[[]string](`[...document.querySelectorAll("details.menu, dialog")].map((e) => {
		const name = e.id || "menu: " + e.querySelector("summary").innerText.trim();
		return name.replace(/[a-z]+_[0-9a-hjkmnp-tv-z]{26}/g, "...");
	})`))
	for i, name := range parts {
		if !first(name) {
			continue
		}
		at := fmt.Sprintf(`[...document.querySelectorAll("details.menu, dialog")][%d]`, i)
		shown := look.Run(tab, chromedp.Evaluate[string](`((e) => {
			if (e.matches("details")) { e.open = true; return ""; }
			const opener = [...document.querySelectorAll("[commandfor]")].find((b) => b.getAttribute("commandfor") === e.id && b.getAttribute("command") === "show-modal");
			if (!opener) { e.showModal(); return ""; }
			opener.click();
			const on = document.activeElement;
			return on.matches("[data-close]") && on.closest(".dialog-head") ? "the cross" : "";
		})(`+at+`)`))
		if shown != "" {
			t.Errorf("%s: the first focus of %s is %s", path, name, shown)
		}
		for _, v := range []look.View{{}, {Dark: true}} {
			tab.Show(v)
			var rules []string
			if v.Dark {
				rules = []string{look.Contrast}
			}
			for _, wrong := range tab.Violations(rules...) {
				t.Errorf("%s, %s, %s: %s", path, name, v, wrong)
			}
			tab.Picture("open-"+name, v)
		}
		look.Run(tab, chromedp.Evaluate[bool](`((e) => { if (e.matches("details")) e.open = false; else if (e.open) e.close(); return true; })(`+at+`)`))
	}
}

var asset = regexp.MustCompile(`(?:href|src)="(/static/[^"]+\.(?:css|js))"`)

// wire is how many bytes a page takes over the wire when nothing of it is cached: HTML, style sheet and scripts.
func wire(t *testing.T, p stop) int {
	t.Helper()
	n, body := transferred(t, p, p.path)
	for _, m := range asset.FindAllStringSubmatch(body, -1) {
		more, _ := transferred(t, p, m[1])
		n += more
	}
	return n
}

func transferred(t *testing.T, p stop, path string) (n int, body string) {
	t.Helper()
	base, err := url.Parse(p.who.s.url)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.who.s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Accept-Encoding", "gzip")
	for _, c := range p.who.client.Jar.Cookies(base) {
		req.AddCookie(c)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Content-Encoding") != "gzip" {
		return len(raw), string(raw)
	}
	unpacked, err := gzip.NewReader(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw), string(text)
}
