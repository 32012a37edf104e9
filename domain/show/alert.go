package show

import (
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// AlertKind is where notices of a kind are sent.
type AlertKind struct {
	Kind       notice.Kind
	Muted      bool     // by the tenant: they are only on the page of notices
	Recipients []string // of mail
	Channels   []AlertChannel
}

// AlertChannel is an endpoint that asks for notices of its own tenant.
type AlertChannel struct {
	ID   id.UUID
	Name string
}
