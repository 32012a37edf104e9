// Package layout holds what is around the content of a page: head, navigation, who is signed in, messages.
package layout

import (
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/static"
	"posthorn/views/components"
	"posthorn/views/icons"
)

// Shell is what every page knows beside its content. The zero value is a page for nobody in particular.
type Shell struct {
	Title     string // of the document, before the tenant's name
	Theme     string // "light", "dark", or empty for what the system prefers
	Accent    string // rrggbb; empty for Posthorn's own
	Brand     string // a provider's name in place of Posthorn's
	Tenant    Tenant // whose page it is; none on pages of a person or of an operator
	Person    Person // none for a portal link
	Role      access.Role
	Active    string // the key of the navigation's entry: "overview", "endpoints", "deliveries", ...
	Flash     Flash
	Warnings  []Warning // on every page while they last
	Unread    int       // notices that nobody has read
	Suspended bool      // the tenant can be read, and not changed
	View      *View     // an operator looks on; nil for the tenant's own people
	Homes     bool      // the installation is one of several homes
	Operator  bool      // an operator's page: their account and sign-out are the console's
	Status    bool      // there is a status page to lead to
	Portal    bool      // signed in by a provider's link: no account, no other tenants
	Secrets   bool      // the provider's link lets secrets be seen
	Return    string    // where a portal's people came from
}

// Tenant is the tenant of a page, and the others that the person may switch to.
type Tenant struct {
	ID, Name string
	Others   []TenantLink
}

// TenantLink is a tenant to switch to.
type TenantLink struct{ ID, Name string }

// View is an operator's look at a tenant's pages. A banner says so on each of them.
type View struct {
	Until  time.Time
	Reason string
	Acting bool // may change things too
}

// Person is who is signed in.
type Person struct{ Name, Email string }

// Flash says once what was done.
type Flash struct {
	Tone components.Tone
	Text string
}

// Warning is what people must not forget while they do something else.
type Warning struct {
	Title, Text string
	Href, Label string          // where to do something about it; empty: nowhere
	Tone        components.Tone // Warning unless set
}

// Refusal is what an error page says.
type Refusal struct {
	Status    int
	Code      string
	Title     string // empty for the status's own
	Detail    string
	RequestID string
	Typed     []Typed // what the refused form held
	Back      string  // where to go on; the front page unless set
	BackLabel string
	Act       *Act // what fixes it; nil: nothing that this person can do
}

// Act is a form with one button.
type Act struct {
	Action, Label string
	Fields        map[string]string
}

// Typed is a field of a form that was refused.
type Typed struct{ Name, Value string }

// label is the field's name as people read it.
func (t Typed) label() string { return strings.ReplaceAll(t.Name, "_", " ") }

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
	if s.Brand != "" {
		return s.Brand
	}
	return "Posthorn"
}

func (s Shell) documentTitle() string {
	title := s.brand()
	if s.Tenant.Name != "" {
		title = s.Tenant.Name + " · " + title
	}
	if s.Title != "" {
		title = s.Title + " · " + title
	}
	return title
}

// Looks reports whether the page can only be looked at, by an operator or since the tenant is suspended: what changes
// something is left out, or switched off.
func (s Shell) Looks() bool { return s.Suspended || s.View != nil && !s.View.Acting }

func (s Shell) root() string { return "/t/" + s.Tenant.ID }

func (s Shell) accentSheet() string {
	if s.Accent == "" {
		return ""
	}
	return static.ThemeURL(s.Accent)
}

// who is what the menu of the person is called.
func (s Shell) who() string {
	switch {
	case s.Person.Name != "":
		return s.Person.Name
	case s.Person.Email != "":
		return s.Person.Email
	}
	return "Guest"
}

// tenantNavigation leads through a tenant's pages. What a role may not see has no entry.
func (s Shell) tenantNavigation() []group {
	root := s.root()
	setup := []entry{{key: "event-types", label: "Event types", path: root + "/event-types", icon: icons.Book}}
	if s.Portal && s.Role.MayByPortal(access.ManageKeys, s.Secrets) || !s.Portal && s.Role.May(access.ManageKeys) {
		setup = append(setup, entry{key: "keys", label: "API keys", path: root + "/keys", icon: icons.Key})
	}
	setup = append(setup, entry{key: "signature", label: "Signature debugger", path: root + "/signature", icon: icons.Shield})
	tenant := []entry{{key: "notices", label: "Notices", path: root + "/notices", icon: icons.Bell, count: s.Unread}}
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
		{label: "Tenant", entries: tenant},
	}
}

// consoleNavigation leads through the operators' pages.
func (s Shell) consoleNavigation() []group {
	groups := []group{
		{entries: []entry{
			{key: "overview", label: "Overview", path: "/console", icon: icons.Pulse},
			{key: "tenants", label: "Tenants", path: "/console/tenants", icon: icons.Building},
			{key: "deliveries", label: "Deliveries", path: "/console/deliveries", icon: icons.Send},
			{key: "events", label: "Events", path: "/console/events", icon: icons.Bolt},
			{key: "health", label: "Endpoint health", path: "/console/health", icon: icons.Gauge},
		}},
		{label: "Machinery", entries: []entry{
			{key: "queue", label: "Queue and workers", path: "/console/queue", icon: icons.Layers},
			{key: "pauses", label: "Pauses", path: "/console/pauses", icon: icons.Pause},
			{key: "outbox", label: "Outbox", path: "/console/outbox", icon: icons.Inbox},
			{key: "jobs", label: "Jobs", path: "/console/jobs", icon: icons.Clock},
			{key: "mail", label: "Mail", path: "/console/mail", icon: icons.Mail},
			{key: "books", label: "Books", path: "/console/books", icon: icons.Book},
		}},
		{label: "Platform", entries: []entry{
			{key: "settings", label: "Settings", path: "/console/settings", icon: icons.Sliders},
			{key: "keys", label: "Platform keys", path: "/console/keys", icon: icons.Key},
			{key: "audit", label: "Audit log", path: "/console/audit", icon: icons.Audit},
		}},
	}
	if s.Homes {
		groups[1].entries = append(groups[1].entries, entry{key: "homes", label: "Homes", path: "/console/homes", icon: icons.Building})
	}
	return groups
}

// frontPage is where the sign leads.
func (s Shell) frontPage() string {
	if s.Tenant.ID != "" {
		return s.root() + "/"
	}
	return "/"
}

// htmxConfig is htmx's configuration: nothing evaluated, nothing inline, so that the content security policy holds.
const htmxConfig = `{"allowEval":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"allowScriptTags":false,"historyCacheSize":0,` +
	`"scrollBehavior":"auto","responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},{"code":"4(00|09|22)","swap":true},{"code":"[45]..","swap":false,"error":true}]}`
