package handlers

import (
	"time"

	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// Actor is who calls, and from where. A key acts through the API; everybody else through pages, where Session says whose
// they are: a person, an operator, or somebody who came by a portal link.
type Actor struct {
	Key       id.UUID // the API key; zero on pages
	Tenant    id.UUID // the tenant acted in; zero on routes that act in none
	Scopes    access.Scopes
	Platform  bool   // a platform key, which may act for any tenant
	Address   string // where the request comes from, without the port: the connection, or what a trusted proxy says
	RequestID string

	Session    *Session    // nil for keys, and for who is not signed in
	Person     Person      // zero for operators and portal links
	Operator   Person      // zero but in the console, and for an operator who looks at the tenant's dashboard
	Portal     *Portal     // nil but behind a portal link
	Viewing    *Viewing    // nil but for an operator who looks at the tenant's dashboard
	Member     id.UUID     // the person's membership in Tenant; zero where there is none
	Role       access.Role // in Tenant
	TenantName string
	Suspended  bool // the tenant can only be read
}

// Person is who is signed in.
type Person struct {
	ID    id.UUID
	Name  string
	Email string
	TOTP  bool // has a second factor
}

// Portal is the link by which somebody came into a tenant's dashboard.
type Portal struct {
	ID           id.UUID
	Brand        string // empty: Posthorn's own
	Accent       string // a colour as #rrggbb, or empty
	ReturnURL    string // where "back" leads, or empty
	AllowSecrets bool
}

// Viewing is an operator's look at a tenant's dashboard.
type Viewing struct {
	Until  time.Time
	Reason string
	Acting bool // may change things too
}

// Session is the browser's session.
type Session struct {
	ID      id.UUID
	Kind    account.Kind
	Pending bool // the second factor is still to come; such a session opens no page but that one
	Fresh   bool // who this is was proven just now
}

// May reports whether the actor of a page may do an action in its tenant now: while the tenant is suspended, it is read and not
// changed.
func (a *Actor) May(action access.Action) bool {
	return a.mayUnlessSuspended(action) && (!a.Suspended || action.Reads())
}

// mayUnlessSuspended is May whatever the tenant's state. What shows secrets is closed to portal links
// that were not made for it, and members, ownership and the tenant's end are closed to all of them. An operator who looks at
// the dashboard is offered what access.MayByView says.
func (a *Actor) mayUnlessSuspended(action access.Action) bool {
	if a.Viewing != nil {
		return access.MayByView(action, a.Viewing.Acting)
	}
	if a.Portal != nil {
		return a.Role.MayByPortal(action, a.Portal.AllowSecrets)
	}
	return a.Role.May(action)
}

// lastSeenEvery is how often a session's last use is written down.
const lastSeenEvery = time.Minute
