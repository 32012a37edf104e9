package layout

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"posthorn/views/components"
	"posthorn/views/icons"
)

// initial is the letter of a person's avatar.
func initial(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.TrimSpace(name))
	if r == utf8.RuneError {
		return "?"
	}
	return string(unicode.ToUpper(r))
}

func (s Shell) theme() string {
	if s.Theme == "" {
		return "system"
	}
	return s.Theme
}

func (s Shell) accountMenu() []components.MenuItem {
	if s.Operator {
		return []components.MenuItem{{Label: "Account", Href: "/console/account", Icon: icons.User}}
	}
	items := []components.MenuItem{{Label: "Account", Href: "/account", Icon: icons.User}, {Label: "All tenants", Href: "/tenants", Icon: icons.Building}}
	if s.Status {
		items = append(items, components.MenuItem{Label: "Platform status", Href: "/status", Icon: icons.Pulse})
	}
	return items
}

// signOut is the address that ends the session; operators have their own.
func (s Shell) signOut() string {
	if s.Operator {
		return "/console/sign-out"
	}
	return "/sign-out"
}

func (r Refusal) title() string {
	if r.Title != "" {
		return r.Title
	}
	if title := refusalTitles[r.Status]; title != "" {
		return title
	}
	return http.StatusText(r.Status)
}

var refusalTitles = map[int]string{
	http.StatusBadRequest:         "Invalid request",
	http.StatusForbidden:          "You don't have permission",
	http.StatusNotFound:           "Page not found",
	http.StatusConflict:           "Something changed in the meantime",
	http.StatusTooManyRequests:    "Too many requests",
	http.StatusServiceUnavailable: "Temporarily unavailable",
}

func (r Refusal) back() string {
	if r.Back == "" {
		return "/"
	}
	return r.Back
}

func (r Refusal) backLabel() string {
	if r.BackLabel == "" {
		return "Back to the dashboard"
	}
	return r.BackLabel
}
