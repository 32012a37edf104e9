package show

import (
	"encoding/json"
	"slices"
	"time"

	"posthorn/domain/id"
)

// AuditEntry is one entry of the audit log, with the present names of its author and its object.
type AuditEntry struct {
	ID         id.UUID
	Tenant     *id.UUID // nil: concerns no tenant
	TenantName string
	At         time.Time
	ActorKind  string
	ActorID    string
	ActorName  string // as it was recorded: of operators alone
	Actor      string // the present name of the author; empty: unknown
	Action     string
	ObjectKind string
	ObjectID   string
	Object     string // the present name of the object, else the name in the entry; empty: unknown
	Address    string
	Reason     string
	Details    json.RawMessage
}

// hiddenInPortals are the kinds whose names a person with a portal link doesn't see: the provider's people and keys.
var hiddenInPortals = []string{"member", "invitation", "key", "portal_link"}

// ForPortal is the entry as a person with a portal link sees it: without the names and places of the provider's people.
func (e AuditEntry) ForPortal() AuditEntry {
	if slices.Contains(hiddenInPortals, e.ObjectKind) {
		e.Object = ""
	}
	if slices.Contains(hiddenInPortals, e.ActorKind) {
		e.Actor = ""
	}
	if e.ActorKind != "portal" {
		e.Address = ""
	}
	e.ActorName = ""
	return e
}
