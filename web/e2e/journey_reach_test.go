//go:build e2e && unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"posthorn/tools/look"
)

// focused is what has the focus: its name as people read it, or its label.
const focused = `((e) => !e ? "" : ((e.labels && e.labels[0] && e.labels[0].innerText) || e.getAttribute("aria-label") || e.innerText || e.name || e.tagName).toLowerCase().replace(/\s+/g, " ").trim())(document.activeElement || document.body)`

// goTo presses Tab until what bears a name has the focus, and checks that one sees it.
func goTo(t *testing.T, tab *look.Tab, name string) {
	t.Helper()
	var passed []string
	for range 80 {
		tab.Do(chromedp.KeyEvent(kb.Tab))
		at := look.Run(tab, chromedp.Evaluate[string](focused))
		if at == strings.ToLower(name) || strings.HasPrefix(at, strings.ToLower(name)+" ") {
			if !look.Run(tab, chromedp.Evaluate[bool](`((s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none")(getComputedStyle(document.activeElement || document.body))`)) {
				t.Errorf("%s: one does not see that %s has the focus", tab.Path(), name)
			}
			return
		}
		passed = append(passed, at)
	}
	t.Fatalf("%s: Tab does not lead to %s, but to %q", tab.Path(), name, passed)
}

func keyboardIsEnough(t *testing.T, s *stage) {
	o := s.office(t, "Keyboard Ltd")
	tab := s.browser.Visitor(t, look.View{})
	tab.Open(s.url + "/sign-in")
	keys := func(text string) { tab.Do(chromedp.KeyEvent(text)) }
	goTo(t, tab, "Email address")
	keys(o.owner.email)
	goTo(t, tab, "Password")
	keys(password + kb.Enter)
	tab.Arrives(o.root)
	goTo(t, tab, "Skip to the content")
	keys(kb.Enter)
	goTo(t, tab, "Add endpoint") // the first thing of the content, behind the navigation
	keys(kb.Enter)
	tab.Arrives(o.root + "/endpoints/new")
	goTo(t, tab, "URL")
	keys(o.customer.url + "/hooks" + kb.Enter)
	tab.Sees("Endpoint added")
	goTo(t, tab, "I've installed it: verify now")
	keys(kb.Enter)
	tab.Sees("The endpoint is ready")
	goTo(t, tab, "Open endpoint")
	keys(kb.Enter)
	tab.Sees("Pause")
	goTo(t, tab, "Pause")
	keys(kb.Enter)
	tab.Sees("Pause this endpoint?")
	keys(kb.Escape)
	tab.Until("the dialog is closed", `!document.querySelector("dialog:modal")`)
	if at := look.Run(tab, chromedp.Evaluate[string](focused)); at != "pause" {
		t.Errorf("the closed dialog gives the focus to %q", at)
	}
	goTo(t, tab, "Send test event")
	keys(kb.Enter)
	goTo(t, tab, "Send test event")
	keys(kb.Enter)
	tab.Sees(`"answered":200`)
	quiet(t, tab)
}

func scriptsAreNotNeeded(t *testing.T, s *stage) {
	o := s.office(t, "Plain Ltd")
	tab := s.browser.Visitor(t, look.View{NoScript: true})
	signIn(tab, s, o.owner.email)
	tab.Arrives(o.root)
	tab.Press("Add endpoint")
	tab.Fill("URL", o.customer.url+"/hooks")
	tab.Press("Add endpoint")
	tab.Sees("Endpoint added")
	tab.Press("I've installed it: verify now")
	tab.Sees("The verification request is being sent.") // the flow goes on on its page
	eventually(t, patience, "the endpoint is active", func() bool {
		tab.Open(s.url + tab.Path())
		return tab.Has("Send test event")
	})
	endpoint := strings.TrimSuffix(tab.Path(), "/created")
	tab.Press("Send test event")
	eventually(t, patience, "the answer is shown", func() bool {
		if tab.Has("Refresh") {
			tab.Press("Refresh")
		}
		return tab.Shows(`"answered":200`)
	})
	tab.Open(s.url + endpoint)
	tab.Press("Pause")
	tab.Sees("Pause this endpoint?")
	tab.Press("Pause")
	tab.Sees("Endpoint paused")
	o.emitted("order.paid", fmt.Sprintf(`{"n":%d}`, 1))
	o.await("held", 1)
	tab.Open(s.url + o.root + "/deliveries?status=held")
	tab.Sees("order.paid")
	tab.Open(s.url + endpoint)
	tab.Press("Resume")
	tab.Press("Resume")
	o.await("delivered", 2)
	if got := len(o.customer.requests()); got != 2 {
		t.Errorf("%d requests arrived", got)
	}
}
