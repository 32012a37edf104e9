// Package dashboard holds the pages of one tenant: a file per noun.
package dashboard

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/openid"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB      *db.DB
	Keys    *seal.Ring
	BaseURL string // the public URL, without a slash at its end
	Log     *slog.Logger
	Now     func() time.Time

	Emitter Emitter
	Egress  egress.Policy
	// the default of the tenants' setting; 0 is 50
	EndpointsPerTenant int
	// responds with all data of a tenant as a file
	Export func(c *handlers.Call, tenant id.UUID, reason string) error
	// bytes of an event's data; 0 is 256 KiB
	MaxPayload int
	OpenID     *openid.Client
	// tests connections to receivers
	Tester Tester
	// reads the data of large events; nil: there are none
	Large *handlers.LargeData
	// origins that can show a portal within their pages
	FrameAncestors []string
	// closed before the process stops, so that streams end; nil: never
	Closing <-chan struct{}
	// how often a stream of changes shows that it is alive, and that its reader is still signed in; 0 is 10 s
	Beat time.Duration
	// for DNS lookups; nil is the system's resolver
	LookupTXT func(ctx context.Context, name string) ([]string, error)
}

// dashboard holds the handlers.
type dashboard struct {
	Deps
	changes *changes
}

// Root is the path of a tenant's pages.
const Root = "/t/:" + handlers.TenantParam

// Routes is the route table of a tenant's pages.
func Routes(d Deps) []handlers.Route {
	if d.EndpointsPerTenant == 0 {
		d.EndpointsPerTenant = 50
	}
	if d.MaxPayload == 0 {
		d.MaxPayload = 256 << 10
	}
	if d.LookupTXT == nil {
		d.LookupTXT = (&net.Resolver{PreferGo: true}).LookupTXT
	}
	if d.Beat == 0 {
		d.Beat = 10 * time.Second
	}
	a := &dashboard{d, newChanges(d.DB, d.Now)}
	return slices.Concat([]handlers.Route{
		page("GET", "", access.Read, a.home),
		page("GET", "/", access.Read, a.home),
		page("GET", "/changes", access.Read, a.streamChanges).Endless(),

		page("GET", "/members", access.ReadMembers, a.listMembers),
		page("POST", "/members/invite", access.ManageMembers, a.invite),
		page("POST", "/members/:member_id/role", access.ManageMembers, a.changeRole),
		page("POST", "/members/:member_id/remove", access.ManageMembers, a.removeMember),
		page("POST", "/invitations/:invitation_id/revoke", access.ManageMembers, a.revokeInvitation),
		own(page("POST", "/leave", access.Read, a.leave)),

		page("GET", "/settings", access.ChangeSettings, a.showSettings),
		page("POST", "/settings", access.ChangeSettings, a.changeSettings),
		page("POST", "/settings/notices", access.ChangeSettings, a.changeNoticeSettings),
		fresh("POST", "/settings/transfer", access.TransferOwnership, a.transfer),
		fresh("GET", "/settings/delete", access.DeleteTenant, a.confirmDelete),
		fresh("POST", "/settings/delete", access.DeleteTenant, a.deleteTenant),
		fresh("POST", "/settings/export", access.DeleteTenant, a.exportTenant).Endless(),
	}, a.searchRoutes(), a.endpointRoutes(), a.inboxRoutes(), a.feedRoutes(), a.deliveryRoutes(), a.bulkRoutes(), a.eventRoutes(),
		a.historyRoutes(), a.keyRoutes(), a.subscriptionRoutes(), a.sourceRoutes(), a.signatureRoutes(), a.auditRoutes(), a.linkRoutes(), a.eventTypeRoutes(),
		a.noticeRoutes(), a.ssoRoutes())
}

// maxForm bounds the body of a form.
const maxForm = 64 << 10

// page is a route for the members who can do an action.
func page(method, path string, action access.Action, h handlers.Handler) handlers.Route {
	return handlers.Route{
		Method:  method,
		Path:    Root + path,
		Access:  handlers.Access{Session: true, Action: action},
		MaxBody: maxForm,
		Handler: h,
	}
}

// own is an action on the member's own data. It is open while the tenant is suspended.
func own(r handlers.Route) handlers.Route {
	r.Access.Own = true
	return r
}

// fresh is an action for a person who has just signed in.
func fresh(method, path string, action access.Action, h handlers.Handler) handlers.Route {
	r := page(method, path, action, h)
	r.Access.Fresh = true
	return r
}
