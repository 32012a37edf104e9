package pages

import (
	"time"

	"posthorn/domain/notice"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// NoticesView lists a tenant's notices, and the member's choice of mails.
type NoticesView struct {
	Shell       layout.Shell
	Root        string
	Filter      NoticeFilter
	Kinds       []components.Option
	Endpoints   []components.Option
	Wrong       map[string]string
	Reads       bool   // the actor is a member, who can mark notices as read
	Newest      string // the newest unread one; empty: all are read
	Rows        []NoticeRow
	First       string
	Older       string
	Preferences []components.Option // empty for readers without an account
	Address     string
}

// NoticeFilter is the filter of the list.
type NoticeFilter struct {
	Kind, Endpoint string
	Unread         bool
}

func (v NoticesView) kinds() []components.Option {
	return append([]components.Option{{Value: "", Label: "Everything"}}, v.Kinds...)
}

func unreadOptions() []components.Option {
	return []components.Option{{Value: "", Label: "All notices"}, {Value: "true", Label: "Unread"}}
}

func (f NoticeFilter) unread() string {
	if f.Unread {
		return "true"
	}
	return ""
}

// NoticeRow is one notice.
type NoticeRow struct {
	ID       string
	New      bool // unread
	Title    string
	Severity notice.Severity
	At       time.Time
	About    string // its subject, in words
	Link     string // the subject's address
	Detail   string
}

func (r NoticeRow) tone() components.Tone {
	switch r.Severity {
	case notice.Critical:
		return components.Bad
	case notice.Warning:
		return components.Warning
	}
	return components.Info
}
