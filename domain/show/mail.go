package show

import (
	"time"

	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// Mail is a mail of the outbox, without its content.
type Mail struct {
	ID         id.UUID
	Tenant     *id.UUID // nil: concerns a person or the platform
	TenantName string
	Recipient  string
	Kind       mail.Kind
	State      string // waiting, sent, failed, dropped
	Tries      int
	LastError  string
	CreatedAt  time.Time
}
