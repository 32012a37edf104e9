//go:build e2e

package look

import (
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// patience bounds how long a test waits for something on a page.
const patience = 45 * time.Second

// Sees waits until the page shows a text, ignoring case and line breaks.
func (tab *Tab) Sees(text string) {
	tab.t.Helper()
	tab.Until("the page shows "+text, fmt.Sprintf(`%s.includes(%q.toLowerCase())`, wording("document.body"), text))
}

// Shows reports whether the page shows a text now.
func (tab *Tab) Shows(text string) bool {
	tab.t.Helper()
	return Run(tab, chromedp.Evaluate[bool](fmt.Sprintf(`%s.includes(%q.toLowerCase())`, wording("document.body"), text)))
}

// wording is an expression: the text of an element in lower case with single spaces.
func wording(element string) string {
	return `(` + element + `?.innerText ?? "")` + `.toLowerCase().replace(/\s+/g, " ").trim()`
}

// Until waits until an expression is true of the page, also while pages change.
func (tab *Tab) Until(what, expression string) {
	tab.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		var yes bool
		if yes, err = chromedp.Run(tab, chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+expression+`)`)); yes && err == nil {
			return
		}
	}
	tab.t.Fatalf("not within %v: %s (%v)", patience, what, err)
}

// find is an expression: the first visible element with a name, as people read it or as screen readers say it.
func find(selector, name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.checkVisibility({visibilityProperty: true}) && !e.closest("[inert]") && (!document.querySelector("dialog:modal") || e.closest("dialog:modal")) &&
		(%s === %q.toLowerCase() || (e.getAttribute("aria-label") || "").toLowerCase() === %q.toLowerCase()))`, selector, wording("e"), name, name)
}

const pressable = `button, a, summary, [role="button"], label`

// Has reports whether the page shows something to press under a name.
func (tab *Tab) Has(name string) bool {
	tab.t.Helper()
	return Run(tab, chromedp.Evaluate[bool](`!!`+find(pressable, name)))
}

// Press clicks the element with a name: a button, a link, an option.
func (tab *Tab) Press(name string) {
	tab.t.Helper()
	tab.Until("there is "+name+" to press", find(pressable, name))
	tab.Do(chromedp.Click(chromedp.JSPath(find(pressable, name))))
}

// field is an expression: the field with a label.
func field(label string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("label")].find((e) => e.control && e.control.checkVisibility() && (%s === %q.toLowerCase() || %s.startsWith(%q.toLowerCase())))?.control`,
		wording("e"), label, wording("e"), label+" ")
}

// Fill replaces the text of the field with a label.
func (tab *Tab) Fill(label, text string) {
	tab.t.Helper()
	tab.Until("there is a field "+label, field(label))
	at := chromedp.JSPath(field(label))
	if Run(tab, chromedp.Value(at)) != "" {
		tab.Do(chromedp.Clear(at))
	}
	Type(tab, at, text)
}

// Type types a text into an element, key by key. chromedp's own action for it reads the element's attributes while
// the browser's events change them, which the race detector reports.
func Type[S chromedp.Selectable](tab *Tab, at S, text string) {
	tab.t.Helper()
	tab.Do(chromedp.Focus(at, chromedp.NodeVisible), chromedp.KeyEvent(text))
}

// Choose selects an option of the select with a label, as a person would.
func (tab *Tab) Choose(label, option string) {
	tab.t.Helper()
	tab.Until("there is a choice "+label, field(label))
	done := Run(tab, chromedp.Evaluate[bool](fmt.Sprintf(`((select) => {
		const option = [...select.options].find((o) => o.text.trim() === %q);
		if (!option) return false;
		select.value = option.value;
		select.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	})(%s)`, option, field(label))))
	if !done {
		tab.t.Fatalf("%s can't be chosen of %s", option, label)
	}
}

// Open goes to an address.
func (tab *Tab) Open(url string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(url))
}

// Path is the tab's path, with the query.
func (tab *Tab) Path() string {
	tab.t.Helper()
	return Run(tab, chromedp.Evaluate[string](`location.pathname + location.search`))
}

// Arrives waits until the tab is at an address that starts so.
func (tab *Tab) Arrives(path string) {
	tab.t.Helper()
	tab.Until("the page is "+path, fmt.Sprintf(`location.pathname.startsWith(%q)`, path))
}

// Complaints are the errors of the console, except for responses that the test expects.
func (tab *Tab) Complaints() []string {
	var all []string
	for _, said := range tab.Messages() {
		if !strings.Contains(said, "status of 4") {
			all = append(all, said)
		}
	}
	return all
}
