package layout

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

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

// OutOfFrame are the attributes of a link to a page that a provider's frame can't show: it opens in a tab of its own.
func OutOfFrame(portal bool) templ.Attributes {
	if !portal {
		return nil
	}
	return templ.Attributes{"target": "_blank", "rel": "noopener"}
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
	if r.Back == "" && !r.Portal {
		return "/"
	}
	return r.Back
}

// backKind is that of a button: the first, unless another form fixes the error.
func (r Refusal) backKind() components.Kind {
	if r.Act != nil {
		return components.Secondary
	}
	return components.Primary
}

// backAttrs lead a portal's visitor out of the frame, back to the provider's product.
func (r Refusal) backAttrs() templ.Attributes {
	if !r.Ended {
		return nil
	}
	return templ.Attributes{"target": "_top"}
}

func (r Refusal) backLabel() string {
	if r.BackLabel == "" {
		return "Back to the dashboard"
	}
	return r.BackLabel
}
