package console

import (
	"posthorn/domain/home"
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
}

// release is the version of a home; a dash if it is not known.
func (h HomeLine) release() string {
	if h.Release == "" {
		return "–"
	}
	return h.Release
}

// differ reports whether homes run different versions.
func (v HomesView) differ() bool {
	for _, h := range v.Homes {
		if h.Release != "" && h.Release != v.Homes[0].Release {
			return true
		}
	}
	return false
}
