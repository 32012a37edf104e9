package main

import (
	"net/http"
	"testing"
)

// TestTheSvixAPIIsThereUnlessItIsOff asks for it on both kinds of servers.
func TestTheSvixAPIIsThereUnlessItIsOff(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]int{"": http.StatusNoContent, "POSTHORN_SVIX_API=on": http.StatusNoContent, "POSTHORN_SVIX_API=off": http.StatusNotFound} {
		environ := newDatabase(t)
		if setting != "" {
			environ = append(environ, setting)
		}
		p := program(t, environ, Parts{Web: true})
		for _, path := range []string{"/svix/api/v1/health", "/svix/api/v1/health/ping"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _ = res.Body.Close(); res.StatusCode != want {
				t.Errorf("%q: GET %s is answered %d, want %d", setting, path, res.StatusCode, want)
			}
		}
	}
}
