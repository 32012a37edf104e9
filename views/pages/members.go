package pages

import (
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// MembersView is who belongs to a tenant, and who is invited.
type MembersView struct {
	Shell           layout.Shell
	Root            string // the page's own path
	InvitationsRoot string
	LeavePath       string
	Links           string // where sign-in links are
	Members         []MemberLine
	Invitations     []InvitationLine
	MayManage       bool
	Roles           []components.Option // that may be given
	Email, Role     components.FieldProps
	Wrong           string // why the last action was refused
}

// MemberLine is one member.
type MemberLine struct {
	ID, Name, Email, Role string
	Since                 time.Time
	TOTP, Disabled, Own   bool
	MayChange             bool
}

// InvitationLine is one invitation.
type InvitationLine struct {
	ID, Email, Role string
	Expires         time.Time
	Expired         bool
}

// chosen are the roles with a member's own chosen.
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
	Digest          bool
	ViewersRead     bool // payloads and answers
	MayTransfer     bool
	SSOPath         string // empty for who may not
	DeletePath      string // empty for who may not
	NewOwner        components.FieldProps
	Confirm         components.FieldProps // of the transfer
	Seen            string                // the version that the page shows
	Wrong           string
	Beyond          BeyondView // asked before a shorter retention; the zero value: nothing is asked
	Candidates      []components.Option
}

// BeyondView asks whether what a shorter retention deletes is really to go.
type BeyondView struct {
	Days   int
	Events int64
	Text   string
}
