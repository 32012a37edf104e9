// Package layout holds the parts around the content of a page: head, navigation, the signed-in person, messages.
package layout

import (
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/static"
	"posthorn/views/components"
	"posthorn/views/icons"
)

// Shell is what every page gets besides its content. The zero value is a page for an anonymous visitor.
type Shell struct {
	Title     string // of the document, before the tenant's name
	Theme     string // "light", "dark", or empty for the system's setting
	Accent    string // rrggbb; empty for Posthorn's own
	Brand     string // a provider's name instead of Posthorn's
	Tenant    Tenant // the page's tenant; zero on pages of a person or of an operator
	Person    Person // zero for a portal link
	Role      access.Role
	Active    string // the key of the navigation's entry: "overview", "endpoints", "deliveries", ...
	Flash     Flash
	Warnings  []Warning     // shown on every page until their cause ends
	Watch     string        // the page of the bulk job whose progress every page shows; empty: none
	Unread    int           // unread notices
	Suspended bool          // the tenant is read-only
	View      *View         // the visit of an operator; nil for the tenant's own people
	Homes     bool          // the installation is one of several homes
	Operator  bool          // an operator's page: their account and sign-out are the console's
	Status    bool          // there is a public status page
	Portal    bool          // signed in by a provider's link: no account, no other tenants
	Parts     access.Parts  // what the provider's link opens
	Remaining time.Duration // of the portal's session
	Nameless  bool          // the provider of the portal's visitor is not known: no name is shown
	Return    string        // where the portal's user came from
}

// Tenant is the tenant of a page, and the others that the person can switch to.
type Tenant struct {
	ID, Name string
	Others   []TenantLink
}

// TenantLink is a tenant to switch to.
type TenantLink struct{ ID, Name string }

// View is an operator's visit to a tenant's dashboard. A banner on each page says so.
type View struct {
	Until  time.Time
	Reason string
	Acting bool // can change things too
}

// Person is who is signed in.
type Person struct{ Name, Email string }

// Flash says once what was done.
type Flash struct {
	Tone components.Tone
	Text string
}

// Warning is a message that stays on every page until its cause ends.
type Warning struct {
	Title, Text string
	Href, Label string          // a link to the fix; empty: none
	Tone        components.Tone // default Warning
}

// Refusal is the content of an error page.
type Refusal struct {
	Status    int
	Code      string
	Title     string // empty: the status's own
	Detail    string
	RequestID string
	Typed     []Typed // the content of the rejected form
	Back      string  // the link to continue; default the front page
	BackLabel string
	Act       *Act // what fixes it; nil: nothing that this person can do
	Portal    bool // for the visitor of a portal link: without Back there is no link
	Ended     bool // the visitor needs a new portal link; the page around the frame is told
}

// Act is a form with one button.
type Act struct {
	Action, Label string
	Fields        map[string]string
	Again         []Typed // the fields of a form that is sent again
}

// Typed is a field of a rejected form.
type Typed struct{ Name, Value string }

// label is the field's name for people.
func (t Typed) label() string { return strings.ReplaceAll(t.Name, "_", " ") }

// place is what the narrow screen's bar says that the page is of.
func (s Shell) place() string {
	if s.Tenant.Name == "" && s.Operator {
		return "Console"
	}
	return s.Tenant.Name
}

// tone is how grave a warning is.
func (w Warning) tone() components.Tone {
	if w.Tone == "" {
		return components.Warning
	}
	return w.Tone
}

// entry is one line of the navigation.
type entry struct {
	key, label, path string
	icon             icons.Name
	count            int
}

// group is several entries under a heading.
type group struct {
	label   string
	entries []entry
}

func (s Shell) brand() string {
	if s.Brand != "" || s.Nameless {
		return s.Brand
	}
	return "Posthorn"
}

func (s Shell) documentTitle() string {
	var parts []string
	for _, part := range []string{s.Title, s.Tenant.Name, s.brand()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " · ")
}

// titled is the shell of a document with a title, unless it has one.
func (s Shell) titled(title string) Shell {
	if s.Title == "" {
		s.Title = title
	}
	return s
}

// Looks reports whether the page is read-only, for an operator's visit or a suspended tenant: controls that change
// something are left out or disabled.
func (s Shell) Looks() bool { return s.Suspended || s.View != nil && !s.View.Acting }

func (s Shell) root() string { return "/t/" + s.Tenant.ID }

func (s Shell) accentSheet() string {
	if s.Accent == "" {
		return ""
	}
	return static.ThemeURL(s.Accent)
}

// who is the name of the person's menu.
func (s Shell) who() string {
	switch {
	case s.Person.Name != "":
		return s.Person.Name
	case s.Person.Email != "":
		return s.Person.Email
	}
	return "Guest"
}

// may reports whether the reader's role permits an action, for entries of the navigation.
func (s Shell) may(a access.Action) bool {
	if s.Portal {
		return s.Role.MayByPortal(a, s.Parts)
	}
	return s.Role.May(a)
}

// tenantNavigation lists a tenant's pages. Pages that a role can't open have no entry.
func (s Shell) tenantNavigation() []group {
	root := s.root()
	var setup []entry
	if s.may(access.ReadEventTypes) {
		setup = append(setup, entry{key: "event-types", label: "Event types", path: root + "/event-types", icon: icons.Book})
	}
	setup = append(setup, entry{key: "subscriptions", label: "AI clients", path: root + "/subscriptions", icon: icons.Layers})
	if s.may(access.ManageKeys) {
		setup = append(setup, entry{key: "sources", label: "Sources", path: root + "/sources", icon: icons.Download})
		setup = append(setup, entry{key: "keys", label: "API keys", path: root + "/keys", icon: icons.Key})
	}
	if s.may(access.ManageMembers) {
		setup = append(setup, entry{key: "portal", label: "Customer portal", path: root + "/portal", icon: icons.Link})
	}
	setup = append(setup, entry{key: "signature", label: "Signature debugger", path: root + "/signature", icon: icons.Shield})
	people := "Tenant"
	if s.Portal {
		people = "Account"
	}
	tenant := []entry{
		{key: "notices", label: "Notices", path: root + "/notices", icon: icons.Bell, count: s.Unread},
		{key: "alerts", label: "Alerts", path: root + "/alerts", icon: icons.Mail},
	}
	if !s.Portal {
		tenant = append(tenant, entry{key: "members", label: "Members", path: root + "/members", icon: icons.Users})
	}
	tenant = append(tenant, entry{key: "audit-log", label: "Audit log", path: root + "/audit-log", icon: icons.Audit})
	if s.Role.May(access.ChangeSettings) && !s.Portal {
		tenant = append(tenant, entry{key: "settings", label: "Settings", path: root + "/settings", icon: icons.Sliders})
	}
	return []group{
		{entries: []entry{
			{key: "overview", label: "Overview", path: root + "/", icon: icons.Pulse},
			{key: "endpoints", label: "Endpoints", path: root + "/endpoints", icon: icons.Target},
			{key: "deliveries", label: "Deliveries", path: root + "/deliveries", icon: icons.Send},
			{key: "events", label: "Events", path: root + "/events", icon: icons.Bolt},
		}},
		{label: "Set up", entries: setup},
		{label: people, entries: tenant},
	}
}

// consoleNavigation lists the operators' pages.
func (s Shell) consoleNavigation() []group {
	groups := []group{
		{entries: []entry{
			{key: "overview", label: "Overview", path: "/console", icon: icons.Pulse},
			{key: "tenants", label: "Tenants", path: "/console/tenants", icon: icons.Building},
			{key: "deliveries", label: "Deliveries", path: "/console/deliveries", icon: icons.Send},
			{key: "events", label: "Events", path: "/console/events", icon: icons.Bolt},
			{key: "health", label: "Endpoint health", path: "/console/health", icon: icons.Gauge},
		}},
		{
			label: "System",
			entries: []entry{
				{key: "queue", label: "Queue and workers", path: "/console/queue", icon: icons.Layers},
				{key: "alerts", label: "Alerts", path: "/console/alerts", icon: icons.Bell},
				{key: "pauses", label: "Pauses", path: "/console/pauses", icon: icons.Pause},
				{key: "outbox", label: "Outbox", path: "/console/outbox", icon: icons.Inbox},
				{key: "jobs", label: "Jobs", path: "/console/jobs", icon: icons.Clock},
				{key: "mail", label: "Mail", path: "/console/mail", icon: icons.Mail},
				{key: "books", label: "Books", path: "/console/books", icon: icons.Book},
			},
		},
		{
			label: "Platform",
			entries: []entry{
				{key: "settings", label: "Settings", path: "/console/settings", icon: icons.Sliders},
				{key: "egress", label: "Egress proxies", path: "/console/egress", icon: icons.Switch},
				{key: "keys", label: "Platform keys", path: "/console/keys", icon: icons.Key},
				{key: "audit", label: "Audit log", path: "/console/audit", icon: icons.Audit},
			},
		},
	}
	if s.Homes {
		groups[1].entries = append(groups[1].entries, entry{key: "homes", label: "Homes", path: "/console/homes", icon: icons.Building})
	}
	return groups
}

// frontPage is the link of the logo.
func (s Shell) frontPage() string {
	if s.Tenant.ID != "" {
		return s.root() + "/"
	}
	return "/"
}

// htmxConfig is htmx's configuration: it evaluates nothing and adds nothing inline, so that the content security policy
// holds.
const htmxConfig = `{"allowEval":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"allowScriptTags":false,"historyCacheSize":0,` +
	`"scrollIntoViewOnBoost":false,"scrollBehavior":"auto","responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},{"code":"4(00|09|22)","swap":true},{"code":"[45]..","swap":false,"error":true}]}`
