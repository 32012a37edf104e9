package handlers

import (
	"net/http"
	"net/url"

	"posthorn/domain/fault"
)

// themeCookie holds what a browser's person chose of light and dark; without it the system's own choice holds. It says
// nothing about who they are.
const themeCookie = "posthorn_theme"

// Theme is what the browser asked for: "light", "dark", or empty for whatever the system prefers.
func Theme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// ChooseTheme answers POST /theme: it keeps the choice for a year and goes back to the page that it was made on. A script
// that has already changed the page gets no page.
func ChooseTheme(c *Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	choice := &http.Cookie{ //nolint:gosec // on plain http it is sent too: it holds a taste, no secret
		Name: themeCookie, Value: form.Get("theme"), Path: "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: c.Request.TLS != nil,
	}
	switch choice.Value {
	case "light", "dark":
	case "system":
		choice.Value, choice.MaxAge = "", -1
	default:
		return fault.InvalidField("theme", "theme_unknown", "There is no such theme. Give one of light, dark, system.")
	}
	http.SetCookie(c.Writer, choice)
	if c.GetHeader("HX-Request") != "" {
		return c.AnswerNothing()
	}
	http.Redirect(c.Writer, c.Request, cameFrom(c.Request), http.StatusSeeOther)
	return nil
}

// cameFrom is the path of the page that a form was sent from, and the front page where that is not one of ours.
func cameFrom(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || len(from.Path) == 0 || from.Path[0] != '/' || len(from.Path) > 1 && (from.Path[1] == '/' || from.Path[1] == '\\') {
		return "/"
	}
	return from.RequestURI()
}
