package pages

import (
	"net/url"
	"slices"
	"time"

	"github.com/a-h/templ"

	"posthorn/domain/access"
	"posthorn/domain/account"
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
	Shell  layout.Shell
	Root   string
	Closed bool // operators who act for a tenant create no keys
	KeyFields
}

// KeyFields are the fields of a new key of a tenant or of the platform.
type KeyFields struct {
	Name, Lasts, Expires components.FieldProps
	Scopes               []components.Option
	Wrong                map[string]string
}

// NewKeyFields are the fields as they were sent, with what is wrong with them. scopes are those to choose from.
func NewKeyFields(form url.Values, wrong map[string]string, placeholder string, scopes []access.Scope) KeyFields {
	f := KeyFields{
		Wrong: wrong,
		Name: components.FieldProps{
			Name:        "name",
			Label:       "Name",
			Value:       form.Get("name"),
			Error:       wrong["name"],
			Required:    true,
			MaxLength:   account.MaxName,
			Placeholder: placeholder,
			Hint:        "What will use this key? Helps you know which one to revoke.",
		},
		Lasts: components.FieldProps{Name: "expires_in", Label: "Expires", Value: form.Get("expires_in"), Width: "medium"},
		Expires: components.FieldProps{
			Name:  "expires_at",
			Label: "Expires at (UTC)",
			Type:  "datetime-local",
			Attrs: templ.Attributes{"data-utc": true},
			Value: form.Get("expires_at"),
			Error: wrong["expires_at"],
			Width: "medium",
		},
	}
	if f.Expires.Value != "" {
		f.Lasts.Value = components.OtherTime
	}
	for _, s := range scopes {
		f.Scopes = append(f.Scopes, components.Option{
			Value:    string(s),
			Label:    string(s),
			Hint:     scopeHints[s],
			Selected: slices.Contains(form["scopes"], string(s)),
		})
	}
	return f
}

// expiries are when a new key can expire.
func expiries() []components.Option {
	return []components.Option{
		{Value: "never", Label: "Never"},
		{Value: "30d", Label: "In 30 days"},
		{Value: "90d", Label: "In 90 days"},
		{Value: "365d", Label: "In 1 year"},
		{Value: components.OtherTime, Label: "At another time"},
	}
}

// KeyMadeView shows a new key, once.
type KeyMadeView struct {
	Shell layout.Shell
	Root  string
	Name  string
	Text  string
}

// scopeHints say what each scope permits.
var scopeHints = map[access.Scope]string{
	access.EventsWrite:   "Emit events. This is all most products need.",
	access.EventsRead:    "Read events and their data.",
	access.WebhooksRead:  "Read endpoints, deliveries, and attempts.",
	access.WebhooksWrite: "Create and change endpoints; replay, retry, and cancel deliveries.",
	access.KeysWrite:     "Create and revoke API keys.",
	access.TenantsWrite:  "Create, change, suspend, and delete tenants. Only for platform keys.",
	access.MembersWrite:  "Invite and change members, change the tenant's settings, and expunge payloads.",
}
