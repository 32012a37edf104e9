package handlers

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func chooseTheme(form, referer string, htmx bool) *httptest.ResponseRecorder {
	k := New(Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	e := k.NewEngine()
	k.Mount(e, []Route{{Method: "POST", Path: "/theme", Access: Access{Public: true}, MaxBody: 1 << 10, Handler: ChooseTheme}})
	r := httptest.NewRequest("POST", "http://posthorn.example/theme", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Referer", referer)
	if htmx {
		r.Header.Set("HX-Request", "true")
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestTheChosenThemeIsKeptAndRead(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{"light": "light", "dark": "dark", "system": ""} {
		w := chooseTheme("theme="+choice, "", false)
		if w.Code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", choice, w.Code, w.Body)
		}
		next := httptest.NewRequest("GET", "/", nil)
		for _, c := range w.Result().Cookies() {
			if c.MaxAge >= 0 {
				next.AddCookie(c)
			}
		}
		if got := Theme(next); got != want {
			t.Errorf("%s: %q", choice, got)
		}
	}
	for _, form := range []string{"", "theme=", "theme=%22%3E", "theme=" + strings.Repeat("x", 2000)} {
		if w := chooseTheme(form, "", false); w.Code/100 != 4 || len(w.Result().Cookies()) > 0 {
			t.Errorf("%.20s: %d", form, w.Code)
		}
	}
	forged := httptest.NewRequest("GET", "/", nil)
	forged.AddCookie(&http.Cookie{Name: themeCookie, Value: "x onload"})
	if got := Theme(forged); got != "" {
		t.Errorf("forged: %q", got)
	}
}

func TestAChoiceReturnsToItsOwnPageAlone(t *testing.T) {
	t.Parallel()
	for referer, want := range map[string]string{
		"":                                       "/",
		"http://posthorn.example/t/x?a=b#c":      "/t/x?a=b",
		"http://evil.example/t/x":                "/",
		"http://posthorn.example//evil.example":  "/",
		"http://posthorn.example/\\evil.example": "/",
		"javascript:alert(1)":                    "/",
		"%":                                      "/",
	} {
		if got := chooseTheme("theme=dark", referer, false).Header().Get("Location"); got != want {
			t.Errorf("%q: %q, want %q", referer, got, want)
		}
	}
	if w := chooseTheme("theme=dark", "", true); w.Code != http.StatusNoContent {
		t.Errorf("a script: %d", w.Code)
	}
}
