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
	Rows        []NoticeRow
	First       string
	Older       string
	Preferences []components.Option // none for who has no account
	Address     string
}

// NoticeRow is one notice.
type NoticeRow struct {
	ID       string
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
