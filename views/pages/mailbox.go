package pages

import (
	"time"

	"posthorn/views/layout"
)

// MailboxView is the mails that were not sent, in development.
type MailboxView struct {
	Shell layout.Shell
	Mails []MailLine // newest first

	Waiting int64 // on their way here
}

// MailLine is one of them.
type MailLine struct {
	ID, To, Subject, Kind string
	At                    time.Time
}

// MailView is one mail as plain text.
type MailView struct {
	Shell                       layout.Shell
	ID, From, To, Subject, Text string
	Unsubscribe                 string // the header
	At                          time.Time
}
