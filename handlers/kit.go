package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Config is what a Kit works with.
type Config struct {
	Authenticator *Authenticator
	Log           *slog.Logger
	Now           func() time.Time
	KeyRate       Rate // of requests with one key; zero fields: 10,000 a second, burst twice the rate
	Bodies        Bodies
	// What pages need; a kit that mounts none needs none of it.
	Sessions       *Sessions
	Keys           *seal.Ring // seals what a session keeps to show once
	BaseURL        string     // the public URL: its origin may send forms
	FrameAncestors []string   // origins that may show a portal within their pages
	ConsoleHost    string     // where alone the console answers; empty: beside everything else
	Proxies        Proxies    // whose word about where a request comes from is taken
}

// Kit mounts routes and answers for what goes wrong before and behind their handlers.
type Kit struct {
	auth  *Authenticator
	log   *slog.Logger
	limit *limiter
	now   func() time.Time

	bodies *inFlight

	sessions  *Sessions
	keys      *seal.Ring
	status    statusPage
	cross     *http.CrossOriginProtection
	ancestors []string
	proxies   Proxies
	https     bool

	consoleHost  string
	crossConsole *http.CrossOriginProtection // on the console's host, whose forms come from itself alone
}

// New makes a kit.
func New(c Config) *Kit {
	k := &Kit{
		auth: c.Authenticator, log: c.Log, now: c.Now, limit: newLimiter(c.KeyRate, c.Now), bodies: newInFlight(c.Bodies), sessions: c.Sessions, keys: c.Keys,
		cross: http.NewCrossOriginProtection(), ancestors: c.FrameAncestors, proxies: c.Proxies, https: strings.HasPrefix(c.BaseURL, "https://"),
		consoleHost: c.ConsoleHost, crossConsole: http.NewCrossOriginProtection(),
	}
	if c.BaseURL != "" {
		if err := k.cross.AddTrustedOrigin(c.BaseURL); err != nil {
			c.Log.Warn("the base URL is no origin; forms are compared with the Host header alone", "error", err)
		}
	}
	return k
}

// NewEngine makes a router that trusts no proxy, redirects nothing, names every request, survives panics, and answers
// unknown paths and methods with problems.
func (k *Kit) NewEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	_ = e.SetTrustedProxies(nil) // never fails on nil
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.Use(nameRequest, k.secure, k.recover, k.separate, k.refuseCrossOrigin)
	e.NoRoute(func(c *gin.Context) { k.stranger(c, errNoRoute) })
	e.NoMethod(func(c *gin.Context) { k.stranger(c, errNoMethod) })
	return e
}

var errCrossOrigin = fault.New(fault.Forbidden, "cross_origin", "This form was sent from another site. Open the page here and send it from there.")

// refuseCrossOrigin refuses what another site makes a browser send: browsers add their cookies to it. The API knows no
// cookies, so that its callers may sit anywhere.
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
	errNoRoute  = fault.New(fault.NotFound, "no_such_path", "There is nothing at this path. Compare it with the API reference.")
	errNoMethod = fault.New(fault.Invalid, "method_not_allowed", "This path does not take this method. The Allow header lists those it takes.")
)

// stranger refuses a request that has shown no good key.
func (k *Kit) stranger(c *gin.Context, err error) {
	if limited := k.limit.stranger(c.Writer.Header()); limited != nil {
		err = limited
	}
	k.Fail(c, err)
}

// secure sets the headers of an API's answers: nothing of them is to be cached, sniffed, framed or run. With those of
// the request id, the limits and the content type an answer has eight, what a small map holds without growing.
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
		if r.Method == http.MethodGet && r.Access.page() && r.Timeout >= 0 {
			e.Handle(http.MethodHead, r.Path, head(k.serve(r)))
		}
	}
}

// head answers HEAD as GET is answered; the server leaves the body out. Nothing that is shown once is taken for it.
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

// serve lets a request in and hands it to the route's handler.
func (k *Kit) serve(r Route) gin.HandlerFunc {
	if r.MaxBody == 0 {
		r.MaxBody = DefaultMaxBody
	}
	if r.Timeout == 0 {
		r.Timeout = DefaultTimeout
	}
	return func(c *gin.Context) {
		call := &Call{Context: c, kit: k, ctx: c.Request.Context(), maxBody: r.MaxBody, access: r.Access}
		c.Set(callKey, call)
		if r.Timeout > 0 {
			ctx, cancel := context.WithTimeout(call.ctx, r.Timeout)
			defer cancel()
			call.ctx = ctx
			c.Request = c.Request.WithContext(ctx) // the store of sessions knows the request alone
		}
		call.Actor.Address, call.Actor.RequestID = k.proxies.client(c.Request), RequestID(c)
		if err := k.letIn(call, r.Access); err != nil {
			k.Fail(c, err)
			return
		}
		defer k.count(call)()
		if err := r.Handler(call); err != nil {
			k.Fail(c, err)
		}
	}
}

func (k *Kit) letIn(c *Call, a Access) error {
	switch {
	case a.Public:
		return nil
	case a.page():
		return k.admitPage(c, a)
	}
	return k.admit(c, a)
}

// admit authenticates and authorises a call, and finds the tenant that it acts in. The order is such that nobody learns
// of a tenant or an object what its key does not let it see.
func (k *Kit) admit(c *Call, a Access) error {
	header := c.Writer.Header()
	text, err := bearer(c.Request.Header)
	var who *holder
	if err == nil {
		who, err = k.auth.authenticate(c.Ctx(), text)
	}
	if err != nil {
		if limited := k.limit.stranger(header); limited != nil && Status(err) == http.StatusUnauthorized {
			return limited
		}
		return err
	}
	if err := k.limit.key(k.limit.of(who.key), header); err != nil {
		return err
	}
	c.Actor.Key, c.Actor.Scopes, c.Actor.Platform = who.key, who.scopes, who.tenant.IsZero()
	if err := permit(who, a, c.FullPath()); err != nil {
		return err
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
	if state != "active" && c.Request.Method != http.MethodGet {
		return errSuspended
	}
	return nil
}

var (
	errPlatform  = fault.New(fault.Forbidden, "platform_key_required", "Only a platform key may call this path. A tenant's key acts below /api/v1, without naming the tenant.")
	errNoTenant  = fault.New(fault.Invalid, "tenant_required", "A platform key names the tenant: call this path below /api/v1/tenants/{tenant_id}.")
	errSuspended = fault.New(fault.Forbidden, "tenant_suspended", "This tenant is suspended: it may read, and change or emit nothing. Ask the people who run this server.")
)

func permit(who *holder, a Access, path string) error {
	platform := who.tenant.IsZero()
	switch {
	case a.Platform && !platform:
		return errPlatform
	case !a.Platform && platform:
		return errNoTenant
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
