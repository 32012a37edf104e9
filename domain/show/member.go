package show

import (
	"time"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// Member is a person in a tenant.
type Member struct {
	ID           id.UUID
	Person       id.UUID
	Name         string
	Email        string
	Role         access.Role
	RoleKept     string // why the identity provider did not set the role; empty: it did, or sets none
	SecondFactor bool
	Disabled     bool
	CreatedAt    time.Time
}

// Invitation is an invitation that nobody has accepted yet.
type Invitation struct {
	ID         id.UUID
	Email      string
	Role       access.Role
	Expired    bool
	MailFailed bool
	CreatedAt  time.Time
	ExpiresAt  time.Time
}
