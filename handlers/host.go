package handlers

import (
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// separate restricts the console to its own host, if one is configured. The console responds on that host alone. That
// host serves little else: only what operators need, including the dashboards that they view. Cookies are bound to the
// host that sets them, so nothing on members' pages can reach an operator's session.
func (k *Kit) separate(c *gin.Context) {
	if k.consoleHost == "" {
		return
	}
	path, there := c.Request.URL.Path, k.onConsoleHost(c.Request)
	switch console := below("/console", path); {
	case there && path == "/":
		c.Redirect(http.StatusSeeOther, "/console")
		c.Abort()
	case there != console && !(there && operatorsNeed(path)):
		k.rejectAnonymous(c, errNoRoute)
	}
}

// operatorsNeed reports whether a path outside the console is served on its host: tenants' pages, for operators who
// view one; static files; and health checks.
func operatorsNeed(path string) bool {
	for _, root := range []string{"/t", "/static", "/theme", "/favicon.ico", "/healthz", "/readyz"} {
		if below(root, path) {
			return true
		}
	}
	return false
}

func below(root, path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

func (k *Kit) onConsoleHost(r *http.Request) bool { return NamesHost(r, k.consoleHost) }

// NamesHost reports whether a request names a configured host. Its port counts if one is configured.
func NamesHost(r *http.Request, configured string) bool {
	host := r.Host
	if _, _, err := net.SplitHostPort(configured); err != nil {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	return strings.EqualFold(host, configured)
}
