package layout

import "strings"

// PaletteGroup is a group of the command palette's entries.
type PaletteGroup struct {
	Label   string
	Entries []PaletteEntry
}

// PaletteEntry is one page, object or action. Note holds further words that find it.
type PaletteEntry struct{ Label, Note, Href string }

// paletteGroups are the pages of the navigation and the entries of the page's own handler.
func (s Shell) paletteGroups(more []PaletteGroup) []PaletteGroup {
	from := s.consoleNavigation()
	if s.Tenant.ID != "" {
		from = s.tenantNavigation()
	}
	pages := PaletteGroup{Label: "Pages"}
	for _, g := range from {
		for _, e := range g.entries {
			pages.Entries = append(pages.Entries, PaletteEntry{Label: e.label, Href: e.path})
		}
	}
	for _, i := range s.accountMenu() {
		if !s.Portal {
			pages.Entries = append(pages.Entries, PaletteEntry{Label: i.Label, Href: i.Href})
		}
	}
	if !s.Portal {
		pages.Entries = append(pages.Entries, PaletteEntry{Label: "Documentation", Href: "/docs"})
	}
	return append([]PaletteGroup{pages}, more...)
}

func (e PaletteEntry) words() string { return strings.ToLower(e.Label + " " + e.Note) }

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
	all := []shortcut{{"Ctrl K", "Search, or go to a page, endpoint, or event type"}, {"?", "Show these shortcuts"}, {"/", "Go to the search field of the page"}, {"Esc", "Close a menu or dialog"}}
	if s.Tenant.ID != "" {
		all = append(all, shortcut{"g o", "Go to the overview"}, shortcut{"g e", "Go to endpoints"}, shortcut{"g d", "Go to deliveries"}, shortcut{"g v", "Go to events"})
	}
	return all
}
