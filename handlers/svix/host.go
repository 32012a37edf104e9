package svix

import (
	"net/http"
	"strings"

	"posthorn/handlers"
)

// OnHost serves Svix's API without the path /svix on a host of its own, for libraries that take only the host of the
// server's address. Nothing else is there, except for health checks. Without a host it is next itself.
func OnHost(host string, next http.Handler) http.Handler {
	if host == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if handlers.NamesHost(r, host) && !strings.HasPrefix(path, prefix+"/") && path != "/healthz" && path != "/readyz" {
			below, at := *r, *r.URL
			at.Path = prefix + path
			if at.RawPath != "" {
				at.RawPath = prefix + at.RawPath
			}
			below.URL, below.RequestURI = &at, prefix+r.RequestURI
			r = &below
		}
		next.ServeHTTP(w, r)
	})
}
