package handlers

import (
	"net/http"
	"net/url"

	"posthorn/domain/fault"
)

// themeCookie stores a browser's choice of light or dark. Without it the system's setting applies. It says nothing
// about the person.
const themeCookie = "posthorn_theme"

// Theme is the browser's choice: "light", "dark", or empty for the system's setting.
func Theme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// ChooseTheme handles POST /theme: it stores the choice for a year and redirects to the page of the form. A script that
// has already changed the page gets no page.
func ChooseTheme(c *Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	choice := &http.Cookie{ //nolint:gosec // sent on plain http too: it is no secret
		Name:     themeCookie,
		Value:    form.Get("theme"),
		Path:     "/",
		MaxAge:   365 * 24 * 3600,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
		Secure:   c.Request.TLS != nil,
	}
	switch choice.Value {
	case "light", "dark":
	case "system":
		choice.Value, choice.MaxAge = "", -1
	default:
		return fault.InvalidField("theme", "theme_unknown", "Unknown theme. Use light, dark, or system.")
	}
	http.SetCookie(c.Writer, choice)
	if c.GetHeader("HX-Request") != "" {
		return c.AnswerNothing()
	}
	http.Redirect(c.Writer, c.Request, cameFrom(c.Request), http.StatusSeeOther)
	return nil
}

// cameFrom is the path of the page with the form, or the front page if that is not a page of this server.
func cameFrom(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || len(from.Path) == 0 || from.Path[0] != '/' || len(from.Path) > 1 &&
		(from.Path[1] == '/' || from.Path[1] == '\\') {
		return "/"
	}
	return from.RequestURI()
}
