package handlers

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTheConsoleAnswersOnItsOwnHostAlone(t *testing.T) {
	t.Parallel()
	k := New(Config{Log: slog.New(slog.DiscardHandler), Now: time.Now, BaseURL: "https://hooks.example.com", ConsoleHost: "ops.example.com"})
	e := k.NewEngine()
	ok := func(c *Call) error { return c.AnswerNothing() }
	var routes []Route
	for _, path := range []string{"/console", "/console/tenants", "/t/:tenant_id/", "/sign-in", "/api/v1/events", "/static/x", "/healthz"} {
		routes = append(
			routes,
			Route{Method: http.MethodGet, Path: path, Access: Access{Public: true}, Handler: ok},
			Route{Method: http.MethodPost, Path: path, Access: Access{Public: true}, Handler: ok},
		)
	}
	k.Mount(e, routes)
	ask := func(method, host, path string, header ...string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, "https://"+host+path, strings.NewReader(""))
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res := httptest.NewRecorder()
		e.ServeHTTP(res, r)
		return res.Code
	}
	for path, want := range map[string][2]int{ // on the public host, on the console's
		"/console":                           {404, 204},
		"/console/tenants":                   {404, 204},
		"/t/ten_00000000000000000000000000/": {204, 204},
		"/sign-in":                           {204, 404},
		"/api/v1/events":                     {204, 404},
		"/static/x":                          {204, 204},
		"/healthz":                           {204, 204},
		"/consoles":                          {404, 404},
		"/":                                  {404, 303},
	} {
		for i, host := range []string{"hooks.example.com", "ops.example.com"} {
			if got := ask("GET", host, path); got != want[i] {
				t.Errorf("%s on %s: %d, want %d", path, host, got, want[i])
			}
		}
	}
	for _, host := range []string{"OPS.example.com", "ops.example.com:8443"} {
		if got := ask("GET", host, "/console"); got != 204 {
			t.Errorf("%s: %d", host, got)
		}
	}
	for origin, want := range map[string]int{"https://ops.example.com": 204, "https://hooks.example.com": 403, "https://evil.example.com": 403} {
		if got := ask("POST", "ops.example.com", "/console/tenants", "Origin", origin, "Sec-Fetch-Site", map[bool]string{true: "same-origin", false: "same-site"}[want == 204]); got != want {
			t.Errorf("a form from %s to the console: %d", origin, got)
		}
	}
	if got := ask("POST", "hooks.example.com", "/sign-in", "Origin", "https://hooks.example.com"); got != 204 {
		t.Errorf("a form of the public host: %d", got)
	}
}
