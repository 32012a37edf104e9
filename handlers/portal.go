package handlers

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/sessions"

	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/views/layout"
)

// errPortalEnded is for the visitor of a portal link whose sign-in has ended. There is no password to ask for.
var errPortalEnded = fault.New(fault.Unauthenticated, "portal_session_ended", "The session of this portal link has ended. Open the dashboard again with a new link.")

// ErrPortalLink rejects a portal link that opens nothing any more.
var ErrPortalLink = fault.New(fault.Gone, "portal_link_gone", "This link was already opened, was revoked, or is older than ten minutes. Go back and open the dashboard from there again.")

// portalLinkCookie is the name of the cookie with the id of the portal link that a browser opened last. It outlives the
// session, so that the end of the session is shown in the provider's brand. It grants nothing.
func (s *Sessions) portalLinkCookie() string { return s.Cookie(account.Portal) + "-link" }

// portalLinkLife is how long a browser keeps that cookie, in seconds.
const portalLinkLife = 30 * 24 * 3600

// RememberPortal stores in the browser which portal link it opened.
func (c *Call) RememberPortal(link id.UUID) {
	s := c.kit.sessions
	o := s.options(account.Portal)
	o.MaxAge = portalLinkLife
	http.SetCookie(c.Writer, sessions.NewCookie(s.portalLinkCookie(), id.PortalLink.Format(link), o))
}

// VisitorOf says that the caller came by a portal link, for the look of an error page.
func (c *Call) VisitorOf(link account.PortalAccess) { c.visitor = &link }

// PreviewPortal makes a call of a member show what the visitor of a portal link sees.
func (c *Call) PreviewPortal(link account.PortalAccess) {
	link.ID = id.None
	c.Actor.Portal, c.Actor.Role, c.Actor.Member, c.tenants = &link, link.Role, id.UUID{}, nil
}

// ofPortal reports whether a path can be in a provider's frame: those of a tenant, the link itself, and the form that
// each of their pages has.
func ofPortal(path string) bool {
	return strings.HasPrefix(path, "/t/") || strings.HasPrefix(path, "/portal/") || path == "/theme"
}

// inFrame reports whether a browser loads a page into a frame (Fetch Metadata, section 2.1).
func inFrame(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "iframe", "frame", "embed", "object":
		return true
	}
	return false
}

// ancestorsOf lists who can show the response in a frame. A provider's page can show what the visitor of a portal link
// sees, and what is shown in the place of it: errors and ended sign-ins, which have nothing to steal. Nobody can show
// what a signed-in person sees.
func (k *Kit) ancestorsOf(c *Call) string {
	switch a := &c.Actor; {
	case c.access.Framed:
		return "'self'"
	case len(k.ancestors) > 0 && (a.Portal != nil || a.Session == nil && ofPortal(c.Request.URL.Path)):
		return strings.Join(k.ancestors, " ")
	}
	return "'none'"
}

// recallPortal finds out whether a caller who was not admitted is the visitor of a portal link, for the look of an
// error page: by the link, by the cookie that the link left, or because the page is in a frame. The brand is in the
// database, which is read if reads is set.
func (c *Call) recallPortal(reads bool) {
	path := c.Request.URL.Path
	if c.visitor != nil || c.Actor.Session != nil || c.kit.sessions == nil || !ofPortal(path) {
		return
	}
	framed := inFrame(c.Request)
	if framed || strings.HasPrefix(path, "/portal/") {
		c.visitor = &account.PortalAccess{}
	}
	if _, err := c.Request.Cookie(c.kit.sessions.Cookie(account.Person)); err == nil && !framed {
		return // a person, who once opened a link
	}
	cookie, err := c.Request.Cookie(c.kit.sessions.portalLinkCookie())
	if err != nil {
		return
	}
	link, err := id.PortalLink.Parse(cookie.Value)
	if err != nil {
		return
	}
	if !reads {
		c.visitor = &account.PortalAccess{}
		return
	}
	l, err := accounts.FindPortal(c.Ctx(), c.kit.sessions.db, link)
	if err == nil && (!strings.HasPrefix(path, "/t/") || below("/t/"+id.Tenant.Format(l.Tenant), path)) {
		c.visitor = &l
	}
}

// portal is the portal link by which the caller came; nil: none.
func (c *Call) portal() *account.PortalAccess {
	if c.Actor.Portal != nil {
		return c.Actor.Portal
	}
	return c.visitor
}

// endPortal responds to the visitor of a portal link whose sign-in has ended.
func (k *Kit) endPortal(gc *gin.Context, c *Call) {
	if c.Request.Header.Get("HX-Request") == "true" {
		c.Writer.Header().Set("HX-Refresh", "true") // the page itself says what happened
		_ = c.AnswerNothing()
		return
	}
	k.errorPage(gc, c, errPortalEnded, http.StatusUnauthorized)
}

// explainPortal says to the visitor of a portal link how to go on. Only the page around the frame, or the provider's
// product, can give them a new link.
func (c *Call) explainPortal(e *fault.Error, r *layout.Refusal) {
	p := c.portal()
	if p == nil {
		return
	}
	r.Portal = true
	if e.Code != errPortalEnded.Code && e.Code != ErrPortalLink.Code {
		if r.Back == "" && !p.Tenant.IsZero() {
			r.Back = "/t/" + id.Tenant.Format(p.Tenant) + "/"
		}
		return
	}
	r.Back, r.BackLabel, r.Ended, r.Title, r.Detail = "", "", true, "You were signed out", "Your access to this dashboard has ended."
	if e.Code == ErrPortalLink.Code {
		r.Title, r.Detail = "This link has expired", "A link opens the dashboard once, within ten minutes."
	}
	switch {
	case inFrame(c.Request):
		r.Detail += " Reload the page to continue."
	case p.Brand != "":
		r.Detail += " Open the dashboard again from " + p.Brand + "."
	default:
		r.Detail += " Open the dashboard again from where you found the link."
	}
	if p.ReturnURL != "" {
		r.Back, r.BackLabel = p.ReturnURL, "Back"
		if p.Brand != "" {
			r.BackLabel = "Back to " + p.Brand
		}
	}
}
