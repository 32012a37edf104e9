package show

import (
	"time"

	"posthorn/domain/id"
)

// DeliveryShare is a read-only link to one delivery. Times that it does not have are zero.
type DeliveryShare struct {
	ID            id.UUID
	DeliveryID    id.UUID
	Brand, Accent string // of the portal in which it was created; empty: none
	CreatedAt     time.Time
	ExpiresAt     time.Time
	OpenedAt      time.Time // the first time
}
