package pages

import (
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// MembersView lists a tenant's members and invitations.
type MembersView struct {
	Shell           layout.Shell
	Root            string // the page's own path
	InvitationsRoot string
	LeavePath       string
	Members         []show.Member
	Invitations     []show.Invitation
	MayManage       bool
	Own             id.UUID             // the reader's membership
	Of              access.Role         // the reader's
	Roles           []components.Option // the roles that the reader can assign
	Email, Role     components.FieldProps
	Wrong           string // why the last action was rejected
}

// mayChange reports whether the reader can change a member.
func (v MembersView) mayChange(m show.Member) bool {
	return v.MayManage && v.Of.MaySetRole(m.Role, access.Viewer)
}

// chosen are the roles with a member's own selected.
func (v MembersView) chosen(role access.Role) []components.Option {
	options := make([]components.Option, len(v.Roles))
	for i, o := range v.Roles {
		o.Selected = o.Value == string(role)
		options[i] = o
	}
	return options
}

// SettingsView is a tenant's settings.
type SettingsView struct {
	Shell           layout.Shell
	Root            string
	Name, Retention components.FieldProps
	StrictTypes     bool
	Retries         components.FieldProps // the default schedule of new endpoints
	RetryOptions    []components.Option
	Usage           components.UsageProps
	Contacts        components.FieldProps
	Unconfirmed     []string // contacts that get no notices yet
	Digest          bool
	ViewersRead     bool // payloads and responses
	MayTransfer     bool
	SSOPath         string // empty for readers without permission
	DeletePath      string // empty for readers without permission
	NewOwner        components.FieldProps
	Confirm         components.FieldProps // of the transfer
	Seen            string                // the version that the page shows
	Wrong           string
	Beyond          BeyondView // a shorter retention needs this confirmation; the zero value: none
	Candidates      []components.Option
}

// BeyondView asks for confirmation of what a shorter retention deletes.
type BeyondView struct {
	Days   int
	Events int64
	Text   string
}
