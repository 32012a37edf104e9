package pages

import (
	"strings"
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// LinksView lists the links that sign people into the tenant's dashboard without an account.
type LinksView struct {
	Shell                layout.Shell
	Root                 string
	Manages              bool // can create and revoke links
	Wrong                map[string]string
	New                  string // the address of a new link, shown once
	Rows                 []LinkRow
	First, Older         string
	Role, Session, Brand components.FieldProps
	Secrets              components.ChoiceProps
}

// LinkRow is one of the links.
type LinkRow struct {
	ID, Role, Brand string
	Secrets         bool
	Created, Opened time.Time
	Session         time.Duration
	State           string
	Live            bool // not opened yet, or in use
}

func (r LinkRow) tone() components.Tone {
	if r.Live {
		return components.Good
	}
	return components.Neutral
}

// members is the page above.
func (v LinksView) members() string { return strings.TrimSuffix(v.Root, "/sign-in-links") + "/members" }

func linkRoles() []components.Option {
	return []components.Option{{Value: "viewer", Label: "Viewer"}, {Value: "developer", Label: "Developer"}, {Value: "admin", Label: "Admin"}}
}

// revokeText says what revoking a link does in its state.
func (r LinkRow) revokeText() string {
	if r.Opened.IsZero() {
		return "The link stops working."
	}
	return "The person who opened it is signed out immediately."
}

func linkSessions() []components.Option {
	return []components.Option{{Value: "3600", Label: "1 hour"}, {Value: "86400", Label: "1 day"}, {Value: "604800", Label: "7 days"}}
}
