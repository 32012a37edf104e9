//go:build e2e && unix

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"posthorn/tools/look"
)

// maxWire is how many bytes a page can take over the wire, with its style sheet and scripts.
const maxWire = 60_000

var docsLink = regexp.MustCompile(`href="(/docs[^"#]*)`)

// documentation is every page of the documentation: what links lead to, from the landing page on.
func documentation(t *testing.T, v *visitor) (all []string) {
	t.Helper()
	all = []string{"/docs"}
	for at := 0; at < len(all); at++ {
		status, header, body := v.page(all[at])
		if status != http.StatusOK {
			t.Errorf("%s: %d", all[at], status)
		}
		if !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range docsLink.FindAllStringSubmatch(body, -1) {
			if !strings.HasSuffix(m[1], ".md") && !strings.HasSuffix(m[1], ".json") && !slices.Contains(all, m[1]) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// alike are pages of one template: errors, decisions, and operations by their group. The first of each kind is looked
// at in every way; all are weighed.
var alike = regexp.MustCompile(`^/docs/(errors|adr|api/[^/]+)/`)

// TestEveryDocsPageHoldsUpInABrowser: guides, operations pages, decisions, and the reference with every operation.
// axe-core finds nothing wrong in either theme, a phone's screen holds them, and no page is heavy.
func TestEveryDocsPageHoldsUpInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	nobody := s.visitor(t, "")
	var shown []string
	kinds, whole := map[string]bool{}, map[string]bool{}
	heaviest, where := 0, ""
	pages := documentation(t, nobody)
	for _, path := range pages {
		if n := wire(t, stop{path, nobody}); n > heaviest {
			heaviest, where = n, path
		}
		kind := alike.FindString(path)
		whole[path] = kind == "" || !kinds[kind]
		if whole[path] || kind != "/docs/errors/" {
			shown = append(shown, path)
		}
		kinds[kind] = true
	}
	t.Logf("%d pages, %d in the browser; the heaviest is %s: %d bytes with its style sheet and scripts", len(pages), len(shown), where, heaviest)
	if heaviest > maxWire {
		t.Errorf("%s has %d bytes over the wire, want %d at most", where, heaviest, maxWire)
	}
	if len(shown) < 120 {
		t.Errorf("only %d pages were found", len(shown))
	}
	const lanes = 3
	for lane := range lanes {
		t.Run(fmt.Sprintf("part %d", lane+1), func(t *testing.T) {
			t.Parallel()
			for part := range slices.Chunk(every(shown, lanes, lane), 12) { // a tab lives for a few minutes
				tab := nobody.tab(look.View{})
				for _, path := range part {
					inspectDocs(t, tab, s.url, path, whole[path])
				}
			}
		})
	}
}

// every takes each n-th of a list, beginning with one.
func every(all []string, n, from int) (some []string) {
	for i := from; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// inspectDocs opens a page of the documentation in both themes, wide and narrow; a page that is like another one only
// on a phone.
func inspectDocs(t *testing.T, tab *look.Tab, url, path string, whole bool) {
	t.Helper()
	said := len(tab.Messages())
	views := look.Views()
	if !whole {
		views = []look.View{{Width: 360}}
	}
	tab.Show(views[0])
	tab.Open(url + path)
	for _, v := range views {
		tab.Show(v)
		tab.Picture(strings.TrimPrefix(path, "/"), v)
		if v.Width == 360 && v.Dark {
			continue // the same colors as the wide page, and the same widths as the light one
		}
		if v.Width == 360 {
			if wide := tab.Overflow(); wide != "" {
				t.Errorf("%s, %s: %s", path, v, wide)
			}
		}
		var rules []string
		switch {
		case v.Dark:
			rules = []string{look.Contrast}
		case v.Width == 360:
			rules = []string{"scrollable-region-focusable"}
		}
		for _, wrong := range tab.Violations(rules...) {
			t.Errorf("%s, %s: %s", path, v, wrong)
		}
	}
	if !look.Run(tab, chromedp.Evaluate[bool](`[...document.querySelectorAll(".docs-toc a, .docs-toc-fold a")].every((a) => document.getElementById(decodeURIComponent(a.hash.slice(1))))`)) {
		t.Errorf("%s: an entry of the table of contents leads nowhere", path)
	}
	for _, message := range tab.Messages()[said:] {
		t.Errorf("%s: the console says %s", path, message)
	}
}
