package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Config holds the dependencies of a Kit.
type Config struct {
	DB            *db.DB      // of routes that act in a tenant
	Stored        days.Source // reads days in storage; nil: there are none
	Authenticator *Authenticator
	Log           *slog.Logger
	Now           func() time.Time
	KeyRate       Rate // of requests with one key; zero fields: 10,000 a second, burst twice the rate
	Bodies        Bodies
	// The dependencies of pages. A kit without pages needs none of them.
	Sessions       *Sessions
	Keys           *seal.Ring // seals values that a page shows once
	BaseURL        string     // the public URL: pages of its origin can send forms
	FrameAncestors []string   // origins that can show a portal within their pages
	ConsoleHost    string     // the only host of the console; empty: every host
	Proxies        Proxies    // trusted proxies, which report where a request comes from
}

// Kit mounts routes and handles errors before and after their handlers.
type Kit struct {
	db    *db.DB
	store days.Source
	auth  *Authenticator
	log   *slog.Logger
	limit *limiter
	now   func() time.Time

	outages repeats

	bodies, anonymous *Shares // of bytes of request bodies
	queue             *queue  // of strangers

	sessions  *Sessions
	keys      *seal.Ring
	status    statusPage
	cross     *http.CrossOriginProtection
	ancestors []string
	baseURL   string
	proxies   Proxies
	https     bool

	consoleHost  string
	crossConsole *http.CrossOriginProtection // on the console's host, which accepts only forms of its own pages
}

// New creates a kit.
func New(c Config) *Kit {
	k := &Kit{
		db:           c.DB,
		store:        c.Stored,
		auth:         c.Authenticator,
		log:          c.Log,
		now:          c.Now,
		limit:        newLimiter(c.KeyRate, c.Now),
		queue:        newQueue(queuePlaces, queueLength),
		sessions:     c.Sessions,
		keys:         c.Keys,
		cross:        http.NewCrossOriginProtection(),
		ancestors:    c.FrameAncestors,
		baseURL:      c.BaseURL,
		proxies:      c.Proxies,
		https:        strings.HasPrefix(c.BaseURL, "https://"),
		consoleHost:  c.ConsoleHost,
		crossConsole: http.NewCrossOriginProtection(),
	}
	k.bodies, k.anonymous = newBodies(c.Bodies)
	if c.BaseURL != "" {
		if err := k.cross.AddTrustedOrigin(c.BaseURL); err != nil {
			c.Log.Warn("the base URL is no origin; forms are compared with the Host header alone", "error", err)
		}
	}
	return k
}

// NewEngine creates a router that trusts no proxy, redirects nothing, gives every request an id, survives panics, and
// responds to unknown paths and methods with problems.
func (k *Kit) NewEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	_ = e.SetTrustedProxies(nil) // never fails on nil
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.UseRawPath, e.UnescapePathValues = true, false // an id in a path can contain an escaped slash; unescape reads it
	e.Use(unescape, nameRequest, k.secure, k.recover, k.separate, k.refuseCrossOrigin)
	e.NoRoute(func(c *gin.Context) { k.rejectAnonymous(c, errNoRoute) })
	e.NoMethod(func(c *gin.Context) {
		if to := formPage(e, c.Request); to != "" {
			c.Redirect(http.StatusSeeOther, to)
			return
		}
		k.rejectAnonymous(c, errNoMethod)
	})
	return e
}

// unescape decodes the path parameters of a path that was matched as it was sent. The router itself would read a plus
// as a space.
func unescape(c *gin.Context) {
	for i := range c.Params {
		text, err := url.PathUnescape(c.Params[i].Value)
		if err != nil || c.Request.URL.RawPath == "" {
			text = c.Params[i].Value
		}
		c.Params[i].Value = storable(text)
	}
	c.Request.URL.RawQuery = storableQuery(c.Request.URL.RawQuery)
}

// storable is a text that the database takes: U+FFFD is in the place of NUL and of bytes that are not UTF-8. Nothing
// is left out, because a filter that is empty selects everything.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// storableQuery does this to every name and value of a query, for all that read it. What can't be decoded stays.
func storableQuery(raw string) string {
	if !strings.Contains(raw, "%") && utf8.ValidString(raw) {
		return raw
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		text, err := url.QueryUnescape(pair)
		if err != nil || storable(text) == text {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name, _ = url.QueryUnescape(name) // the pair could be decoded, and so can its parts
		value, _ = url.QueryUnescape(value)
		pairs[i] = url.QueryEscape(storable(name))
		if found {
			pairs[i] += "=" + url.QueryEscape(storable(value))
		}
	}
	return strings.Join(pairs, "&")
}

// formPage is the page of the form that was sent to this address, for a browser that opens the address itself, as a
// reload of an error page does: the nearest page above it. It is empty for any other request.
func formPage(e *gin.Engine, r *http.Request) string {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !isPage(r) {
		return ""
	}
	for at := path.Dir(r.URL.Path); at != "/" && at != "."; at = path.Dir(at) {
		for _, route := range e.Routes() {
			if route.Method == http.MethodGet && matches(route.Path, at) {
				return at
			}
		}
	}
	return ""
}

// matches reports whether a path matches a route's.
func matches(route, at string) bool {
	want, have := strings.Split(route, "/"), strings.Split(at, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && !strings.HasPrefix(want[i], ":") {
			return false
		}
	}
	return true
}

var errCrossOrigin = fault.New(fault.Forbidden, "cross_origin", "This form was sent from another site. Open the page here and send it from there.")

// refuseCrossOrigin rejects requests that another site makes a browser send, because browsers add their cookies. The
// API uses no cookies, so its callers can be anywhere.
func (k *Kit) refuseCrossOrigin(c *gin.Context) {
	if strings.HasPrefix(c.Request.URL.Path, "/api/") {
		return
	}
	cross := k.cross
	if k.consoleHost != "" && k.onConsoleHost(c.Request) {
		cross = k.crossConsole
	}
	if err := cross.Check(c.Request); err != nil {
		k.Fail(c, errCrossOrigin)
	}
}

var (
	errNoRoute  = fault.New(fault.NotFound, "no_such_path", "Unknown path. Check it against the API reference at /docs.")
	errNoMethod = fault.New(fault.Invalid, "method_not_allowed", "This path doesn't support this method. The Allow header lists the supported methods.")
)

type refusedKey struct{}

// Refuser responds to requests that reach no route, with a given error.
func (k *Kit) Refuser() func(w http.ResponseWriter, r *http.Request, err error) {
	e := k.NewEngine()
	e.HandleMethodNotAllowed = false
	e.NoRoute(func(c *gin.Context) {
		if err, ok := c.Request.Context().Value(refusedKey{}).(error); ok {
			k.Fail(c, err)
		}
	})
	return func(w http.ResponseWriter, r *http.Request, err error) {
		e.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), refusedKey{}, err)))
	}
}

// rejectAnonymous rejects a request without a valid key.
func (k *Kit) rejectAnonymous(c *gin.Context, err error) {
	if limited := k.limit.spendAnonymous(c.Writer.Header()); limited != nil {
		err = limited
	}
	k.Fail(c, err)
}

// secure sets the headers of API responses: they are not cached, sniffed, framed, or run. Together with request id,
// limits, and content type a response has eight headers, which a small map holds without growing.
func (k *Kit) secure(c *gin.Context) {
	h := c.Writer.Header()
	if k.https {
		h["Strict-Transport-Security"] = oneYear
	}
	h["X-Content-Type-Options"] = nosniff
	h["Cache-Control"] = noStore
	h["Content-Security-Policy"] = noContent
}

var (
	nosniff   = []string{"nosniff"}
	noStore   = []string{"no-store"}
	oneYear   = []string{"max-age=31536000"}
	noContent = []string{"default-src 'none'; frame-ancestors 'none'"}
)

func (k *Kit) recover(c *gin.Context) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case http.ErrAbortHandler:
			panic(r)
		default:
			k.Fail(c, fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
		}
	}()
	c.Next()
}

// Mount adds routes to a router.
func (k *Kit) Mount(e *gin.Engine, routes []Route) {
	for _, r := range routes {
		e.Handle(r.Method, r.Path, k.serve(r))
		if r.Method == http.MethodGet && !r.Changes && r.Timeout >= 0 {
			e.Handle(http.MethodHead, r.Path, head(k.serve(r)))
		}
	}
}

// head handles HEAD as GET; the server leaves out the body. HEAD uses up no value that is shown once.
func head(get gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		as := *c.Request
		as.Method = http.MethodGet
		c.Request = &as
		c.Set(headKey, true)
		get(c)
	}
}

const headKey = "posthorn.head"

// serve admits a request and passes it to the route's handler.
func (k *Kit) serve(r Route) gin.HandlerFunc {
	if r.MaxBody == 0 {
		r.MaxBody = defaultMaxBody
	}
	if r.Timeout == 0 {
		r.Timeout = DefaultTimeout
	}
	return func(c *gin.Context) {
		call := &Call{Context: c, kit: k, ctx: c.Request.Context(), maxBody: r.MaxBody, access: r.Access}
		c.Set(callKey, call)
		if r.Timeout > 0 {
			within := r.Timeout
			if r.LargeTimeout > 0 && c.Request.ContentLength > event.DefaultMaxPayload {
				within = r.LargeTimeout
			}
			ctx, cancel := context.WithTimeout(call.ctx, within)
			defer cancel()
			call.ctx = ctx
			c.Request = c.Request.WithContext(ctx) // the session store knows the request alone
		}
		call.Actor.Address, call.Actor.RequestID = k.proxies.client(c.Request), requestID(c)
		err := k.letIn(call, r.Access)
		if err == nil {
			err = call.checkIDs()
		}
		var body *countedBody
		if err == nil {
			body, err = k.count(call)
		}
		if body != nil {
			defer body.release()
		}
		if err == nil && r.Queued {
			var leave func()
			if leave, err = k.enter(call); err == nil {
				defer leave()
			}
		}
		if err == nil {
			err = call.borrow(r)
		}
		switch {
		case err == nil:
			err = r.Handler(call)
		case r.Refuse != nil:
			hurry(c.Writer, c.Request)
			err = r.Refuse(call, err)
		}
		switch {
		case err != nil:
			k.Fail(c, call.ofStoredDay(err))
		case body != nil && !body.done:
			hurry(c.Writer, c.Request)
		}
	}
}

func (k *Kit) letIn(c *Call, a Access) error {
	switch {
	case a.Public:
		return nil
	case a.page():
		return k.admitPage(c, a)
	case a.Key:
		who, err := k.authenticate(c)
		if err == nil {
			c.Actor.is(who)
			c.Actor.Tenant = who.tenant
		}
		return err
	}
	return k.admit(c, a)
}

// authenticate finds the holder of a call's key. What has no valid key counts for the limit of all such requests.
func (k *Kit) authenticate(c *Call) (*holder, error) {
	who, err := k.auth.caller(c)
	if err != nil {
		limited := k.limit.spendAnonymous(c.Writer.Header())
		if limited != nil && Status(err) == http.StatusUnauthorized {
			return nil, limited
		}
	}
	return who, err
}

// admit authenticates and authorizes a call, and finds its tenant. The order ensures that nobody learns about a tenant
// or an object that their key can't see.
func (k *Kit) admit(c *Call, a Access) error {
	who, err := k.authenticate(c)
	if err != nil {
		return err
	}
	spender := who.key
	if who.principal != "" {
		spender = who.tenant // all people of its product together
	}
	if err := k.limit.key(k.limit.of(spender), c.Writer.Header()); err != nil {
		return err
	}
	c.Actor.is(who)
	if err := permit(who, a, c.FullPath()); err != nil {
		return err
	}
	if c.Actor.Platform {
		if err := k.resolveTenant(c); err != nil {
			if a.NewTenant && fault.Is(err, fault.ErrNotFound.Code) && id.ValidExternal(id.Tenant, c.Param(TenantParam)) {
				c.Actor.NewTenant = c.Param(TenantParam)
				return nil
			}
			return err
		}
	}
	if !a.Tenant {
		return nil
	}
	state := who.state
	c.Actor.Tenant = who.tenant
	if c.Actor.Platform {
		if c.Actor.Tenant, err = c.ID(id.Tenant, TenantParam); err != nil {
			return err
		}
		if state, err = k.auth.tenantState(c.Ctx(), c.Actor.Tenant); err != nil {
			return err
		}
	}
	switch {
	case c.Request.Method == http.MethodGet || state == account.TenantActive:
	case state == account.TenantMoving:
		return db.ErrMoving
	default:
		return errSuspended
	}
	return k.resolveEndpoint(c)
}

// resolveTenant replaces an external id of a tenant in the path by Posthorn's id, so that handlers see only that.
func (k *Kit) resolveTenant(c *Call) error {
	external := c.Param(TenantParam)
	if external == "" || !id.ValidExternal(id.Tenant, external) {
		return nil // no such parameter, or an id that the handler reads
	}
	tenantID, err := k.auth.findTenant(c.Ctx(), external)
	if err != nil {
		return err
	}
	c.setParam(TenantParam, id.Tenant.Format(tenantID))
	return nil
}

// resolveEndpoint does the same for an endpoint of the call's tenant.
func (k *Kit) resolveEndpoint(c *Call) error {
	given := c.Param(EndpointParam)
	if given == "" {
		return nil
	}
	if _, err := id.Endpoint.Parse(given); err == nil {
		return nil
	}
	endpointID, err := k.auth.findEndpoint(c.Ctx(), c.Actor.Tenant, given)
	if fault.Is(err, fault.ErrNotFound.Code) {
		endpointID, err = id.None, nil // so that a wrong body gets the response of any other unknown endpoint
	}
	if err != nil {
		return err
	}
	c.setParam(EndpointParam, id.Endpoint.Format(endpointID))
	return nil
}

// setParam changes a path parameter.
func (c *Call) setParam(name, value string) {
	for i := range c.Params {
		if c.Params[i].Key == name {
			c.Params[i].Value = value
		}
	}
}

var (
	errPlatform  = fault.New(fault.Forbidden, "platform_key_required", "Only a platform key can call this path. With a tenant's key, call paths under /api/v1 without a tenant id.")
	errNoTenant  = fault.New(fault.Invalid, "tenant_required", "A platform key must name the tenant. Call this path under /api/v1/tenants/{tenant_id}.")
	errSuspended = fault.New(fault.Forbidden, "tenant_suspended", "This tenant is suspended and read-only. It can't change or emit anything. Contact the operator of this server.")
)

func permit(who *holder, a Access, path string) error {
	platform := who.tenant.IsZero()
	switch {
	case who.principal != "": // the handler decides what people can do
		return nil
	case a.Platform && !platform:
		return errPlatform
	case !a.Platform && platform:
		return errNoTenant
	case !who.feed.IsZero() && a.Scope != access.FeedsRead:
		return errConsumerToken
	case a.Scope != "" && !who.scopes.Has(a.Scope):
		return scopeMissing(a.Scope)
	}
	return nil
}

func scopeMissing(s access.Scope) error {
	return fault.New(fault.Forbidden, "scope_missing", fmt.Sprintf("This key lacks the scope %s. Use a key that has it.", s))
}

func (l *limiter) of(key id.UUID) *bucket {
	if b, ok := l.keys.Load(key); ok {
		return b.(*bucket)
	}
	b, _ := l.keys.LoadOrStore(key, &bucket{})
	return b.(*bucket)
}
