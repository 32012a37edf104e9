package pages

import (
	"strings"
	"time"

	"posthorn/domain/show"
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
	Rows                 []show.PortalLink
	Now                  time.Time
	First, Older         string
	Role, Session, Brand components.FieldProps
	Secrets              components.ChoiceProps
}

func (v LinksView) live(l show.PortalLink) bool { return l.State(v.Now).Live() }

// members is the page above.
func (v LinksView) members() string { return strings.TrimSuffix(v.Root, "/sign-in-links") + "/members" }

func linkRoles() []components.Option {
	return []components.Option{{Value: "viewer", Label: "Viewer"}, {Value: "developer", Label: "Developer"}, {Value: "admin", Label: "Admin"}}
}

// revokeText says what revoking a link does in its state.
func revokeText(l show.PortalLink) string {
	if l.OpenedAt == nil {
		return "The link stops working."
	}
	return "The person who opened it is signed out immediately."
}

func linkSessions() []components.Option {
	return []components.Option{{Value: "3600", Label: "1 hour"}, {Value: "86400", Label: "1 day"}, {Value: "604800", Label: "7 days"}}
}
