//go:build e2e

package look_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"posthorn/static"
	"posthorn/tools/gallery"
	"posthorn/tools/look"
	"posthorn/views/components"
)

// serveGallery serves the gallery as the program serves pages: with its content security policy. posted responds to its
// forms.
func serveGallery(t *testing.T, posted ...http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(static.Prefix, static.Serve)
	mux.HandleFunc(static.ThemePrefix, static.ServeTheme)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			for _, respond := range posted {
				respond(w, r)
			}
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'")
		shell := gallery.Shell()
		shell.Accent = r.URL.Query().Get("accent")
		if err := gallery.Page(shell).Render(components.WithNow(r.Context(), gallery.Now), w); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheGalleryFitsEveryScreenAndBreaksNoPolicy(t *testing.T) {
	t.Parallel()
	url, browser := serveGallery(t), look.Open(t)
	for _, v := range append(look.Views(), look.View{NoScript: true}, look.View{Width: 768}) {
		tab := browser.Tab(t, v)
		tab.Do(chromedp.Navigate(url))
		if !v.NoScript {
			if wide := tab.Overflow(); wide != "" {
				t.Errorf("%s: %s", v, wide)
			}
		}
		tab.Picture("gallery", v)
		if said := tab.Messages(); len(said) > 0 {
			t.Errorf("%s: the console says %s", v, strings.Join(said, "\n"))
		}
	}
}

func TestCellsThatLieOnEachOtherAreFound(t *testing.T) {
	t.Parallel()
	tab := look.Open(t).Tab(t, look.View{})
	row := `data:text/html,<table class=table><tr style="display:grid"><td data-label=Tenant style="grid-area:1/1">Acme<td data-label=Endpoint style="grid-area:%s">Shop`
	for place, want := range map[string]string{"1/1": "Tenant and Endpoint of a row overlap", "2/1": ""} {
		tab.Open(fmt.Sprintf(row, place))
		if got := tab.Overlap(); got != want {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
}

func TestDialogsOpenCloseAndGiveTheFocusBack(t *testing.T) {
	t.Parallel()
	url, browser := serveGallery(t), look.Open(t)
	tab := browser.Tab(t, look.View{})
	tab.Do(
		chromedp.Navigate(url+"?accent=c2410c"),
		chromedp.Click(".page-head-actions > button.btn-primary"), chromedp.WaitVisible("dialog#confirm"),
	)
	if !look.Run(tab, chromedp.Evaluate[bool](`document.getElementById("confirm").matches(":modal")`)) {
		t.Error("the dialog is not modal")
	}
	tab.Picture("dialog", look.View{})
	tab.Do(chromedp.KeyEvent("\x1b"), chromedp.WaitNotVisible("dialog#confirm"))
	if !look.Run(tab, chromedp.Evaluate[bool](`document.activeElement.getAttribute("commandfor") === "confirm"`)) {
		t.Error("the focus did not return to the button")
	}
	if said := tab.Messages(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

func TestChosenRowsAreCounted(t *testing.T) {
	t.Parallel()
	url, browser := serveGallery(t), look.Open(t)
	tab := browser.Tab(t, look.View{})
	tab.Do(chromedp.Navigate(url), chromedp.Click("#bulk [data-all]"))
	if got := look.Run(tab, chromedp.Text("#bulk [data-count]")); got != "4" {
		t.Errorf("all: %s", got)
	}
	tab.Do(chromedp.Click("#bulk input[name=id]"))
	if got := look.Run(tab, chromedp.Text("#bulk [data-count]")); got != "3" {
		t.Errorf("one less: %s", got)
	}
}

func TestAFormThatTakesLongSaysSoAndIsSentOnce(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	release := make(chan struct{})
	url := serveGallery(t, func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNoContent) // the browser stays on its page
	})
	respond := sync.OnceFunc(func() { close(release) })
	t.Cleanup(respond) // a server that closes waits for its requests
	tab := look.Open(t).Tab(t, look.View{})
	const button = `document.querySelector("#confirm .dialog-foot .btn:last-child")`
	tab.Do(chromedp.Navigate(url), chromedp.Click(".page-head-actions > button.btn-primary"), chromedp.WaitVisible("dialog#confirm"))
	label := look.Run(tab, chromedp.Evaluate[string](button+`.innerText.trim()`))
	look.Run(tab, chromedp.Evaluate[bool](button+`.click(), `+button+`.click(), true`))
	tab.Until("the button says that it works", button+`.matches("[aria-busy=true]") && `+button+`.innerText.trim() === "Working…"`)
	if n := sent.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	tab.Picture("busy", look.View{})
	respond()
	look.Run(tab, chromedp.Evaluate[bool](`window.dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}))`))
	if again := look.Run(tab, chromedp.Evaluate[string](button+`.innerText.trim()`)); again != label {
		t.Errorf("a page from the browser's cache says %q, want %q", again, label)
	}
}
