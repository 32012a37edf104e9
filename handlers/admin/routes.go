// Package admin is the operators' console: how they sign in, with a session and a cookie of their own, and what runs, what waits,
// who is in trouble, and what operators may do about it.
package admin

import (
	"log/slog"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/credential"
	"posthorn/views/pages"
)

// Deps is what the handlers work with.
type Deps struct {
	DB   *db.DB
	Keys *seal.Ring // seals seeds of second factors
	// Development says that only this machine reaches the server: operators may go without a second factor then.
	Development bool
	Log         *slog.Logger
	Now         func() time.Time
	// Export answers with everything of a tenant as a file, and enters it in the tenant's audit log.
	Export func(c *handlers.Call, tenant id.UUID, reason string) error
}

// admin holds the handlers.
type admin struct {
	Deps
	passwords *credential.Passwords
	addresses *handlers.Addresses
}

// Routes is the route table of the console.
func Routes(d Deps) []handlers.Route {
	a := &admin{Deps: d, passwords: credential.NewPasswords(), addresses: handlers.NewAddresses(d.Now)}
	routes := a.routes()
	for i, r := range routes {
		if r.Access.Operator {
			routes[i].Handler = a.withPauses(r.Handler)
		}
	}
	return routes
}

func (a *admin) routes() []handlers.Route {
	return []handlers.Route{
		open("GET", "/console/sign-in", a.showSignIn),
		open("POST", "/console/sign-in", a.signIn),
		open("GET", "/console/sign-in/code", a.showCode),
		open("POST", "/console/sign-in/code", a.signInCode),
		open("GET", "/console/setup", a.showSetup),
		open("POST", "/console/setup", a.setPassword),
		open("GET", "/console/setup/totp", a.showTOTP),
		open("POST", "/console/setup/totp", a.confirmTOTP),
		open("POST", "/console/sign-out", a.signOut),

		page("GET", "/account", a.home),
		page("GET", "/account/recovery-codes", a.showCodes),
		page("GET", "", a.overview),

		page("GET", "/tenants", a.listTenants),
		page("POST", "/tenants", a.createTenant),
		page("GET", "/tenants/:"+tenantParam, a.showTenant),
		page("POST", "/tenants/:"+tenantParam+"/suspend", a.suspendTenant),
		page("POST", "/tenants/:"+tenantParam+"/resume", a.resumeTenant),
		page("POST", "/tenants/:"+tenantParam+"/limits", a.changeLimits),
		page("POST", "/tenants/:"+tenantParam+"/export", a.exportTenant).Endless(),
		page("POST", "/tenants/:"+tenantParam+"/delete", a.deleteTenant),
		page("GET", "/tenants/:"+tenantParam+"/deliveries/:delivery_id", a.showDelivery),
		page("GET", "/tenants/:"+tenantParam+"/events/:event_id", a.showEvent),
		page("GET", "/deliveries", a.listDeliveries),
		page("GET", "/events", a.listEvents),

		page("GET", "/settings", a.showSettings),
		page("POST", "/settings", a.changeSettings),
		page("GET", "/keys", a.listKeys),
		page("POST", "/keys", a.createKey),
		page("POST", "/keys/:key_id/revoke", a.revokeKey),

		page("POST", "/tenants/:"+tenantParam+"/view-as", a.beginView),
		page("POST", "/view-as/act", a.actInView),
		page("POST", "/view-as/end", a.endView),

		page("GET", "/health", a.listHosts),
		page("GET", "/health/endpoints", a.listSickEndpoints),
		page("GET", "/queue", a.showQueue),
		page("GET", "/pauses", a.listPauses),
		page("POST", "/pauses", a.pauseDispatch),
		page("POST", "/pauses/:pause_id/resume", a.resumeDispatch),
		page("GET", "/outbox", a.listRejected),
		page("GET", "/jobs", a.listJobs),
		page("GET", "/mail", a.listMails),
		page("POST", "/mail/:mail_id/again", a.sendMailAgain),
		page("GET", "/books", a.showBooks),
		page("POST", "/books/:"+tenantParam+"/accept", a.acceptDifference),
		page("GET", "/audit", a.listAudit),
	}
}

// Root is where the console is.
const Root = "/console"

// tenantParam names the tenant in a path. It is not the parameter by which members are admitted: operators belong to none.
const tenantParam = "id"

const (
	maxForm  = 16 << 10 // bounds the body of a form
	pageRows = 50
	// lookFor bounds a look at everything: the totals of a large platform take a moment.
	lookFor = 10 * time.Second
)

func open(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: path, Access: handlers.Access{Public: true}, MaxBody: maxForm, Handler: h}
}

// home says who is signed in, and how well the account is guarded.
func (a *admin) home(c *handlers.Call) error {
	return c.Render(http.StatusOK, pages.ConsoleHome(pages.ConsoleHomeView{
		Shell: c.Shell("Your account", "account"), Email: c.Actor.Operator.Email, TOTP: c.Actor.Operator.TOTP,
	}))
}

func page(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: Root + path, Access: handlers.Access{Operator: true}, MaxBody: maxForm, Timeout: lookFor, Handler: h}
}

// before is where a page of a list begins: behind the id that the address names, else at the newest. What is no id of the
// kind is the list's beginning.
func before(c *handlers.Call, kind id.Kind) id.UUID {
	if u, err := kind.Parse(c.Query("before")); err == nil {
		return u
	}
	return id.Last
}

// older is the address of the next page of a list; empty where there is none. n rows were asked for beyond a page's.
func older[R any](c *handlers.Call, kind id.Kind, rows []R, of func(R) id.UUID) (shown []R, next string) {
	if len(rows) <= pageRows {
		return rows, ""
	}
	shown = rows[:pageRows]
	query := c.Request.URL.Query()
	query.Set("before", kind.Format(of(shown[pageRows-1])))
	return shown, c.Request.URL.Path + "?" + query.Encode()
}

// word is a query parameter that must be one of a few words; anything else is as if it were not given.
func word(c *handlers.Call, name string, words ...string) string {
	for _, w := range words {
		if c.Query(name) == w {
			return w
		}
	}
	return ""
}
