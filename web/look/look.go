//go:build e2e

// Package look drives a browser in tests: it opens pages at the widths and in the themes that people have, takes their pictures,
// and finds what is wrong with them only there.
package look

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browsers are the names under which a browser is looked for, the smallest first.
var browsers = []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find gives the path of a browser: POSTHORN_BROWSER, or one on the PATH. Empty where there is none.
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

// Browser is a running one.
type Browser struct{ ctx context.Context }

// Open starts a browser that ends with the test. Where none is installed the test is skipped, and says what to install.
func Open(t testing.TB) *Browser {
	t.Helper()
	path := Find()
	if path == "" {
		t.Skip("no browser found: install one (apt-get install chromium-headless-shell), or name it in POSTHORN_BROWSER")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(60*time.Second))
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

// View is how a page is looked at.
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

// Views are those in which every page is looked at.
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

// Tab opens an empty tab. It has no more than two minutes.
func (b *Browser) Tab(t testing.TB, v View) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	tab := &Tab{Context: ctx, t: t}
	mode := "light"
	if v.Dark {
		mode = "dark"
	}
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: mode}, {Name: "prefers-reduced-motion", Value: "reduce"}}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript})
		return err
	}), chromedp.EmulateViewport(v.width(), 800))
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

// Do runs actions, and ends the test where one fails.
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

// Messages are the errors and warnings of the tab's console so far, the refusals of the content security policy among them.
func (tab *Tab) Messages() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string(nil), tab.messages...)
}

// Overflow names what is wider than the page, whatever scrolls by itself left out; empty where the page fits.
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

// Picture takes the whole page. It is kept in the folder that POSTHORN_PICTURES names, and nowhere without it.
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
