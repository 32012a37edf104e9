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
	Feed      id.UUID // of the token of a feed's consumer: the only feed that it reads; else zero
	Consumer  string  // its name
	Principal string  // of an access token: the person of the tenant's product. Then there is no key and no scope
	Platform  bool    // a platform key, which can act for any tenant
	// Address is where the request comes from, without the port: the connection, or what a trusted proxy reports.
	Address   string
	RequestID string

	Session    *account.Session      // nil for API keys and for anonymous callers
	Person     account.User          // zero for operators and portal links
	Operator   account.User          // set in the console, and for an operator who views a tenant's dashboard
	Portal     *account.PortalAccess // set behind a portal link
	Viewing    *account.View         // set for an operator who views the tenant's dashboard
	Member     id.UUID               // the person's membership in Tenant; zero without one
	Role       access.Role           // in Tenant
	TenantName string
	Suspended  bool // the tenant is read-only
}

// is makes the holder of a key the actor.
func (a *Actor) is(who *holder) {
	a.Key, a.Scopes, a.Platform, a.Feed, a.Consumer = who.key, who.scopes, who.tenant.IsZero(), who.feed, who.consumer
	a.Principal = who.principal
}

// May reports whether the actor can do an action in the tenant now. A suspended tenant can be read and not changed.
func (a *Actor) May(action access.Action) bool {
	return a.mayUnlessSuspended(action) && (!a.Suspended || action.Reads())
}

// mayUnlessSuspended is May without the check of the tenant's state. Portal links open the parts that they were created
// with, and never change members or owners or delete the tenant. Operators who view the dashboard can do what
// access.MayByView allows.
func (a *Actor) mayUnlessSuspended(action access.Action) bool {
	if a.Viewing != nil {
		return access.MayByView(action, a.Viewing.Acting)
	}
	if a.Portal != nil {
		return a.Role.MayByPortal(action, a.Portal.Parts)
	}
	return a.Role.May(action)
}

// lastSeenEvery is how often the last use of a session is stored.
const lastSeenEvery = time.Minute
