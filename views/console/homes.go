package console

import (
	"posthorn/domain/home"
	"posthorn/domain/words"
	"posthorn/views/layout"
)

// HomesView is the page of all homes.
type HomesView struct {
	Shell layout.Shell
	Alone bool // the installation has no homes
	Homes []HomeLine
	Moves []home.Move // that are not finished
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

type homeNumber struct{ label, text string }

// numbers are the home's, each a dash if they are not known.
func (h HomeLine) numbers() []homeNumber {
	n := h.Numbers
	all := []homeNumber{
		{"Tenants", words.Number(n.Tenants)},
		{"Waiting", words.Number(n.Waiting)},
		{"Dead letters", words.Number(n.DeadLetters)},
		{"Workers", words.Number(n.Workers)},
	}
	for i := range all {
		if !h.Known {
			all[i].text = "–"
		}
	}
	return all
}

// findings are what needs an operator in another home.
func (h HomeLine) findings() []string {
	if h.Here {
		return nil // on the overview
	}
	return h.Numbers.Findings
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
