package pages

import (
	"time"

	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// LinksView lists the links that sign people into the tenant's dashboard without an account.
type LinksView struct {
	Shell                                layout.Shell
	Root                                 string
	Manages                              bool // can create and revoke links
	Wrong                                map[string]string
	New                                  string // the address of a new link, shown once
	Rows                                 []show.PortalLink
	Now                                  time.Time
	First, Older                         string
	Server                               string   // the public URL
	Origins                              []string // that can show the portal within their pages
	Preview                              string   // the query of the preview
	Role, Session, Brand, Accent, Return components.FieldProps
	Parts                                []components.ChoiceProps
}

func (v LinksView) live(l show.PortalLink) bool { return l.State(v.Now).Live() }

// snippet is what a product puts into its page.
func (v LinksView) snippet() string {
	return `<script src="` + v.Server + `/portal.js" defer></script>
<posthorn-portal link="/webhooks/portal-link" style="height: 720px"></posthorn-portal>`
}

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
