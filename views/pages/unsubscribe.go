package pages

import (
	"posthorn/views/components"
	"posthorn/views/layout"
)

// UnsubscribeView is the page where the recipient of a mail stops its kind, and selects others.
type UnsubscribeView struct {
	Shell   layout.Shell
	Path    string // of this page, with its token
	Tenant  string
	Kind    string
	Label   string // of the kind
	Wanted  bool   // mails of the kind are on
	Done    string // the result of the last action; empty before
	Asks    bool   // the recipient has not agreed to get notices yet
	Choices []NoticeChoice
}

// NoticeChoice is one kind of notice, and whether it is mailed.
type NoticeChoice struct {
	Kind, Label string
	Wanted      bool
}

func (v UnsubscribeView) options() []components.Option {
	all := make([]components.Option, len(v.Choices))
	for i, one := range v.Choices {
		all[i] = components.Option{Value: one.Kind, Label: one.Label, Selected: one.Wanted}
	}
	return all
}
