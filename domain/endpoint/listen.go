package endpoint

import (
	"fmt"
	"net/url"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// Listen is the kind of an endpoint whose deliveries wait until a developer's own program fetches them. Nothing is ever
// sent to its URL, which only says where that program forwards them. It is not in Kinds, since it has no transport.
const Listen Kind = "listen"

// ListedKinds are the kinds that lists can be filtered by: those that can be created, and Listen.
func ListedKinds() []Kind { return append(created(), Listen) }

// maxListeners is how many listeners a tenant can have at once.
const maxListeners = 20

// How long nothing is heard of a listener's program until the listener is disconnected, gets no new deliveries, and is
// deleted.
const (
	ListenerSilent    = time.Minute
	ListenerLeft      = 10 * time.Minute
	ListenerAbandoned = 24 * time.Hour
)

// Disconnected is the reason of a paused listener whose program is away: it is active again when the program connects.
const Disconnected = "disconnected"

// maxForward is the longest address of a listener, in bytes.
const maxForward = 2048

// ErrListener refuses what makes no sense for a listener.
var ErrListener = fault.New(
	fault.Conflict,
	"endpoint_is_listener",
	"This endpoint is a listener. It can't be changed or verified. Delete it and create another one.",
)

// CheckListener is Check for a listener, where only the subscription and the wire format are the tenant's choice.
// forward is where its program forwards deliveries, for people to see. It can be an address that no delivery could
// reach, or empty.
func (s Settings) CheckListener(forward string) (Settings, error) {
	s = s.Clone()
	s.Kind, s.Connection = Listen, nil
	var c collector
	c.subscription(&s)
	c.wire(&s, egress.Policy{})
	c.text("description", s.Description, maxDescription)
	if !validVersion(s.PayloadVersion) {
		c.refuse("payload_version", "payload_version_malformed", versionRule)
	}
	if s.URL = "http://localhost"; forward != "" {
		u, err := url.Parse(forward)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || len(forward) > maxForward {
			c.refuse("forward", "forward_malformed", fmt.Sprintf(
				"forward is the URL that your program forwards deliveries to, such as http://localhost:3000/hook. It can have at most %d characters and no password. Leave it out if you don't forward.", maxForward))
		} else {
			s.URL = u.String()
		}
	}
	if len(c.fields) > 0 {
		return Settings{}, fault.InvalidFields(c.fields)
	}
	s.Ordering, s.WhenHeld, s.LargePayloads, s.Headers = "none", Hold, RejectLarge, Headers{}
	return s, nil
}

// CheckListenerRoom says whether a tenant with so many listeners can have one more.
func CheckListenerRoom(has int) error {
	if has < maxListeners {
		return nil
	}
	return fault.New(fault.Conflict, "listeners_limit", fmt.Sprintf(
		"This tenant has %d listeners, the maximum. Stop one of them. A listener without a connected program is deleted after a day.", has))
}
