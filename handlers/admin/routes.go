// Package admin is the operators' console: the processes, the waiting deliveries, and the tenants with incidents; and
// the operators' actions.
package admin

import (
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/egress"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/auth"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB     *db.DB
	Keys   *seal.Ring    // seals seeds of second factors
	URL    string        // where operators reach the console, without a path: passkeys belong to its host
	Egress egress.Policy // where proxies can be
	auth.Console
	Log *slog.Logger
	Now func() time.Time
	// Export sends all data of a tenant as a file, and audits it in the tenant's log.
	Export func(c *handlers.Call, tenant id.UUID, reason string) error
	Homes  func() []home.Seen // the known state, without asking; nil: the installation has no homes
	// EndpointsPerTenant is how many endpoints a tenant has at most, unless settings say otherwise.
	EndpointsPerTenant int
}

// admin holds the handlers.
type admin struct{ Deps }

// Routes is the route table of the console.
func Routes(d Deps) []handlers.Route {
	if d.EndpointsPerTenant == 0 {
		d.EndpointsPerTenant = 50
	}
	a := &admin{Deps: d}
	signIn := auth.Deps{DB: d.DB, Keys: d.Keys, BaseURL: d.URL, Log: d.Log, Now: d.Now}
	routes := append(auth.ConsoleRoutes(signIn, d.Console), a.routes()...)
	for i, r := range routes {
		if r.Access.Operator {
			routes[i].Handler = a.withPauses(r.Handler)
		}
	}
	return routes
}

func (a *admin) routes() []handlers.Route {
	return []handlers.Route{
		page("GET", "", a.overview),

		page("GET", "/tenants", a.listTenants),
		page("POST", "/tenants", a.createTenant),
		page("GET", "/tenants/:"+handlers.ConsoleTenantParam, a.showTenant),
		page("POST", "/tenants/:"+handlers.ConsoleTenantParam+"/suspend", a.suspendTenant),
		page("POST", "/tenants/:"+handlers.ConsoleTenantParam+"/resume", a.resumeTenant),
		page("POST", "/tenants/:"+handlers.ConsoleTenantParam+"/limits", a.changeLimits),
		page("POST", "/tenants/:"+handlers.ConsoleTenantParam+"/export", a.exportTenant).Endless(),
		page("POST", "/tenants/:"+handlers.ConsoleTenantParam+"/delete", a.deleteTenant),
		page("GET", "/tenants/:"+handlers.ConsoleTenantParam+"/deliveries/:delivery_id", a.showDelivery),
		page("GET", "/tenants/:"+handlers.ConsoleTenantParam+"/events/:event_id", a.showEvent),
		page("GET", "/deliveries", a.listDeliveries),
		page("GET", "/events", a.listEvents),

		page("GET", "/palette", a.palette),

		page("GET", "/settings", a.showSettings),
		page("POST", "/settings", a.changeSettings),
		page("GET", "/egress", a.showEgress),
		page("POST", "/egress", a.setEgress),
		page("POST", "/egress/remove", a.removeEgress),
		page("GET", "/keys", a.listKeys),
		page("POST", "/keys", a.createKey),
		page("POST", "/keys/:key_id/revoke", a.revokeKey),

		page("POST", "/tenants/:"+handlers.ConsoleTenantParam+"/view-as", a.beginView),
		page("POST", "/view-as/act", a.actInView),
		page("POST", "/view-as/end", a.endView),

		page("GET", "/health", a.listHosts),
		page("GET", "/health/endpoints", a.listSickEndpoints),
		page("GET", "/queue", a.showQueue),
		page("GET", "/homes", a.showHomes),
		page("GET", "/pauses", a.listPauses),
		page("POST", "/pauses", a.pauseDispatch),
		page("POST", "/pauses/:pause_id/resume", a.resumeDispatch),
		page("GET", "/alerts", a.showAlerts),
		page("POST", "/alerts/channels", a.addChannel),
		page("POST", "/alerts/channels/:endpoint_id/delete", a.removeChannel),
		page("POST", "/alerts/mute", a.muteAlerts),
		page("GET", "/outbox", a.listRejected),
		page("GET", "/jobs", a.listJobs),
		page("GET", "/mail", a.listMails),
		page("POST", "/mail/:mail_id/again", a.sendMailAgain),
		page("GET", "/books", a.showLedger),
		page("POST", "/books/:"+handlers.ConsoleTenantParam+"/accept", a.acceptDiscrepancy),
		page("GET", "/audit", a.listAudit),
	}
}

// Root is the path of the console.
const Root = "/console"

const (
	maxForm  = 16 << 10 // bounds the body of a form
	pageRows = 50
	// lookFor bounds a read over the whole platform: totals of a large one take a while.
	lookFor = 10 * time.Second
)

func page(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{
		Method:  method,
		Path:    Root + path,
		Access:  handlers.Access{Operator: true},
		MaxBody: maxForm,
		Timeout: lookFor,
		Handler: h,
	}
}

// console runs fn in a transaction that sees all tenants.
func (a *admin) console(c *handlers.Call) func(fn func(*db.Tx) error) error {
	return func(fn func(*db.Tx) error) error { return a.DB.Console(c.Ctx(), fn) }
}

// findTenant reads a tenant for a form about it.
func (a *admin) findTenant(c *handlers.Call, tenant id.UUID) (t show.Tenant, err error) {
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		t, err = accounts.FindTenant(c.Ctx(), q, tenant)
		return err
	})
	return t, err
}
