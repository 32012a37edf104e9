package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"posthorn/db/accounts"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/views/layout"
)

// Render responds with a page, or with the part of it that htmx requested. It renders everything before it sends
// anything, so that an error in the middle still becomes an error page.
func (c *Call) Render(status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(c.Ctx(), &b); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	c.kit.pageHeaders(c)
	c.send(status, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// Fragment reports whether htmx requests a part of a page rather than a page.
func (c *Call) Fragment() bool {
	h := c.Request.Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Boosted") != "true" && h.Get("HX-History-Restore-Request") != "true"
}

// Redirect sends the browser to another page of this server after a form (303). For htmx it is a header: htmx would
// insert the redirect's page into the current one.
func (c *Call) Redirect(path string) error {
	if c.Request.Header.Get("HX-Request") == "true" {
		c.Writer.Header().Set("HX-Redirect", path)
		c.Writer.WriteHeader(http.StatusNoContent)
		c.Writer.WriteHeaderNow()
		return nil
	}
	c.Writer.Header().Set("Location", path)
	c.Writer.WriteHeader(http.StatusSeeOther)
	c.Writer.WriteHeaderNow()
	return nil
}

// Done redirects to a page that says once what was done.
func (c *Call) Done(path, text string) error {
	c.Flash(text)
	return c.Redirect(path)
}

// Form reads the fields of a form, up to the route's limit. It rejects any other body.
func (c *Call) Form() (url.Values, error) {
	if c.form != nil {
		return c.form, nil
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil || len(body) > 0 && !strings.HasPrefix(c.ContentType(), "application/x-www-form-urlencoded") {
		return nil, fault.New(fault.Invalid, "form_malformed", "The form can't be read. Send it as application/x-www-form-urlencoded.")
	}
	for name, all := range values {
		for i, one := range all {
			values[name][i] = strings.ReplaceAll(strings.ToValidUTF8(one, "\ufffd"), "\x00", "")
		}
	}
	c.form = values
	return values, nil
}

// Next is the path to open after signing in: a path of this server in the request, else the fallback.
func Next(given, fallback string) string {
	if len(given) < 2000 && strings.HasPrefix(given, "/") && !strings.HasPrefix(given, "//") && !strings.ContainsFunc(given,
		func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		if u, err := url.Parse(given); err == nil && u.Host == "" && u.Scheme == "" {
			return given
		}
	}
	return fallback
}

// WrongFields maps the fields of an error to what is wrong with them, in the words of a form. An error without fields
// has the empty name.
func WrongFields(err error) map[string]string {
	wrong := map[string]string{}
	e := fault.As(err)
	if e == nil {
		return wrong
	}
	for _, f := range e.Fields {
		if _, ok := wrong[f.Name]; !ok {
			wrong[f.Name] = inForm(f)
		}
	}
	if len(wrong) == 0 {
		wrong[""] = e.Detail
	}
	return wrong
}

// inForm is what is wrong with a field of a form. A detail for programs begins with the name that the field has in the
// API; people read its label, and leave a field empty.
func inForm(f fault.Field) string {
	rest, named := strings.CutPrefix(f.Detail, f.Name+" ")
	label := endpoint.Label(f.Name)
	if !named || label == "" {
		return f.Detail
	}
	return label + " " + strings.ReplaceAll(rest, "or null for", "or empty for")
}

// NotInput returns errors that the person at the form can't fix. It returns nil for an error that belongs beside the
// form.
func NotInput(err error) error {
	if e := fault.As(err); e != nil && (e.Kind == fault.Invalid || e.Kind == fault.Conflict ||
		e.Kind == fault.Limited) {
		return nil
	}
	return err
}

// pagePolicy is the content security policy of pages: everything from this server, nothing inline, no plug-ins.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; " +
	"form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors "

// pageHeaders sets the security headers of a page.
func (k *Kit) pageHeaders(c *Call) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", pagePolicy+k.ancestorsOf(c))
	if h.Get("Referrer-Policy") == "" {
		h.Set("Referrer-Policy", "same-origin")
	}
	h.Set("Vary", "HX-Request, Cookie")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// isPage reports whether a response is for a person's browser rather than a program.
func isPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && (strings.Contains(r.Header.Get("Accept"), "text/html") || r.Header.Get("HX-Request") == "true")
}

const callKey = "posthorn.call"

// failPage responds to a browser. A person who must sign in is redirected to the sign-in page and back. Otherwise a
// page says what is wrong.
func (k *Kit) failPage(gc *gin.Context, e *fault.Error, status int) {
	c, _ := gc.MustGet(callKey).(*Call)
	switch e {
	case errSignIn:
		c.recallPortal(true)
		c.keepTyped()
	case errSuspended:
		c.keepTyped()
	}
	switch {
	case e == errSignIn && c.visitor != nil:
		k.endPortal(gc, c)
	case e == errSignIn && len(c.typed) > 0:
		k.errorPage(gc, c, e, status)
	case e == errSignIn:
		_ = c.Redirect(c.signInPath())
	case e == accounts.ErrSSORequired:
		_ = c.Redirect(SSOPath(c.tenantOfPath()) + c.back())
	case e == errFresh && c.Actor.Session != nil && c.Actor.Session.Only != nil:
		_ = c.Redirect(SSOPath(*c.Actor.Session.Only) + "/again" + c.back())
	case e == errFresh && c.Actor.Session != nil && c.Actor.Operator.ID.IsZero():
		_ = c.Redirect("/account/confirm" + c.back())
	case e == errFresh:
		_ = c.Redirect("/console/sign-in" + c.back())
	default:
		k.errorPage(gc, c, e, status)
	}
	gc.Abort()
}

// errorPage responds with a page that says what is wrong.
func (k *Kit) errorPage(gc *gin.Context, c *Call, e *fault.Error, status int) {
	// The time limit of the request is possibly over, and with it its context. An error page has a short time of its
	// own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(gc.Request.Context()), errorPageWithin)
	defer cancel()
	c.ctx, c.Request = ctx, gc.Request.WithContext(ctx)
	again := c.again(status)
	r := layout.Refusal{Status: status, Code: e.Code, Detail: e.Detail, RequestID: requestID(gc), Act: again}
	c.recallPortal(status < http.StatusInternalServerError)
	c.explain(gc, e, &r)
	shell := c.plainShell
	if status < http.StatusInternalServerError {
		shell = c.Shell
	}
	err := c.Render(status, layout.Error(shell("", ""), r))
	if err != nil {
		k.log.Error("error page not rendered", "error", err)
		http.Error(gc.Writer, e.Detail, status)
	}
}

// explain adds to an error page what the reader can do about some errors.
func (c *Call) explain(gc *gin.Context, e *fault.Error, r *layout.Refusal) {
	if u := c.referer(); c.Request.Method != http.MethodGet && u != "" {
		r.Back, r.BackLabel = u, "Back to the page"
	}
	switch r.Typed = c.typed; e {
	case errSuspended:
		r.Title = "This tenant is suspended"
	case errSignIn:
		r.Title, r.Detail = "You were signed out", "Sign in, then send the form again."
		r.Back, r.BackLabel = c.signInPath(), "Sign in"
	}
	if path := c.Request.URL.Path; path == "/docs" || strings.HasPrefix(path, "/docs/") {
		r.Back, r.BackLabel = "/docs", "Back to the documentation"
	} else if text := forPeople[e.Code]; text != "" {
		r.Detail = text
	}
	if e == errViewOver {
		r.Back, r.BackLabel = "/console/tenants/"+c.Param(TenantParam), "Open the tenant in the console"
	}
	c.explainPortal(e, r)
	var needed history.InStorage
	if errors.As(e, &needed) && !c.Actor.Tenant.IsZero() {
		c.explainStored(needed.Day, r)
	}
}

// SSOPath is where people sign in with a tenant's identity provider.
func SSOPath(tenant id.UUID) string { return "/sso/" + id.Tenant.Format(tenant) }

func (c *Call) tenantOfPath() id.UUID {
	tenant, err := id.Tenant.Parse(c.Param(TenantParam))
	if err != nil {
		return id.None
	}
	return tenant
}

// errorPageWithin bounds the reads of an error page, such as the number of unread notices.
const errorPageWithin = time.Second

// referer is the page of this server from which a request was sent, or empty.
func (c *Call) referer() string {
	u, err := url.Parse(c.Request.Referer())
	if err != nil || u.Host == "" || u.Host != c.Request.Host || u.Path == "/" {
		return ""
	}
	return Next(u.RequestURI(), "")
}

// sortedNames are the names of a form's fields.
func sortedNames(form url.Values) []string { return slices.Sorted(maps.Keys(form)) }

// forPeople replaces messages for programs by messages for pages.
var forPeople = map[string]string{
	errNoRoute.Code:        "There's no page at this address. Check the address, or go back to the dashboard.",
	errNoMethod.Code:       "This address belongs to a form. Open the form's page and submit it there.",
	fault.ErrNotFound.Code: "This page doesn't exist, was deleted, or belongs to another tenant. Check the address.",
}

// signInPath is the page where the caller signs in, and from where they come back.
func (c *Call) signInPath() string {
	if strings.HasPrefix(c.Request.URL.Path, "/console") {
		return "/console/sign-in" + c.back()
	}
	return "/sign-in" + c.back()
}

// back is the query with which signing in redirects back: to the page itself, or for a form to the page that contains
// it.
func (c *Call) back() string {
	path := c.Request.URL.RequestURI()
	if c.Request.Method != http.MethodGet {
		path = ""
		if u, err := url.Parse(c.Request.Referer()); err == nil && u.Host == c.Request.Host {
			path = u.RequestURI()
		}
	} else if from := c.Request.Header.Get("HX-Current-URL"); from != "" {
		if u, err := url.Parse(from); err == nil && u.Host == c.Request.Host {
			path = u.RequestURI()
		}
	}
	if path = Next(path, ""); path == "" || path == "/" {
		return ""
	}
	return "?next=" + url.QueryEscape(path)
}
