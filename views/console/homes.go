package console

import (
	"strings"

	"posthorn/domain/home"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// HomesView is the page of all homes.
type HomesView struct {
	Shell layout.Shell
	Alone bool // the installation has no homes
	Homes []HomeLine
}

// HomeLine is one home.
type HomeLine struct {
	home.Seen
	Path string // of its console
	Old  bool   // its counts are older than a minute
}

// FoundLine is a tenant of another home.
type FoundLine struct {
	home.Found
	Path string
}

func (h HomeLine) waiting() string {
	text := components.Count(h.Last.Counts.Waiting)
	if h.Last.Counts.Waiting >= home.WaitingMost {
		text += "+"
	}
	return text
}

// release is the version of a home; a dash if it is not known.
func (h HomeLine) release() string {
	if h.Last.Release == "" {
		return "–"
	}
	return h.Last.Release
}

// differ reports whether homes run different versions.
func (v HomesView) differ() bool {
	for _, h := range v.Homes {
		if h.Last.Release != "" && h.Last.Release != v.Homes[0].Last.Release {
			return true
		}
	}
	return false
}

func (v TenantsView) silent() string { return strings.Join(v.Silent, ", ") }
