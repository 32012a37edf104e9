package handlers

import (
	"time"

	"posthorn/domain/access"
)

// Route is one row of a route table. Nothing is reachable that no row names.
type Route struct {
	Method string
	Path   string // as gin writes it: /api/v1/events/:event_id
	Access Access
	// MaxBody bounds the request body, in bytes; 0 is DefaultMaxBody.
	MaxBody int64
	// Timeout is how long the handler may take; 0 is DefaultTimeout, less than 0 is without end (streams).
	Timeout time.Duration
	Handler Handler
}

// Endless is the route with an answer that may take any time: a stream.
func (r Route) Endless() Route {
	r.Timeout = -1
	return r
}

// Handler answers a call. What it returns as an error has not been written yet: the kit turns it into a problem.
type Handler func(*Call) error

// Access is who may call a route. A route of the API has a Scope or nothing, Tenant or Platform; a page has Session or
// Operator; Public is for both.
type Access struct {
	Scope    access.Scope // what the key must carry; empty: any key
	Tenant   bool         // acts within one tenant: the key's own, or for a platform key the one that the path names
	Platform bool         // platform keys alone
	Public   bool         // everybody, without a key

	Session  bool          // whoever is signed in; where the path names a tenant, its members alone, and portal links into it
	Action   access.Action // what the role in that tenant must allow; empty: any role
	Fresh    bool          // who has just proven who they are: what changes the proof itself
	Own      bool          // changes what is the person's own, also while the tenant is suspended
	Operator bool          // operators alone
}

// page reports whether people's browsers call the route.
func (a Access) page() bool { return a.Session || a.Operator }

// TenantParam is the path parameter by which a platform key names the tenant.
const TenantParam = "tenant_id"

// DefaultTimeout is how long a caller is kept waiting, at most, before it hears 503 (SECURITY, "Faults").
const DefaultTimeout = 5 * time.Second

// DefaultMaxBody bounds the body of a management call: 1 MiB.
const DefaultMaxBody = 1 << 20
