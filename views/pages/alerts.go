package pages

import (
	"strings"

	"posthorn/domain/condition"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// AlertsView is the page that says where each kind of notice is sent.
type AlertsView struct {
	Shell       layout.Shell
	Root        string
	Rows        []show.AlertKind
	Channels    []ChannelLine
	Preferences map[notice.Kind]bool // what the reader gets by mail; empty for readers without an account
	Address     string               // of the reader
	MayMute     bool
	MayAdd      bool // a channel
	MaySee      bool // the addresses of others
}

// ChannelLine is an endpoint that gets notices.
type ChannelLine struct {
	show.AlertChannel
	Condition condition.State
}

// path is the page of the channel's endpoint.
func (v AlertsView) path(c show.AlertChannel) string {
	return v.Root + "/endpoints/" + id.Endpoint.Format(c.ID)
}

// recipients says who gets a kind by mail.
func (v AlertsView) recipients(r show.AlertKind) string {
	n := len(r.Recipients)
	switch {
	case n == 0:
		return "Nobody"
	case !v.MaySee:
		return components.Many(int64(n), "recipient", "recipients")
	case n > shownRecipients:
		return strings.Join(r.Recipients[:shownRecipients], ", ") + " and " + components.Many(int64(n-shownRecipients), "more", "more")
	}
	return strings.Join(r.Recipients, ", ")
}

// shownRecipients is how many addresses a row names.
const shownRecipients = 3

// emails reports whether the reader gets a kind by mail, and whether they can choose.
func (v AlertsView) emails(k notice.Kind) (wanted, can bool) {
	wanted, can = v.Preferences[k]
	return wanted, can
}

func alertTone(k notice.Kind) components.Tone { return noticeTone(show.Notice{Kind: k}) }
