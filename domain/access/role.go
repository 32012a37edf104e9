package access

import (
	"slices"

	"posthorn/domain/fault"
)

// Role is what a member is in a tenant. The zero Role has no permission.
type Role string

// The roles.
const (
	Owner     Role = "owner"
	Admin     Role = "admin"
	Developer Role = "developer"
	Viewer    Role = "viewer"
)

// Roles are all roles, the mightiest first.
func Roles() []Role { return []Role{Owner, Admin, Developer, Viewer} }

// ParseRole reads a role's name. The error is a *fault.Error with code role_unknown and field role.
func ParseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fault.InvalidField("role", "role_unknown", "Unknown role. Use owner, admin, developer, or viewer.")
}

// Action is something that a member does in the dashboard.
type Action string

// The actions, in the order of the table in grants.
const (
	Read              Action = "read"               // endpoints, deliveries, events, health
	ReadMembers       Action = "read_members"       // who the members are; closed to portal links
	ReadPayloads      Action = "read_payloads"      // what was sent, and the response
	ReadEventTypes    Action = "read_event_types"   // the catalog, with schemas and examples
	ChangeEventTypes  Action = "change_event_types" // add, change, delete, import
	ChangeEndpoints   Action = "change_endpoints"   // create, change, pause, resume, verify, test
	ActOnDeliveries   Action = "act_on_deliveries"  // replay, retry, cancel, archive
	RotateSecrets     Action = "rotate_secrets"     // and see a new secret, once
	ManageKeys        Action = "manage_keys"        // API keys
	ManageMembers     Action = "manage_members"     // invite, change, remove; see MaySetRole
	ChangeSettings    Action = "change_settings"    // retention among them
	Expunge           Action = "expunge"            // destroy payloads before their time
	DeleteTenant      Action = "delete_tenant"      //
	TransferOwnership Action = "transfer_ownership" //
	ManageSSO         Action = "manage_sso"         // the identity provider decides who enters: as mighty as an owner
)

// Reads reports whether an action changes nothing.
func (a Action) Reads() bool {
	return a == Read || a == ReadMembers || a == ReadPayloads || a == ReadEventTypes
}

// grants is the table of actions by role, a column for each role.
var grants = map[Action]struct{ owner, admin, developer, viewer bool }{
	Read:              {true, true, true, true},
	ReadMembers:       {true, true, true, true},
	ReadPayloads:      {true, true, true, false}, // a viewer by setting: MayReadPayloads
	ReadEventTypes:    {true, true, true, true},
	ChangeEventTypes:  {true, true, true, false},
	ChangeEndpoints:   {true, true, true, false},
	ActOnDeliveries:   {true, true, true, false},
	RotateSecrets:     {true, true, true, false},
	ManageKeys:        {true, true, true, false},
	ManageMembers:     {true, true, false, false},
	ChangeSettings:    {true, true, false, false},
	Expunge:           {true, true, false, false},
	DeleteTenant:      {true, false, false, false},
	TransferOwnership: {true, false, false, false},
	ManageSSO:         {true, false, false, false},
}

// May reports whether a role has the permission for an action, whatever the tenant's settings are. An unknown role or
// action gives false.
func (r Role) May(a Action) bool {
	row := grants[a]
	switch r {
	case Owner:
		return row.owner
	case Admin:
		return row.admin
	case Developer:
		return row.developer
	case Viewer:
		return row.viewer
	}
	return false
}

// MayReadPayloads is May(ReadPayloads) under the tenant's setting that lets viewers read payloads and responses too.
func (r Role) MayReadPayloads(viewersMay bool) bool {
	return r.May(ReadPayloads) || r == Viewer && viewersMay
}

// Parts are what a portal link opens besides what its role permits. The zero value hides all of them.
type Parts struct {
	Secrets    bool // of all endpoints; without it, those of endpoints that the link created
	Replay     bool // replay, retry, cancel, and archive deliveries
	EventTypes bool // the catalog
	Payloads   bool // what was sent, and the response
}

// DefaultParts are the parts of a link that names none.
var DefaultParts = Parts{Replay: true, EventTypes: true, Payloads: true}

// MayByPortal is May for a visitor with a portal link. What shows secrets needs a link that allows them. An API key can
// do everything that a link can hide, so creating one needs a link that hides nothing. Ownership and deleting the
// tenant are closed, since no named person would have done it. So are members: the provider's people are none of their
// customers' business.
func (r Role) MayByPortal(a Action, parts Parts) bool {
	open := true
	switch a {
	case ReadMembers, ManageMembers, DeleteTenant, TransferOwnership, Expunge, ManageSSO:
		open = false
	case RotateSecrets:
		open = parts.Secrets
	case ManageKeys:
		open = parts == Parts{Secrets: true, Replay: true, EventTypes: true, Payloads: true}
	case ActOnDeliveries:
		open = parts.Replay
	case ReadEventTypes, ChangeEventTypes:
		open = parts.EventTypes
	case ReadPayloads:
		open = parts.Payloads
	}
	return open && r.May(a)
}

// MayComeByPortal reports whether a portal link can give the role: all but owner.
func (r Role) MayComeByPortal() bool { return r == Admin || r == Developer || r == Viewer }

// MaySetRole reports whether a member can give another a role: from is the other's present role, empty for an
// invitation, and to is the new one, empty for a removal. Members who manage members can, but only owners create and
// remove owners, or an admin could rise by inviting themselves.
func (r Role) MaySetRole(from, to Role) bool {
	if from == Owner || to == Owner {
		return r.May(TransferOwnership)
	}
	return r.May(ManageMembers)
}

// GrantNeeds returns the action that somebody needs who creates an API key with a scope. A key with members:write can
// change members and settings and destroy payloads, so a developer or the visitor of a portal link could rise by one.
func GrantNeeds(s Scope) Action {
	if s == MembersWrite {
		return ManageMembers
	}
	return ManageKeys
}

// KeepsAnOwner reports whether a tenant with so many owners has one left after one of its members changes from a role
// to another, empty for one who leaves.
func KeepsAnOwner(owners int, from, to Role) bool {
	return from != Owner || to == Owner || owners > 1
}
