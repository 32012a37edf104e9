package endpoint

import (
	"fmt"
	"net/url"

	"posthorn/domain/fault"
)

// Listen is the kind of an endpoint whose deliveries wait until a developer's own program fetches them. Nothing is ever sent
// to its URL, which only says where that program hands them on. It is none of Kinds: nothing carries to it.
const Listen Kind = "listen"

// MaxListeners is how many listeners a tenant may have at once.
const MaxListeners = 20

// maxForward is how long a listener's address may be, in bytes.
const maxForward = 2048

// ErrListener refuses what makes no sense for a listener.
var ErrListener = fault.New(fault.Conflict, "endpoint_is_listener",
	"This endpoint is a listener: it is neither changed nor verified. Delete it and make another one.")

// CheckListener is Check for a listener, of which only the subscription and the wire format are its own. forward is where its
// program hands deliveries on, for people to see; it may be an address that no delivery could go to, or empty.
func (s Settings) CheckListener(forward string) (Settings, error) {
	s = s.Clone()
	s.Kind, s.Connection = Listen, nil
	var c collector
	c.subscription(&s)
	c.wire(s)
	c.text("description", s.Description, MaxDescription)
	if !validVersion(s.PayloadVersion) {
		c.refuse("payload_version", "payload_version_malformed", versionRule)
	}
	if s.URL = "http://localhost"; forward != "" {
		u, err := url.Parse(forward)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || len(forward) > maxForward {
			c.refuse("forward", "forward_malformed", fmt.Sprintf(
				"forward is where your program hands deliveries on, as http://localhost:3000/hook, in at most %d characters and without a password. Leave it out if it is none.", maxForward))
		} else {
			s.URL = u.String()
		}
	}
	if len(c.fields) > 0 {
		return Settings{}, fault.InvalidFields(c.fields)
	}
	s.Ordering, s.WhenHeld, s.Headers = "none", Hold, Headers{}
	return s, nil
}

// CheckListenerRoom says whether a tenant that has so many listeners may have one more.
func CheckListenerRoom(has int) error {
	if has < MaxListeners {
		return nil
	}
	return fault.New(fault.Conflict, "listeners_limit", fmt.Sprintf(
		"This tenant has %d listeners, the most that it may. End one of them; one whose program is gone ends by itself after a day.", has))
}
