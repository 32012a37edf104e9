package delivery

import (
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// LinkPath is where signed links to the data of events lead. The token that follows names the delivery.
const LinkPath = "/links/"

// LinkPurpose separates the tokens of these links from others.
const LinkPurpose = "event link"

// LinkLife is how long a link opens after its delivery has ended.
const LinkLife = time.Hour

// Link is what a token of a link signs. It has no time of its own, so that every attempt of a delivery has the same
// link: the state of the delivery decides whether it opens.
type Link struct{ Tenant, Delivery id.UUID }

// Text is the signed text: two fixed lengths.
func (l Link) Text() []byte { return append(l.Tenant[:], l.Delivery[:]...) }

// ParseLink reads what Text wrote; false for anything else.
func ParseLink(text []byte) (l Link, ok bool) {
	if len(text) != len(l.Tenant)+len(l.Delivery) {
		return l, false
	}
	copy(l.Tenant[:], text)
	copy(l.Delivery[:], text[len(l.Tenant):])
	return l, true
}

// The errors of links.
var (
	ErrLinkUnknown = fault.New(fault.NotFound, "event_link_unknown", "This link is invalid or incomplete. Use the link exactly as the request to your endpoint contained it.")
	ErrLinkEnded   = fault.New(fault.Gone, "event_link_ended", "This link has ended: it opens while its delivery is under way, and for one hour after that. Replay the delivery to get a new link.")
	ErrLinkVoid    = fault.New(fault.Gone, "event_link_canceled", "This link has ended: its delivery was canceled or has expired, or the event's data was deleted.")
	ErrLinkBusy    = &fault.Error{Kind: fault.Limited, Code: "event_link_busy", Detail: "A link can be opened 5 times per second. Wait a second.", RetryAfter: 1}
)

// LinkFault is why the link of a delivery does not open; nil: it does. settled is when the delivery ended, if it did.
func LinkFault(s Status, settled, now time.Time) error {
	switch {
	case s.Ended():
		return ErrLinkVoid
	case s.Terminal() && now.Sub(settled) >= LinkLife:
		return ErrLinkEnded
	}
	return nil
}
