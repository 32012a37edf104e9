package handlers

import (
	"time"

	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// Actor is the caller of a request. API keys call the API. People use pages, where Session says who is signed in: a
// person, an operator, or somebody who followed a portal link.
type Actor struct {
	Key    id.UUID // the API key; zero on pages
	Tenant id.UUID // the tenant of the call; zero on routes without a tenant
	// NewTenant is the external id of a tenant that does not exist yet, on a route that can create it. Tenant is
	// zero then.
	NewTenant string
	Scopes    access.Scopes
	Platform  bool // a platform key, which can act for any tenant
	// Address is where the request comes from, without the port: the connection, or what a trusted proxy reports.
	Address   string
	RequestID string

	Session    *Session    // nil for API keys and for anonymous callers
	Person     Person      // zero for operators and portal links
	Operator   Person      // set in the console, and for an operator who views a tenant's dashboard
	Portal     *Portal     // set behind a portal link
	Viewing    *Viewing    // set for an operator who views the tenant's dashboard
	Member     id.UUID     // the person's membership in Tenant; zero without one
	Role       access.Role // in Tenant
	TenantName string
	Suspended  bool // the tenant is read-only
}

// Person is the person who is signed in.
type Person struct {
	ID    id.UUID
	Name  string
	Email string
	TOTP  bool // has a second factor
}

// Portal is the link through which somebody opened a tenant's dashboard.
type Portal struct {
	ID           id.UUID
	Brand        string // empty: Posthorn's own
	Accent       string // a color as #rrggbb, or empty
	ReturnURL    string // where "back" leads, or empty
	AllowSecrets bool
}

// Viewing is an operator's visit to a tenant's dashboard.
type Viewing struct {
	Until  time.Time
	Reason string
	Acting bool // can change things too
}

// Session is the browser's session.
type Session struct {
	ID   id.UUID
	Kind account.Kind
	// Pending says that the second factor is missing. A pending session opens only the page that asks for it.
	Pending bool
	Fresh   bool // the person authenticated within the last minutes
	// Only is the tenant whose identity provider started the session. The session opens this tenant and nothing else of
	// the person's: the provider speaks for no other. Nil: the person signed in here.
	Only *id.UUID
}

// May reports whether the actor can do an action in the tenant now. A suspended tenant can be read and not changed.
func (a *Actor) May(action access.Action) bool {
	return a.mayUnlessSuspended(action) && (!a.Suspended || action.Reads())
}

// mayUnlessSuspended is May without the check of the tenant's state. Portal links see secrets only if they were created
// with that right, and never change members or owners or delete the tenant. Operators who view the dashboard can do
// what access.MayByView allows.
func (a *Actor) mayUnlessSuspended(action access.Action) bool {
	if a.Viewing != nil {
		return access.MayByView(action, a.Viewing.Acting)
	}
	if a.Portal != nil {
		return a.Role.MayByPortal(action, a.Portal.AllowSecrets)
	}
	return a.Role.May(action)
}

// lastSeenEvery is how often the last use of a session is stored.
const lastSeenEvery = time.Minute
