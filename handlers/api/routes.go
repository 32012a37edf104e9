// Package api is the JSON API of /api/v1: a file per noun, and the table of its routes. The contract is openapi.yaml.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/mcp"
	"posthorn/handlers/openid"
)

// Emitter stores events durably before it returns; *emit.Committer is one.
type Emitter interface {
	Emit(ctx context.Context, tenant id.UUID, items []emit.Item) []emit.Result
	// EmitFirst stores an emission together with the tenant that it creates.
	EmitFirst(ctx context.Context, create func(*db.Tx) (id.UUID, bool, error), item emit.Item) (emit.Result, bool)
}

// Deps are the dependencies of the handlers.
type Deps struct {
	DB      *db.DB
	Emitter Emitter
	Egress  egress.Policy
	Keys    *seal.Ring
	BaseURL string // the public URL without a slash at the end: for links in mails and responses
	// ConsoleURL is the URL of the console's host; empty: the same.
	ConsoleURL string
	Settings   Settings
	Log        *slog.Logger
	Now        func() time.Time
	Closing    <-chan struct{} // closed before the process stops, so that streams end; nil: never
	Exporter   Exporter        // nil: one of its own
	OpenID     *openid.Client  // asks providers for their configuration
	Tester     Tester          // tests connections to receivers
	Large      *handlers.LargeData
}

// Tester connects to the receiver of an endpoint step by step.
type Tester interface {
	Test(ctx context.Context, f endpoints.Facts) ([]show.ConnectionStep, error)
	handlers.Sampler
	mcp.Poster
}

// Settings are the platform's limits; zero fields have the default.
type Settings struct {
	MaxPayload         int // bytes of an event's data; default 256 KiB, at most 1 MiB
	MaxLarge           int // bytes of an event's data that goes to object storage; 0: none does
	EndpointsPerTenant int // default 50
	TypesPerTenant     int // entries of the catalog; default 1,000
	KeysPerTenant      int // keys that are neither revoked nor expired; default 200
	BatchItems         int // default 1,000
	BatchBytes         int // default 10 MiB
	RetentionDays      int // the longest retention of a tenant
}

func (s Settings) withDefaults() Settings {
	set := func(v *int, byDefault, most int) {
		if *v <= 0 {
			*v = byDefault
		}
		*v = min(*v, most)
	}
	set(&s.MaxPayload, 256<<10, 1<<20)
	set(&s.EndpointsPerTenant, 50, 100_000)
	set(&s.TypesPerTenant, 1000, 100_000)
	set(&s.KeysPerTenant, 200, 100_000)
	set(&s.BatchItems, 1000, 1000)
	set(&s.BatchBytes, 10<<20, 64<<20)
	set(&s.RetentionDays, 90, 3650)
	return s
}

// api holds the handlers.
type api struct {
	Deps
}

// Root is the path of the API.
const Root = "/api/v1"

// Below root are the routes of a tenant for its own keys, and below tenantRoot those for platform keys.
const (
	root       = Root
	tenantRoot = root + "/tenants/:" + handlers.TenantParam
)

// Room adds routes of a tenant that are in a package of their own. Their paths begin below Root.
type Room func(Deps) []handlers.Route

// Routes is the route table of the API.
func Routes(d Deps, rooms ...Room) []handlers.Route {
	d.Settings = d.Settings.withDefaults()
	if d.Exporter == nil {
		d.Exporter = NewExporter(d)
	}
	a := &api{Deps: d}
	inTenants := a.tenantRoutes()
	for _, room := range rooms {
		inTenants = append(inTenants, room(d)...)
	}
	var routes []handlers.Route
	for _, r := range inTenants {
		own, named := r, r
		own.Path, own.Access.Tenant = root+r.Path, true
		named.Path, named.Access.Tenant, named.Access.Platform = tenantRoot+r.Path, true, true
		named.Access.NewTenant = createsTenant[r.Method+" "+r.Path]
		routes = append(routes, own, named)
	}
	for _, r := range a.ownRoutes() {
		r.Path, r.Access.Tenant = root+r.Path, true
		routes = append(routes, r)
	}
	for _, r := range a.platformRoutes() {
		r.Path, r.Access.Platform = root+r.Path, true
		routes = append(routes, r)
	}
	return routes
}

// createsTenant lists the routes that can create the tenant that a platform key names by an unknown external id.
var createsTenant = map[string]bool{"POST /events": true, "POST /events/batch": true, "POST /portal-links": true, "POST /import": true}

// creating is a route whose path can name a tenant that does not exist.
func creating(r handlers.Route) handlers.Route {
	r.Access.NewTenant = true
	return r
}

func route(method, path string, scope access.Scope, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: path, Access: handlers.Access{Scope: scope}, Handler: h}
}

// emission is a route whose body is events: as large as the settings permit.
func emission(path string, maxBody int, h handlers.Handler) handlers.Route {
	r := route(http.MethodPost, path, access.EventsWrite, h)
	r.MaxBody = int64(maxBody)
	return r
}

// largest is how many bytes the data of an event can have.
func (s Settings) largest() int { return max(s.MaxPayload, s.MaxLarge) }

// largeTime is how long an event can take that is written to object storage on its way.
const largeTime = 30 * time.Second

// largest gives a route the time for large events, where there are any.
func (a *api) largest(r handlers.Route) handlers.Route {
	if a.Settings.MaxLarge > 0 {
		r.LargeTimeout = largeTime
	}
	return r
}

// maxImportBody bounds an import of event types, in bytes.
const maxImportBody = 8 << 20

func largeBody(r handlers.Route, most int64) handlers.Route {
	r.MaxBody = most
	return r
}

// slow is a route that does much in one request.
func slow(r handlers.Route, most time.Duration) handlers.Route {
	r.Timeout = most
	return r
}

// envelope bounds the bytes of an emission around its data.
const envelope = 16 << 10

// tenantRoutes act within one tenant. Each exists twice: for the tenant's own keys, and below the tenant's id for
// platform keys.
func (a *api) tenantRoutes() []handlers.Route {
	return slices.Concat(a.eventRoutes(), a.endpointRoutes(), a.deliveryRoutes(), a.accountRoutes())
}

// eventRoutes are the routes of events and their types.
func (a *api) eventRoutes() []handlers.Route {
	return []handlers.Route{
		a.largest(emission("/events", a.Settings.largest()+envelope, a.emitEvent)),
		a.largest(emission("/events/batch", a.Settings.BatchBytes, a.emitEvents)),
		route("GET", "/events", access.EventsRead, a.listEvents),
		route("GET", "/events/:event_id", access.EventsRead, a.getEvent),
		slow(route("GET", "/events/:event_id/data", access.EventsRead, a.getEventData), handlers.DataTimeout),
		route("GET", "/events/:event_id/deliveries", access.WebhooksRead, a.listEventDeliveries),
		route("GET", "/events/:event_id/routing", access.WebhooksRead, a.explainEvent),

		route("GET", "/catalogue", access.WebhooksRead, a.getCatalogue),
		route("GET", "/catalogue/export", access.WebhooksRead, a.exportCatalogue),
		route("GET", "/outbox/rejected", access.EventsRead, a.listRejected),
		route("POST", "/outbox/rejected/:rejected_id/retry", access.EventsWrite, a.retryRejected),
		route("DELETE", "/outbox/rejected/:rejected_id", access.EventsWrite, a.discardRejected),

		route("POST", "/event-types", access.WebhooksWrite, a.createEventType),
		route("GET", "/event-types", access.WebhooksRead, a.listEventTypes),
		largeBody(route("POST", "/event-types/import", access.WebhooksWrite, a.importEventTypes), maxImportBody),
		route("GET", "/event-types/:name", access.WebhooksRead, a.getEventType),
		route("PATCH", "/event-types/:name", access.WebhooksWrite, a.updateEventType),
		route("DELETE", "/event-types/:name", access.WebhooksWrite, a.deleteEventType),

		slow(largeBody(route("POST", "/import", access.WebhooksWrite, a.importAll), maxImportBody), importTime),
	}
}

// endpointRoutes are the routes of endpoints, listeners, and test inboxes.
func (a *api) endpointRoutes() []handlers.Route {
	return []handlers.Route{
		route("POST", "/endpoints", access.WebhooksWrite, a.createEndpoint),
		route("GET", "/endpoints", access.WebhooksRead, a.listEndpoints),
		route("GET", "/endpoints/:endpoint_id", access.WebhooksRead, a.getEndpoint),
		route("PATCH", "/endpoints/:endpoint_id", access.WebhooksWrite, a.updateEndpoint),
		route("DELETE", "/endpoints/:endpoint_id", access.WebhooksWrite, a.deleteEndpoint),
		route("POST", "/endpoints/:endpoint_id/verify", access.WebhooksWrite, a.verifyEndpoint),
		route("POST", "/endpoints/:endpoint_id/test", access.WebhooksWrite, a.testEndpoint),
		route("POST", "/endpoints/:endpoint_id/filter/dry-run", access.WebhooksWrite, a.dryRunFilter),
		route("GET", "/endpoints/:endpoint_id/secrets", access.WebhooksRead, a.listSecrets),
		route("POST", "/endpoints/:endpoint_id/rotate-secret", access.WebhooksWrite, a.rotateSecret),
		route("POST", "/endpoints/:endpoint_id/switch-secret", access.WebhooksWrite, a.switchSecret),
		route("POST", "/endpoints/:endpoint_id/secrets/:secret_id/check", access.WebhooksWrite, a.checkSecret),
		route("POST", "/endpoints/:endpoint_id/secrets/:secret_id/end", access.WebhooksWrite, a.endSecret),
		route("POST", "/endpoints/:endpoint_id/secrets/:secret_id/extend", access.WebhooksWrite, a.extendSecret),
		route("GET", "/signing-keys", access.WebhooksRead, a.listSigningKeys),
		route("POST", "/signing-keys/rotate", access.WebhooksWrite, a.rotateSigningKeys),
		slow(route("POST", "/endpoints/test-connection", access.WebhooksWrite, a.testNewConnection), connectionTime),
		slow(route("POST", "/endpoints/:endpoint_id/test-connection", access.WebhooksWrite, a.testConnection), connectionTime),
		route("POST", "/endpoints/:endpoint_id/transformation/try", access.WebhooksWrite, a.tryTransformation),
		route("POST", "/endpoints/:endpoint_id/certificate-request", access.WebhooksWrite, a.requestCertificate),
		route("POST", "/endpoints/:endpoint_id/mute", access.WebhooksWrite, a.muteEndpoint),
		route("POST", "/endpoints/:endpoint_id/unmute", access.WebhooksWrite, a.unmuteEndpoint),
		route("POST", "/endpoints/:endpoint_id/rewind", access.WebhooksWrite, a.rewindEndpoint),
		route("POST", "/endpoints/:endpoint_id/pause", access.WebhooksWrite, a.pauseEndpoint),
		route("POST", "/endpoints/:endpoint_id/resume", access.WebhooksWrite, a.resumeEndpoint),

		route("GET", "/subscriptions", access.WebhooksRead, a.listSubscriptions),
		slow(route("DELETE", "/subscriptions/:subscription_id", access.WebhooksWrite, a.revokeSubscription), connectionTime),

		route("POST", "/sources", access.EventsWrite, a.createSource),
		route("GET", "/sources", access.EventsRead, a.listSources),
		route("GET", "/sources/:source_id", access.EventsRead, a.getSource),
		route("PATCH", "/sources/:source_id", access.EventsWrite, a.updateSource),
		route("DELETE", "/sources/:source_id", access.EventsWrite, a.deleteSource),
		route("POST", "/sources/:source_id/pause", access.EventsWrite, a.pauseSource),
		route("POST", "/sources/:source_id/resume", access.EventsWrite, a.resumeSource),
		slow(largeBody(route("POST", "/sources/:source_id/test", access.EventsWrite, a.testSource), maxTestBody), connectionTime),

		route("POST", "/listeners", access.WebhooksWrite, a.createListener),
		route("POST", "/listeners/:endpoint_id/answers", access.WebhooksWrite, a.answerDelivery),

		route("POST", "/inboxes", access.WebhooksWrite, a.createInbox),
		route("GET", "/endpoints/:endpoint_id/inbox", access.WebhooksRead, a.getInbox),
		route("PATCH", "/endpoints/:endpoint_id/inbox", access.WebhooksWrite, a.updateInbox),
		route("GET", "/endpoints/:endpoint_id/inbox/requests", access.EventsRead, a.listInboxRequests),
		route("DELETE", "/endpoints/:endpoint_id/inbox/requests", access.WebhooksWrite, a.emptyInbox),
		route("GET", "/inbox-requests/:inbox_request_id", access.EventsRead, a.getInboxRequest),
	}
}

// deliveryRoutes are the routes of deliveries, bulk jobs, and analytics.
func (a *api) deliveryRoutes() []handlers.Route {
	return []handlers.Route{
		route("GET", "/deliveries", access.WebhooksRead, a.listDeliveries),
		route("GET", "/deliveries/:delivery_id", access.WebhooksRead, a.getDelivery),
		route("GET", "/deliveries/:delivery_id/attempts/:attempt_id", access.WebhooksRead, a.getAttempt),
		route("POST", "/deliveries/:delivery_id/retry-now", access.WebhooksWrite, a.retryDelivery),
		route("POST", "/deliveries/:delivery_id/cancel", access.WebhooksWrite, a.cancelDelivery),
		route("POST", "/deliveries/:delivery_id/replay", access.WebhooksWrite, a.replayDelivery).Replaying(),
		route("POST", "/deliveries/:delivery_id/archive", access.WebhooksWrite, a.archiveDelivery),
		route("POST", "/deliveries/:delivery_id/unarchive", access.WebhooksWrite, a.unarchiveDelivery),

		route("POST", "/deliveries/:delivery_id/shares", access.WebhooksWrite, a.createDeliveryShare),
		route("GET", "/deliveries/:delivery_id/shares", access.WebhooksRead, a.listDeliveryShares),
		route("DELETE", "/deliveries/:delivery_id/shares/:share_id", access.WebhooksWrite, a.revokeDeliveryShare),
		route("POST", "/deliveries/bulk", access.WebhooksWrite, a.actOnDeliveries),
		route("POST", "/replays", access.WebhooksWrite, a.createReplays),
		route("GET", "/endpoints/:endpoint_id/failures", access.WebhooksRead, a.listEndpointFailures),
		route("POST", "/endpoints/:endpoint_id/recover", access.WebhooksWrite, a.recoverEndpoint),
		route("POST", "/endpoints/:endpoint_id/replay-missing", access.WebhooksWrite, a.replayMissing),
		route("POST", "/events/:event_id/replay", access.WebhooksWrite, a.replayEvent).Replaying(),
		route("POST", "/events/:event_id/expunge", access.MembersWrite, a.expungeEvent).Expunging(),
		route("POST", "/expunges", access.MembersWrite, a.createExpunge),
		route("GET", "/bulk-jobs", access.WebhooksRead, a.listBulkJobs),
		route("GET", "/bulk-jobs/:job_id", access.WebhooksRead, a.getBulkJob),
		route("POST", "/bulk-jobs/:job_id/cancel", access.WebhooksWrite, a.cancelBulkJob),
		route("POST", "/bulk-jobs/:job_id/continue", access.WebhooksWrite, a.continueBulkJob),
		route("GET", "/health", access.WebhooksRead, a.getHealth),
		route("GET", "/analytics/deliveries", access.WebhooksRead, a.getAnalytics),
	}
}

// accountRoutes are the routes of keys, members, notices, and usage.
func (a *api) accountRoutes() []handlers.Route {
	return []handlers.Route{
		route("POST", "/keys", access.KeysWrite, a.createKey),
		route("GET", "/keys", access.KeysWrite, a.listKeys),
		route("GET", "/keys/:key_id", access.KeysWrite, a.getKey),
		route("DELETE", "/keys/:key_id", access.KeysWrite, a.revokeKey),

		route("GET", "/members", access.MembersWrite, a.listMembers),
		route("GET", "/members/:member_id", access.MembersWrite, a.getMember),
		route("PATCH", "/members/:member_id", access.MembersWrite, a.updateMember),
		route("DELETE", "/members/:member_id", access.MembersWrite, a.removeMember),
		route("POST", "/invitations", access.MembersWrite, a.createInvitation),
		route("GET", "/invitations", access.MembersWrite, a.listInvitations),
		route("DELETE", "/invitations/:invitation_id", access.MembersWrite, a.revokeInvitation),
		route("POST", "/portal-links", access.MembersWrite, a.createPortalLink),
		route("GET", "/portal-links", access.MembersWrite, a.listPortalLinks),
		route("DELETE", "/portal-links/:portal_link_id", access.MembersWrite, a.revokePortalLink),

		route("GET", "/notices", access.WebhooksRead, a.listNotices),
		route("GET", "/usage", access.EventsRead, a.getUsage),
		route("GET", "/history", access.WebhooksRead, a.listHistory),
		route("POST", "/history/:day/restore", access.WebhooksWrite, a.restoreHistory),
		route("GET", "/audit-log", access.MembersWrite, a.listAuditLog),
	}
}

// ownRoutes are for tenant keys alone; for platform keys the path has the tenant's id.
func (a *api) ownRoutes() []handlers.Route {
	return []handlers.Route{
		route("GET", "/tenant", "", a.getOwnTenant),
		route("PATCH", "/tenant", access.MembersWrite, a.updateOwnTenant),
	}
}

// platformRoutes act on tenants, not within one.
func (a *api) platformRoutes() []handlers.Route {
	return []handlers.Route{
		route("GET", "/platform", access.TenantsWrite, a.getPlatform),
		route("PATCH", "/platform", access.TenantsWrite, a.updatePlatform),
		route("GET", "/platform/overview", access.WebhooksRead, a.getPlatformOverview),
		route("GET", "/platform/pauses", access.TenantsWrite, a.listPauses),
		route("POST", "/platform/pauses", access.TenantsWrite, a.pauseDispatch),
		route("POST", "/platform/pauses/:pause_id/resume", access.TenantsWrite, a.resumeDispatch),
		route("GET", "/platform/alerts", access.TenantsWrite, a.listPlatformAlerts),
		route("GET", "/platform/egress-proxies", access.TenantsWrite, a.listEgressProxies),
		route("PUT", "/platform/egress-proxies/:owner", access.TenantsWrite, a.setEgressProxy),
		route("DELETE", "/platform/egress-proxies/:owner", access.TenantsWrite, a.removeEgressProxy),
		route("POST", "/tenants", access.TenantsWrite, a.createTenant),
		route("GET", "/tenants", access.TenantsWrite, a.listTenants),
		route("GET", "/tenants/:"+handlers.TenantParam, access.TenantsWrite, a.getTenant),
		route("PATCH", "/tenants/:"+handlers.TenantParam, access.TenantsWrite, a.updateTenant),
		creating(route("PUT", "/tenants/:"+handlers.TenantParam, access.TenantsWrite, a.putTenant)),
		route("DELETE", "/tenants/:"+handlers.TenantParam, access.TenantsWrite, a.deleteTenant),
		route("GET", "/tenants/:"+handlers.TenantParam+"/limits", access.TenantsWrite, a.getTenantLimits),
		route("PATCH", "/tenants/:"+handlers.TenantParam+"/limits", access.TenantsWrite, a.updateTenantLimits),
		route("GET", "/tenants/:"+handlers.TenantParam+"/sso", access.TenantsWrite, a.getTenantSSO),
		route("PATCH", "/tenants/:"+handlers.TenantParam+"/sso", access.TenantsWrite, a.updateTenantSSO),
		route("DELETE", "/tenants/:"+handlers.TenantParam+"/sso", access.TenantsWrite, a.removeTenantSSO),
		route("GET", "/tenants/:"+handlers.TenantParam+"/mcp-access", access.TenantsWrite, a.getMCPAccess),
		route("PATCH", "/tenants/:"+handlers.TenantParam+"/mcp-access", access.TenantsWrite, a.updateMCPAccess),
		route("POST", "/tenants/:"+handlers.TenantParam+"/export", access.TenantsWrite, a.exportTenant).Endless(),
		route("POST", "/tenants/:"+handlers.TenantParam+"/suspend", access.TenantsWrite, a.suspendTenant),
		route("POST", "/tenants/:"+handlers.TenantParam+"/resume", access.TenantsWrite, a.resumeTenant),
	}
}
