//go:build e2e && unix

package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"

	"posthorn/tools/look"
)

// TestListsChangeInPlaceAndGoBack: filters and tabs change the page's content and its address, and not the page. A mark
// that a script leaves in the window is lost when a page is loaded.
func TestListsChangeInPlaceAndGoBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := s.office(t, "Placid Ltd")
	o.endpoint("/hooks", nil)
	o.emitted("order.paid", `{}`)
	o.await("delivered", 1)
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + o.root + "/deliveries")
	tab.Sees("order.paid")
	mark := func() { look.Run(tab, chromedp.Evaluate[bool](`window.kept = true`)) }
	mark()
	tab.Choose("Status", "Failed")
	tab.Until("the filter is in the address", `window.kept && location.search.includes("status=failed") && document.title.includes("Deliveries")`)
	tab.Until("the filtered list has nothing", `window.kept && !document.querySelector("#deliveries-list").innerText.includes("order.paid")`)
	look.Run(tab, chromedp.Evaluate[bool](`(history.back(), true)`))
	tab.Until("the list is as it was", `window.kept && !location.search && document.querySelector("select[name=status]").value === "" &&
		document.querySelector("#deliveries-list").innerText.includes("order.paid")`)

	// A change is heard of without a question every five seconds.
	o.emitted("order.canceled", `{}`)
	tab.Until("the page says that there is something new", `window.kept && /1 new|order\.canceled/.test(document.querySelector("#deliveries-list").innerText)`)

	tab.Open(s.url + o.root + "/endpoints")
	look.Run(tab, chromedp.Evaluate[bool](`(document.querySelector("#main tbody a").click(), true)`))
	tab.Until("the endpoint's page is there", `document.querySelector(".tabs")`)
	mark()
	tab.Press("Secrets")
	tab.Until("its secrets are there", `window.kept && location.pathname.endsWith("/secrets") && document.querySelector(".tabs [aria-current]").innerText.includes("Secrets")`)
	if found := tab.Complaints(); len(found) > 0 {
		t.Errorf("the console says %q", found)
	}
}

// TestAnOperationCanBeTried sends a request of the reference with a key, and keeps the key nowhere.
func TestAnOperationCanBeTried(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := s.office(t, "Trying Ltd")
	tab := s.visitor(t, "").tab(look.View{})
	tab.Open(s.url + "/docs/api/events/emitEvent")
	tab.Fill("API key", o.key)
	tab.Press("Send request")
	tab.Sees("202 Accepted")
	tab.Sees(`-H "Authorization: Bearer $POSTHORN_API_KEY"`)
	tab.Until("the key is in the field alone", `!document.body.innerHTML.includes(`+"`"+o.key+"`"+`) && !JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href]).includes(`+"`"+o.key+"`"+`)`)
	if found := tab.Complaints(); len(found) > 0 {
		t.Errorf("the console says %q", found)
	}
}
