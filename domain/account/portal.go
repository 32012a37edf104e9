package account

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/fault"
)

// PortalSession is how long a portal session lives unless who makes its link says so.
const PortalSession = 24 * time.Hour

// PortalLink is a request for a link into a tenant's dashboard.
type PortalLink struct {
	Role           access.Role
	Accent         string // a colour as #rrggbb, or empty
	ReturnURL      string // where "back" leads, or empty
	SessionSeconds int
	Development    bool // Posthorn itself is on this machine, without https
}

var colour = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// maxReturnURL is in bytes.
const maxReturnURL = 2000

// Wrong lists what can't be asked for: role_unknown, accent_invalid, return_url_invalid, session_seconds_range.
func (l PortalLink) Wrong() (wrong []fault.Field) {
	add := func(field, code, detail string) {
		wrong = append(wrong, fault.Field{Name: field, Code: code, Detail: detail})
	}
	if !l.Role.MayComeByPortal() {
		add("role", "role_unknown", "Use admin, developer, or viewer. A link can't make anyone an owner.")
	}
	if l.Accent != "" && !colour.MatchString(l.Accent) {
		add("accent", "accent_invalid", "Enter a color as #rrggbb.")
	}
	if l.ReturnURL != "" && !isWebAddress(l.ReturnURL, l.Development) {
		add("return_url", "return_url_invalid", "Enter a complete URL with https, such as https://app.example.com/settings.")
	}
	if least, most := int(portalMin.Seconds()), int(portalMax.Seconds()); l.SessionSeconds < least ||
		l.SessionSeconds > most {
		add("session_seconds", "session_seconds_range", fmt.Sprintf("session_seconds must be from %d to %d (one hour to seven days).", least, most))
	}
	return wrong
}

// isWebAddress asks for https, but for this machine in development: the page that a portal leads back to is trusted.
func isWebAddress(text string, development bool) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || len(text) > maxReturnURL {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && development && isLoopback(u.Hostname())
}

// OnLoopback reports whether an address is of this machine, without https: Posthorn is being developed with.
func OnLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}
