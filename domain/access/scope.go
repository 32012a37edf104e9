// Package access holds permissions: roles and the scopes of API keys.
package access

import "slices"

// Scope is a permission that an API key carries. None includes another.
type Scope string

// The scopes. TenantsWrite is for platform keys alone.
const (
	EventsWrite   Scope = "events:write"
	EventsRead    Scope = "events:read"
	WebhooksRead  Scope = "webhooks:read"
	WebhooksWrite Scope = "webhooks:write"
	KeysWrite     Scope = "keys:write"
	MembersWrite  Scope = "members:write" // members and the tenant's settings
	TenantsWrite  Scope = "tenants:write"
)

// FeedsRead lets a key read feeds. No key is given it: EventsRead includes it, and the token of a consumer has it for
// one feed alone.
const FeedsRead Scope = "feeds:read"

// TenantScopes are the scopes that a tenant's key can have.
func TenantScopes() []Scope {
	return []Scope{EventsWrite, EventsRead, WebhooksRead, WebhooksWrite, KeysWrite, MembersWrite}
}

// PlatformScopes are the scopes that a platform key can have: all.
func PlatformScopes() []Scope { return append(TenantScopes(), TenantsWrite) }

// Scopes are the permissions of one key.
type Scopes []Scope

// Has reports whether the key carries a scope.
func (s Scopes) Has(wanted Scope) bool { return slices.Contains(s, wanted) }

// Lacks lists those of wanted that the key does not carry, in their order.
func (s Scopes) Lacks(wanted Scopes) Scopes {
	var missing Scopes
	for _, w := range wanted {
		if !s.Has(w) {
			missing = append(missing, w)
		}
	}
	return missing
}

// ParseScopes reads scope names, each kept once in the order given. unknown lists those that are not among allowed.
func ParseScopes(names []string, allowed []Scope) (scopes Scopes, unknown []string) {
	for _, n := range names {
		switch s := Scope(n); {
		case !slices.Contains(allowed, s):
			unknown = append(unknown, n)
		case !scopes.Has(s):
			scopes = append(scopes, s)
		}
	}
	return scopes, unknown
}

// Names is the scopes as texts, as they are stored.
func (s Scopes) Names() []string {
	names := make([]string, len(s))
	for i, one := range s {
		names[i] = string(one)
	}
	return names
}
