package show

import (
	"time"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// PortalLink is a link that signs a provider's customer in to a tenant's dashboard, without its token.
type PortalLink struct {
	ID        id.UUID
	Role      access.Role
	Brand     string
	Accent    string
	ReturnURL string
	Parts     access.Parts
	Session   time.Duration // how long a session lasts that the link started
	CreatedAt time.Time
	OpenUntil time.Time
	OpenedAt  *time.Time
	RevokedAt *time.Time
}

// LinkState is what became of a portal link.
type LinkState string

// The states of portal links.
const (
	LinkWaiting     LinkState = "waiting"
	LinkInUse       LinkState = "in use"
	LinkOver        LinkState = "over"
	LinkNeverOpened LinkState = "never opened"
	LinkRevoked     LinkState = "revoked"
)

// Live reports whether the link can be opened, or its session lasts.
func (s LinkState) Live() bool { return s == LinkWaiting || s == LinkInUse }

// State is the link's state at a time.
func (l PortalLink) State(now time.Time) LinkState {
	switch {
	case l.RevokedAt != nil:
		return LinkRevoked
	case l.OpenedAt != nil && l.OpenedAt.Add(l.Session).Before(now):
		return LinkOver
	case l.OpenedAt != nil:
		return LinkInUse
	case l.OpenUntil.Before(now):
		return LinkNeverOpened
	}
	return LinkWaiting
}
