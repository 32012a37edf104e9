package handlers

import (
	"net/http"
	"net/url"

	"posthorn/db/accounts"
	"posthorn/domain/sso"
	"posthorn/views/pages"
)

// flowCookie is the name of the cookie that binds a sign-in in progress, at a provider or with a passkey, to its
// browser.
func (s *Sessions) flowCookie() string {
	if s.secure {
		return "__Host-posthorn-flow"
	}
	return "posthorn-flow"
}

// Flow is the secret that this browser has for sign-ins in progress, or empty.
func (c *Call) Flow() string {
	cookie, err := c.Request.Cookie(c.kit.sessions.flowCookie())
	if err != nil || len(cookie.Value) != tokenLength {
		return ""
	}
	return cookie.Value
}

// StartFlow is Flow for a new sign-in. Sign-ins in two tabs of a browser have the same secret. A provider redirects
// back by a link, so the cookie must be sent with links from other sites.
func (c *Call) StartFlow() string {
	secret := c.Flow()
	if secret == "" {
		secret, _ = accounts.NewToken()
	}
	http.SetCookie(c.Writer, &http.Cookie{ //nolint:gosec // G124: Secure wherever the server is reached by https
		Name:     c.kit.sessions.flowCookie(),
		Value:    secret,
		Path:     "/",
		MaxAge:   int(sso.FlowLife.Seconds()),
		HttpOnly: true,
		Secure:   c.kit.sessions.secure,
		SameSite: http.SameSiteLaxMode,
	})
	return secret
}

// SendAway sends the browser to an identity provider, by the Refresh header: the content security policy lets no form
// end at another site, and the sign-in page's form leads here. The page has a link for browsers that do not follow the
// header.
func SendAway(c *Call, to, back string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Refresh", "0; url="+to)
	return c.Render(http.StatusOK, pages.FormPage(pages.Form{
		Shell: c.Shell("Single sign-on", ""),
		Title: "Continue to " + u.Host,
		Text:  "You sign in at " + u.Host + " and come back here.",
		Links: []pages.Link{{Label: "Continue", Href: to}, {Label: "Back to sign in", Href: back}},
	}))
}
