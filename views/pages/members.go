package pages

import (
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// MembersView lists a tenant's members and invitations.
type MembersView struct {
	Shell           layout.Shell
	Root            string // the page's own path
	InvitationsRoot string
	LeavePath       string
	Links           string // the address of the portal links
	Members         []MemberLine
	Invitations     []InvitationLine
	MayManage       bool
	Roles           []components.Option // the roles that the reader can assign
	Email, Role     components.FieldProps
	Wrong           string // why the last action was rejected
}

// MemberLine is one member.
type MemberLine struct {
	ID, Name, Email, Role string
	Since                 time.Time
	TOTP, Disabled, Own   bool
	MayChange             bool
	RoleKept              string // why the provider did not set the role; empty: it did, or sets none
}

// InvitationLine is one invitation.
type InvitationLine struct {
	ID, Email, Role string
	Expires         time.Time
	Expired         bool
	MailFailed      string // a sentence; empty: it didn't fail
}

// chosen are the roles with a member's own selected.
func (v MembersView) chosen(role string) []components.Option {
	options := make([]components.Option, len(v.Roles))
	for i, o := range v.Roles {
		o.Selected = o.Value == role
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
