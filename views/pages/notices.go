package pages

import (
	"time"

	"posthorn/domain/notice"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// NoticesView is what Posthorn told a tenant, and which of it somebody wants by mail.
type NoticesView struct {
	Shell       layout.Shell
	Root        string
	Filter      NoticeFilter
	Kinds       []components.Option
	Endpoints   []components.Option
	Wrong       map[string]string
	Reads       bool   // the actor is a member, who reads notices and is done with them
	Newest      string // the newest that is unread; empty: all are read
	Rows        []NoticeRow
	First       string
	Older       string
	Preferences []components.Option // none for who has no account
	Address     string
}

// NoticeFilter is what the list is narrowed down to.
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
	About    string // what it concerns, in words
	Link     string // where that is
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
