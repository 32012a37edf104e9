package handlers

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
)

func TestLongResponsesToGETAreCompressedForClientsThatAcceptIt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<p>webhooks</p>", 1000)
	page := func(c *Call) error { return c.Render(http.StatusOK, templ.Raw(long)) }
	open := Access{Public: true}
	k := New(Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	e := k.NewEngine()
	k.Mount(e, []Route{
		{Method: "GET", Path: "/page", Access: open, Handler: page},
		{Method: "POST", Path: "/page", Access: open, Handler: page},
		{Method: "GET", Path: "/short", Access: open, Handler: func(c *Call) error { return c.Render(http.StatusOK, templ.Raw("<p>webhooks</p>")) }},
		{Method: "GET", Path: "/secret", Access: open, Handler: func(c *Call) error { c.Uncompressed(); return page(c) }},
		{Method: "GET", Path: "/tagged", Access: open, Handler: func(c *Call) error { c.Header("ETag", `"1"`); return page(c) }},
		{
			Method: "GET",
			Path:   "/json",
			Access: open,
			Handler: func(c *Call) error {
				return c.Answer(http.StatusOK, map[string]string{"text": long})
			},
		},
		{Method: "GET", Path: "/stream", Access: open, Handler: func(c *Call) error { _, err := c.BeginStream(); return err }},
	})
	for _, one := range []struct {
		method, path, accepts string
		compressed            bool
	}{
		{"GET", "/page", "gzip, deflate, br", true},
		{"GET", "/page", "", false},
		{"GET", "/page", "gzip;q=0", false},
		{"POST", "/page", "gzip", false},
		{"GET", "/short", "gzip", false},
		{"GET", "/secret", "gzip", false},
		{"GET", "/tagged", "gzip", true},
		{"GET", "/tagged", "", false},
		{"GET", "/json", "gzip", true},
		{"GET", "/stream", "gzip", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), one.method, one.path, nil)
		r.Header.Set("Accept-Encoding", one.accepts)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		name, h, size := one.method+" "+one.path+" "+one.accepts, w.Header(), w.Body.Len()
		if got := h.Get("Content-Encoding") == "gzip"; got != one.compressed || w.Code != http.StatusOK {
			t.Errorf("%s: %d, compressed %t, want %t", name, w.Code, got, one.compressed)
			continue
		}
		if n := h.Get("Content-Length"); n != "" && n != strconv.Itoa(size) {
			t.Errorf("%s: Content-Length %s of %d bytes", name, n, size)
		}
		varies := slices.Contains(h.Values("Vary"), "Accept-Encoding")
		if either := one.method == "GET" && one.path != "/short" && one.path != "/secret" && one.path != "/stream"; varies != either {
			t.Errorf("%s: Vary %v", name, h.Values("Vary"))
		}
		if tag := h.Get("ETag"); one.path == "/tagged" && strings.HasPrefix(tag, "W/") != one.compressed {
			t.Errorf("%s: ETag %s", name, tag)
		}
		if !one.compressed {
			continue
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text, err := io.ReadAll(z); err != nil || len(text) < len(long) || size > len(long)/10 {
			t.Errorf("%s: %d bytes hold %d, %v", name, size, len(text), err)
		}
	}
}
