//go:build e2e

// Package look drives a browser in tests: it opens pages at common widths and in both themes, takes their pictures,
// and finds faults that only a browser shows.
package look

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browsers are the names of browsers to search for, the smallest first.
var browsers = []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find returns the path of a browser: POSTHORN_BROWSER, or one on the PATH. Empty if there is none.
func Find() string {
	if named := os.Getenv("POSTHORN_BROWSER"); named != "" {
		return named
	}
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Browser is a running browser.
type Browser struct{ ctx context.Context }

// missing says how to get a browser.
const missing = "no browser found: install one (apt-get install chromium-headless-shell fonts-dejavu-core), or name it in POSTHORN_BROWSER"

// Open starts a browser that ends with the test. Without an installed browser the test says what to install: it is
// skipped on a developer's machine, and fails in continuous integration. Flags are the browser's own, by name.
func Open(t testing.TB, flags ...map[string]any) *Browser {
	t.Helper()
	path := Find()
	switch {
	case path != "":
	case os.Getenv("CI") != "":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(60*time.Second))
	for _, more := range flags {
		for name, value := range more {
			options = append(options, chromedp.Flag(name, value))
		}
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	first, cancelFirst := chromedp.NewContext(ctx)
	t.Cleanup(cancelFirst)
	if err := chromedp.Do(first, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("the browser %s does not start: %v", path, err)
	}
	return &Browser{ctx: first}
}

// View is the width and theme of a page.
type View struct {
	Width    int64 // 1280 unless set
	Dark     bool
	NoScript bool
}

func (v View) String() string {
	text := fmt.Sprintf("%d", v.width())
	if v.Dark {
		text += "-dark"
	}
	if v.NoScript {
		text += "-plain"
	}
	return text
}

func (v View) width() int64 {
	if v.Width == 0 {
		return 1280
	}
	return v.Width
}

// Views are the views in which every page is checked.
func Views() []View {
	return []View{{}, {Dark: true}, {Width: 360}, {Width: 360, Dark: true}}
}

// Tab is one page that is open. Its context takes chromedp's actions.
type Tab struct {
	context.Context
	t testing.TB

	mu       sync.Mutex
	messages []string
}

// tabLife is how long a tab can be used: a test that hangs ends.
const tabLife = 15 * time.Minute

// Tab opens an empty tab. The tabs of one browser share its cookies.
func (b *Browser) Tab(t testing.TB, v View) *Tab { return b.open(t, v) }

// Visitor opens an empty tab with separate cookies, like another person's browser.
func (b *Browser) Visitor(t testing.TB, v View) *Tab {
	return b.open(t, v, chromedp.WithNewBrowserContext())
}

func (b *Browser) open(t testing.TB, v View, options ...chromedp.ContextOption) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, options...)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, tabLife)
	t.Cleanup(stop)
	tab := &Tab{Context: ctx, t: t}
	t.Cleanup(tab.explain)
	tab.Show(v)
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript})
		return err
	}))
	listening := chromedp.Console(ctx)
	go func() {
		for m, err := range listening {
			if err != nil {
				return
			}
			switch m.Type {
			case "error", "warning", chromedp.ConsoleException:
				tab.mu.Lock()
				tab.messages = append(tab.messages, string(m.Type)+": "+m.Text)
				tab.mu.Unlock()
			}
		}
	}()
	return tab
}

// explain says what the page showed when the test failed.
func (tab *Tab) explain() {
	if tab.t.Failed() {
		text, err := chromedp.Run(tab, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.replace(/\n\s*\n/g, "\n")`))
		tab.t.Logf("the page at last (%v): %s", err, text)
	}
}

// Show changes the width and the theme of the open page.
func (tab *Tab) Show(v View) {
	tab.t.Helper()
	mode := "light"
	if v.Dark {
		mode = "dark"
	}
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: mode}, {Name: "prefers-reduced-motion", Value: "reduce"}}
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}), chromedp.EmulateViewport(v.width(), 800))
}

// SetCookies gives the tab's browser cookies for an address, as a sign-in elsewhere received them.
func (tab *Tab) SetCookies(url string, cookies []*http.Cookie) {
	tab.t.Helper()
	hidden := true // from scripts, as the server makes them
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		for _, c := range cookies {
			if _, err := chromedp.Call(ctx, network.SetCookie, network.SetCookieParams{
				Name:     c.Name,
				Value:    c.Value,
				URL:      url,
				HTTPOnly: &hidden,
			}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Do runs actions, and ends the test if one fails.
func (tab *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	if err := chromedp.Do(tab, actions...); err != nil {
		tab.t.Fatalf("in the browser: %v", err)
	}
}

// Run runs an action that gives something.
func Run[T any](tab *Tab, a chromedp.Action[T]) T {
	tab.t.Helper()
	out, err := chromedp.Run(tab, a)
	if err != nil {
		tab.t.Fatalf("in the browser: %v", err)
	}
	return out
}

// Messages are the errors and warnings of the tab's console so far, including those of the content security policy.
func (tab *Tab) Messages() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string(nil), tab.messages...)
}

// Overflow names elements that are wider than the page, except for those that scroll by themselves. It is empty if
// the page fits.
func (tab *Tab) Overflow() string {
	tab.t.Helper()
	return Run(tab, chromedp.Evaluate[string](`(() => {
		const wide = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= wide) return "";
		for (const el of document.querySelectorAll("body *")) {
			const box = el.getBoundingClientRect();
			if (box.right > wide + 1 && box.width > 0 && !el.closest("svg") && !el.closest(".sr-only")) {
				return el.tagName + "." + el.className + " ends at " + Math.round(box.right) + " of " + wide;
			}
		}
		return "the page is " + document.documentElement.scrollWidth + " wide";
	})()`))
}

// CutOff names tables that are wider than their room, so that a row's end can be seen only by scrolling sideways. It is
// empty if all fit, also when each time in them is as wide as times get within a day.
func (tab *Tab) CutOff() string {
	tab.t.Helper()
	return Run(tab, chromedp.Evaluate[string](`(() => {
		const times = [...document.querySelectorAll(".table-frame time[data-relative]")].map((e) => [e, e.textContent]);
		for (const [e] of times) e.textContent = "59 min ago";
		const wide = [...document.querySelectorAll(".table-frame")].filter((e) => e.scrollWidth > e.clientWidth + 1)
			.map((e) => e.getAttribute("aria-label") + " is " + (e.scrollWidth - e.clientWidth) + " px too wide").join("; ");
		for (const [e, text] of times) e.textContent = text;
		return wide;
	})()`))
}

// Overlap names cells of one row that lie on each other. It is empty if each has its own place. Cells that are out of
// the flow, as a card's menu in its corner, are left out.
func (tab *Tab) Overlap() string {
	tab.t.Helper()
	return Run(tab, chromedp.Evaluate[string](`[...document.querySelectorAll(".table tr")].flatMap((row) => {
		const cells = [...row.cells].map((e) => [e, e.getBoundingClientRect()])
			.filter(([e, box]) => box.width > 1 && box.height > 1 && getComputedStyle(e).position !== "absolute");
		return cells.flatMap(([a, p], i) => cells.slice(i + 1)
			.filter(([, q]) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 1)
			.map(([b]) => a.dataset.label + " and " + b.dataset.label + " of a row overlap"));
	}).filter((text, i, all) => all.indexOf(text) === i).join("; ")`))
}

// Misfit is what Overflow, CutOff and Overlap say.
func (tab *Tab) Misfit() string {
	tab.t.Helper()
	return tab.Overflow() + tab.CutOff() + tab.Overlap()
}

// Pictures is whether pictures are taken.
func Pictures() bool { return os.Getenv("POSTHORN_PICTURES") != "" }

// Picture takes a picture of the whole page. It is stored in the folder that POSTHORN_PICTURES names, and nowhere
// without it.
func (tab *Tab) Picture(name string, v View) {
	tab.t.Helper()
	folder := os.Getenv("POSTHORN_PICTURES")
	if folder == "" {
		return
	}
	image := Run(tab, chromedp.FullScreenshot(100))
	path := filepath.Join(folder, strings.ReplaceAll(name, "/", "_")+"-"+v.String()+".png")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		tab.t.Fatal(err)
	}
}
