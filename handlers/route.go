package handlers

import (
	"time"

	"posthorn/domain/access"
)

// Route is one row of a route table. Only paths in a table are reachable.
type Route struct {
	Method string
	Path   string // as gin writes it: /api/v1/events/:event_id
	Access Access
	// MaxBody bounds the request body, in bytes; 0 is defaultMaxBody.
	MaxBody int64
	// Changes says that a GET changes something. It has no HEAD, because programs that only look send that.
	Changes bool
	// Replays says that the route replays what its path names. That can be of a day in storage, as with every GET.
	Replays bool
	// Expunges says the same of a route that expunges what its path names.
	Expunges bool
	// Queued says that the request waits for one of the few places that strangers' requests have, with its whole body.
	// It is for handlers that use the database and wait for nobody outside.
	Queued bool
	// Refuse responds when a call is rejected before the handler runs; nil responds with a problem.
	Refuse func(*Call, error) error
	// Timeout is how long the handler can take; 0 is DefaultTimeout, less than 0 is unlimited (streams).
	Timeout time.Duration
	// LargeTimeout is Timeout for a body that is declared larger than the data of an event usually is; 0: the same.
	LargeTimeout time.Duration
	Handler      Handler
}

// Replaying is the route that replays what its path names.
func (r Route) Replaying() Route {
	r.Replays = true
	return r
}

// Expunging is the route that expunges what its path names.
func (r Route) Expunging() Route {
	r.Expunges = true
	return r
}

// Endless is the route with a response that can take any time: a stream.
func (r Route) Endless() Route {
	r.Timeout = -1
	return r
}

// Handler handles a call. It writes the response, or returns an error, which the kit turns into a problem.
type Handler func(*Call) error

// Access is who can call a route. A route of the API has a Scope or nothing, Tenant or Platform. A page has Session
// or Operator. Public is for both.
type Access struct {
	Scope access.Scope // the scope that the key must have; empty: any key
	// Tenant says that the route acts within one tenant: the key's own, or for a platform key the one that the path
	// names.
	Tenant   bool
	Platform bool // platform keys only
	// NewTenant says that a platform key can name a tenant that does not exist. The handler creates it or rejects the
	// call.
	NewTenant bool
	Public    bool // everybody, without a key
	// Key admits every valid key. What the handler calls checks the key's scopes and its tenant.
	Key bool
	// Tokens also admits people of the tenant's product, with an access token of its authorization server, to a route
	// whose path names the tenant. They have no scopes.
	Tokens bool

	// Session admits signed-in people. If the path names a tenant, it admits its members and portal links into it.
	Session bool
	// Action is what the role in the tenant must permit; empty: any role.
	Action   access.Action
	Any      bool // with a tenant: also for a session that a tenant's identity provider started
	Fresh    bool // only after a recent sign-in: for changes of the sign-in itself
	Own      bool // changes something of the person's own, also while the tenant is suspended
	Framed   bool // shown in a frame of another page of this server, and nowhere else
	Operator bool // operators only
}

// page reports whether browsers call the route.
func (a Access) page() bool { return a.Session || a.Operator }

// TenantParam is the path parameter by which a platform key names the tenant.
const TenantParam = "tenant_id"

// ConsoleTenantParam is the path parameter that names a tenant in the console. It differs from the one that admits
// members, because operators are members of no tenant.
const ConsoleTenantParam = "id"

// EndpointParam is the path parameter that names an endpoint.
const EndpointParam = "endpoint_id"

// DefaultTimeout is how long a caller waits, at most, before it gets a 503 (SECURITY, "Faults").
const DefaultTimeout = 5 * time.Second

// defaultMaxBody bounds the body of a management call: 1 MiB.
const defaultMaxBody = 1 << 20
