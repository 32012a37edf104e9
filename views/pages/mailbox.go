package pages

import (
	"time"

	"posthorn/views/layout"
)

// MailboxView lists the mails of development, which are not sent.
type MailboxView struct {
	Shell layout.Shell
	Mails []MailLine // newest first

	Waiting int64 // not in the mailbox yet
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
	Unsubscribe                 string // the List-Unsubscribe header
	At                          time.Time
}
