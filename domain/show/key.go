package show

import (
	"time"

	"posthorn/domain/id"
)

// Key is an API key without its text.
type Key struct {
	ID         id.UUID
	Tenant     *id.UUID // nil: a platform key
	Name       string
	Prefix     string // the part of its text that lists show
	Scopes     []string
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
}

// KeyState is whether a key can be used.
type KeyState string

// The states of keys.
const (
	KeyLive    KeyState = "live"
	KeyExpired KeyState = "expired"
	KeyRevoked KeyState = "revoked"
)

// State is the key's state at a time.
func (k Key) State(now time.Time) KeyState {
	switch {
	case k.RevokedAt != nil:
		return KeyRevoked
	case k.ExpiresAt != nil && !k.ExpiresAt.After(now):
		return KeyExpired
	}
	return KeyLive
}
