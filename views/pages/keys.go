package pages

import (
	"time"

	"posthorn/domain/access"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// KeysView is the list of a tenant's API keys.
type KeysView struct {
	Shell        layout.Shell
	Root         string
	Rows         []show.Key
	Newer, Older string
	Manages      bool
	Now          time.Time
}

// KeyFormView is the form of a new key.
type KeyFormView struct {
	Shell   layout.Shell
	Root    string
	Wrong   map[string]string
	Closed  bool // operators who act for a tenant create no keys
	Name    components.FieldProps
	Expires components.FieldProps
	Scopes  []components.Option
}

// KeyMadeView shows a new key, once.
type KeyMadeView struct {
	Shell layout.Shell
	Root  string
	Name  string
	Text  string
}

// ScopeHints say what each scope permits.
var ScopeHints = map[access.Scope]string{
	access.EventsWrite:   "Emit events. This is all most products need.",
	access.EventsRead:    "Read events and their data.",
	access.WebhooksRead:  "Read endpoints, deliveries, and attempts.",
	access.WebhooksWrite: "Create and change endpoints; replay, retry, and cancel deliveries.",
	access.KeysWrite:     "Create and revoke API keys.",
	access.TenantsWrite:  "Create, change, suspend, and delete tenants. Only for platform keys.",
	access.MembersWrite:  "Invite and change members, change the tenant's settings, and expunge payloads.",
}
