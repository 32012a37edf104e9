package handlers

import (
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// separate keeps the console on a host of its own, where one is configured: it answers there alone, and of the rest only what
// operators need of it, the dashboards that they look at among it. Cookies are bound to the host that sets them, so that what
// members' pages do can't reach an operator's session.
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
		k.stranger(c, errNoRoute)
	}
}

// operatorsNeed reports whether a path beside the console's is served on its host: tenants' pages, for who looks at one; what pages
// load; and whether the process lives.
func operatorsNeed(path string) bool {
	for _, root := range []string{"/t", "/static", "/theme", "/favicon.ico", "/healthz", "/readyz"} {
		if below(root, path) {
			return true
		}
	}
	return false
}

func below(root, path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// onConsoleHost reports whether a request names the console's host. Its port counts where one is configured.
func (k *Kit) onConsoleHost(r *http.Request) bool {
	host := r.Host
	if _, _, err := net.SplitHostPort(k.consoleHost); err != nil {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	return strings.EqualFold(host, k.consoleHost)
}
