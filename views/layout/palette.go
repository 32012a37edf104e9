package layout

import (
	"strings"

	"posthorn/domain/access"
	"posthorn/views/icons"
)

// PaletteGroup is a group of the command palette's entries.
type PaletteGroup struct {
	Label   string
	Entries []PaletteEntry
}

// PaletteEntry is one page, object or setting. Note is shown beside it; Words are further words that find it.
type PaletteEntry struct {
	Label string
	Note  string
	Words string
	Href  string
	Icon  icons.Name
}

// pageWords find the pages of the navigation by what people call them elsewhere.
var pageWords = map[string]string{
	"overview":    "home dashboard start",
	"endpoints":   "webhooks urls destinations receivers",
	"deliveries":  "messages attempts requests logs",
	"events":      "payloads messages",
	"event-types": "catalog schemas topics",
	"keys":        "tokens credentials",
	"portal":      "embed iframe white label customers links",
	"signature":   "verify hmac headers",
	"notices":     "alerts notifications emails",
	"alerts":      "notifications channels slack pagerduty email mute",
	"members":     "people users team roles",
	"audit-log":   "history who changed",
	"settings":    "preferences configuration options",
	"audit":       "history who changed",
	"queue":       "backlog workers lag",
	"pauses":      "stop maintenance incident",
	"egress":      "socks connect outgoing network firewall",
	"books":       "ledger reconcile totals",

	"sources":       "kafka rabbitmq amqp sqs queue topic consume ingest",
	"subscriptions": "mcp model context protocol agents chatgpt principals",
}

// paletteGroups are the pages of the navigation and the entries of the page's own handler. What belongs to the reader's
// own account is last.
func (s Shell) paletteGroups(more []PaletteGroup) []PaletteGroup {
	from := s.consoleNavigation()
	if s.Tenant.ID != "" {
		from = s.tenantNavigation()
	}
	pages := PaletteGroup{Label: "Pages"}
	for _, g := range from {
		for _, e := range g.entries {
			pages.Entries = append(pages.Entries, PaletteEntry{Label: e.label, Href: e.path, Icon: e.icon, Words: pageWords[e.key]})
		}
	}
	if !s.Portal {
		pages.Entries = append(pages.Entries, PaletteEntry{Label: "Documentation", Href: "/docs", Icon: icons.Book, Words: "help guides reference"})
	}
	return append(append([]PaletteGroup{pages}, more...), s.paletteAccount())
}

// paletteAccount are the pages of the reader's own account, and its settings by their labels.
func (s Shell) paletteAccount() PaletteGroup {
	g := PaletteGroup{Label: "Account"}
	if s.Portal {
		return g
	}
	for _, i := range s.accountMenu() {
		g.Entries = append(g.Entries, PaletteEntry{Label: i.Label, Href: i.Href, Icon: i.Icon, Words: "profile my"})
	}
	if s.Operator {
		return g
	}
	for _, e := range []PaletteEntry{
		{Label: "Email address", Href: "/account#email"},
		{Label: "Password", Href: "/account#password"},
		{Label: "Second factor", Href: "/account#totp", Words: "2fa mfa totp two-factor passkeys authenticator"},
		{Label: "Sessions", Href: "/account#sessions", Words: "browsers devices signed in"},
	} {
		e.Icon, e.Note = icons.User, "Account"
		g.Entries = append(g.Entries, e)
	}
	return g
}

func (e PaletteEntry) words() string { return strings.ToLower(e.Label + " " + e.Note + " " + e.Words) }

// PaletteSettings are a tenant's settings by their labels, each with the field or the part of the page that has it.
func (s Shell) PaletteSettings() PaletteGroup {
	g := PaletteGroup{Label: "Settings"}
	add := func(to access.Action, label, path, words string) {
		if s.may(to) && !s.Portal {
			g.Entries = append(g.Entries, PaletteEntry{Label: label, Note: "Settings", Words: words, Href: s.root() + path, Icon: icons.Sliders})
		}
	}
	add(access.ChangeSettings, "Name", "/settings#f-name", "rename tenant")
	add(access.ChangeSettings, "Keep events and deliveries for", "/settings#f-retention_days", "retention days history delete")
	add(access.ChangeSettings, "Default retry schedule", "/settings#f-retry_policy", "retries backoff")
	add(access.ChangeSettings, "Accept only events whose type is in the catalog", "/settings#f-strict_types", "strict schema")
	add(access.ChangeSettings, "Viewers can see payloads and responses", "/settings#f-viewers_read_payloads", "privacy roles")
	add(access.ChangeSettings, "Additional recipients", "/settings#f-contacts", "notices emails contacts")
	add(access.ChangeSettings, "Daily digest when something is wrong", "/settings#f-digest", "notices summary email")
	add(access.Read, "Email notices", "/alerts#preferences", "notifications alerts subscribe unsubscribe")
	add(access.ManageMembers, "Invite a member", "/members#invite", "people users team invitation")
	return g
}

// palette is the address of the palette's entries; empty if the page has none.
func (s Shell) palette() string {
	switch {
	case s.Tenant.ID != "":
		return s.root() + "/palette"
	case s.Operator:
		return "/console/palette"
	}
	return ""
}

// paletteDocs is the address that searches the documentation; empty for a customer, who does not know this product.
func (s Shell) paletteDocs() string {
	if s.Portal {
		return ""
	}
	return "/docs/search.json"
}

// search is the search page, for what the palette does not contain.
func (s Shell) search() string {
	if s.Tenant.ID != "" {
		return s.root() + "/search"
	}
	return "/console/tenants"
}

// shortcut is a key and its action.
type shortcut struct{ keys, does string }

func (s Shell) shortcuts() []shortcut {
	all := []shortcut{{"Ctrl K", "Search, act on this page, or go to another one"}, {"?", "Show these shortcuts"}, {"/", "Go to the search field of the page"}, {"Esc", "Close a menu or dialog"}}
	if s.Tenant.ID != "" {
		all = append(all, shortcut{"g o", "Go to the overview"}, shortcut{"g e", "Go to endpoints"}, shortcut{"g d", "Go to deliveries"}, shortcut{"g v", "Go to events"})
	}
	return all
}
