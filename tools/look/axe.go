//go:build e2e

package look

import (
	_ "embed"
	"encoding/json"

	"github.com/chromedp/chromedp"
)

// axeSource is axe-core, which checks a page against WCAG and good practice. See axe/VENDORED.md.
//
//go:embed axe/axe.min.js
var axeSource string

// Contrast is the only rule that depends on the theme.
const Contrast = "color-contrast"

// Violations are what axe-core finds wrong with the page, each with its place; of the named rules alone, if any are
// named.
func (tab *Tab) Violations(rules ...string) []string {
	tab.t.Helper()
	options := map[string]any{"resultTypes": []string{"violations"}}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	text, err := json.Marshal(options)
	if err != nil {
		tab.t.Fatal(err)
	}
	if !Run(tab, chromedp.Evaluate[bool](`typeof axe === "object"`)) {
		Run(tab, chromedp.Evaluate[bool](axeSource+";true"))
	}
	return Run(tab, chromedp.Evaluate[[]string](`axe.run(document, `+string(text)+`).then((found) => found.violations.map((v) =>
		v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " (" + n.failureSummary.replace(/\s+/g, " ") + ")").join("; ")))`, chromedp.EvalAwaitPromise))
}
