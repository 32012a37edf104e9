//go:build e2e

package auth_test

import (
	"net/http"

	"posthorn/static"
)

// withStatic serves what pages load beside them.
func withStatic(pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(static.Prefix, static.Serve)
	mux.HandleFunc(static.ThemePrefix, static.ServeTheme)
	mux.Handle("/", pages)
	return mux
}
