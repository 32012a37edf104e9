// Package delivery holds the states of a delivery, what a response means for it and for its endpoint's health, and
// which actions each state allows (docs/delivery.md). Nothing here reads a clock.
package delivery

import "fmt"

// Status is the state of a delivery, stored as smallint: the numbers never change.
type Status int16

// The states. Held is derived from the lane, Expired from the reason; they are never stored.
const (
	Pending   Status = 0 // never tried
	Retrying  Status = 1 // tried, a next attempt is set
	Delivered Status = 2 // a 2xx, or a 409 where the endpoint accepts it
	Failed    Status = 3 // a dead letter, with a Reason
	Canceled  Status = 4 // by a person, a program, or the end of its endpoint
	Held      Status = 5 // waits for an endpoint that receives nothing now: unverified, paused or disabled
	Expired   Status = 6 // canceled, since it was not delivered before its expiry; books count it with what was canceled
)

var statusWords = [...]string{"pending", "retrying", "delivered", "failed", "canceled", "held", "expired"}

// String is the word for the state in the API and on screens.
func (s Status) String() string { return word(statusWords[:], int(s), "status") }

// MarshalText writes the state's word.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Terminal reports whether nothing more happens to the delivery by itself.
func (s Status) Terminal() bool { return s == Delivered || s == Failed || s.Ended() }

// Ended reports whether the delivery was canceled, or expired: nobody sends it, and it is no failure.
func (s Status) Ended() bool { return s == Canceled || s == Expired }

// Shown is the state that people see of a stored one.
func (s Status) Shown(r Reason) Status {
	if s == Canceled && r == PastExpiry {
		return Expired
	}
	return s
}

// ParseStatus reads a state's word; false for an unknown one.
func ParseStatus(text string) (Status, bool) {
	i := index(statusWords[:], text)
	return Status(i), i >= 0
}

// foreignStatuses are the words of other systems for a status here (docs/migrate.md).
var foreignStatuses = map[string]string{
	"success":            Delivered.String(),
	"succeeded":          Delivered.String(),
	"pending_retry":      Retrying.String(),
	"permanently_failed": Failed.String(),
	"retried":            Failed.String(),
}

// StatusHint is a sentence about a word of another system for a status; empty if it is unknown.
func StatusHint(word string) string {
	if word == "all" {
		return " Leave status out to list all deliveries."
	}
	if own := foreignStatuses[word]; own != "" {
		return " For " + word + " use " + own + "."
	}
	return ""
}

// What lists and jobs select by status besides the words of statuses.
const (
	OnHold    = "on_hold"    // waits until somebody ends what holds it: see condition.Reason.Holds
	AllFailed = "all_failed" // had a failed attempt, or failed, and was not delivered
)

// Selections lists what lists of deliveries can be filtered by.
func Selections() []string {
	return []string{
		Pending.String(), Retrying.String(), Held.String(), OnHold, Delivered.String(), Failed.String(), DeadLetter,
		Canceled.String(), Expired.String(), AllFailed,
	}
}

// Reason is why a delivery failed permanently or was canceled, stored as smallint: the numbers never change.
type Reason int16

// The reasons. A delivery that is not failed has None, except that one canceled with its endpoint has
// EndpointDeleted, one canceled with its payload Expunged, and one that expired PastExpiry.
const (
	None            Reason = 0
	Exhausted       Reason = 1 // the retry schedule came to its end
	Rejected        Reason = 2 // a 4xx that the endpoint's policy does not retry
	Gone            Reason = 3 // a 410
	RetentionEnded  Reason = 4 // the event left the retention before it could be delivered
	EndpointDeleted Reason = 5
	Internal        Reason = 6 // Posthorn could not render or sign it
	Expunged        Reason = 7 // canceled, since its payload was destroyed on request
	PastExpiry      Reason = 8 // canceled, since it was not delivered before the event's expires_at
	PayloadTooLarge Reason = 9 // the data is in object storage, and the endpoint does not accept a link to it
)

var reasonWords = [...]string{"", "exhausted", "rejected", "gone", "expired", "endpoint_deleted", "internal", "expunged", "past_expiry", "payload_too_large"}

// String is the word for the reason; empty for None.
func (r Reason) String() string { return word(reasonWords[:], int(r), "reason") }

// Label is the reason for people; empty for None.
func (r Reason) Label() string {
	switch r {
	case Exhausted:
		return "Out of attempts"
	case Rejected:
		return "Rejected by the endpoint"
	case Gone:
		return "Endpoint gone"
	case RetentionEnded:
		return "Retention ended"
	case EndpointDeleted:
		return "Endpoint deleted"
	case Internal:
		return "Not sent"
	case Expunged:
		return "Data expunged"
	case PastExpiry:
		return "Not delivered in time"
	case PayloadTooLarge:
		return "Payload too large"
	}
	return ""
}

// MarshalText writes the reason's word.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Failure is why an attempt brought no usable response, stored as smallint: the numbers never change.
type Failure int16

// The failures.
const (
	FailNone     Failure = 0  // there was a response: see its HTTP status
	FailDNS      Failure = 1  // the host name has no address, or the look-up took too long
	FailConnect  Failure = 2  // no connection
	FailTLS      Failure = 3  // no TLS session: certificate, version or handshake
	FailTimeout  Failure = 4  // connected, but no complete response within the endpoint's timeout
	FailReset    Failure = 5  // the connection broke before the response was complete
	FailBlocked  Failure = 6  // the egress policy refused the address
	FailProtocol Failure = 7  // the response was not HTTP, or its head was over the limit
	FailInternal Failure = 8  // nothing was sent: Posthorn could not render or sign
	FailToken    Failure = 9  // nothing was sent: the authorization server gave no access token
	FailProxy    Failure = 10 // nothing was sent: the platform's own proxy failed
	// FailTransformation is never stored: the delivery is held, and is no attempt
	FailTransformation Failure = 11
	// FailExpired is never stored: the delivery ends, and nothing is sent
	FailExpired Failure = 12
	// FailTooLarge is never stored: the delivery fails, and nothing is sent
	FailTooLarge Failure = 13
)

var failureWords = [...]string{
	"", "dns_error", "connect_error", "tls_error", "timeout", "reset", "blocked_address", "protocol_error", "internal_error",
	"token_error", "proxy_error", "transformation_error",
	"expired", "payload_too_large",
}

// Unsent reports whether nothing was sent for a reason that says nothing about the receiver.
func (f Failure) Unsent() bool {
	return f == FailInternal || f == FailToken || f == FailProxy || f.NotTried()
}

// NotTried reports whether there was no attempt: the delivery waits for an edit of its transformation, or is over.
func (f Failure) NotTried() bool {
	return f == FailTransformation || f == FailExpired || f == FailTooLarge
}

// OfPlatform reports whether the platform alone is at fault, so that the attempt counts against no endpoint and for no
// schedule.
func (f Failure) OfPlatform() bool { return f == FailProxy }

// String is the word for the failure; empty for FailNone.
func (f Failure) String() string { return word(failureWords[:], int(f), "failure") }

// MarshalText writes the failure's word.
func (f Failure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// ParseFailure reads a failure's word; the empty text is FailNone; false for an unknown one.
func ParseFailure(text string) (Failure, bool) {
	i := index(failureWords[:], text)
	return Failure(i), i >= 0
}

// word names unknown numbers instead of panicking: a newer process can have stored a state that this one does not know.
func word(words []string, i int, kind string) string {
	if i < 0 || i >= len(words) {
		return fmt.Sprintf("%s_%d", kind, i)
	}
	return words[i]
}

func index(words []string, text string) int {
	for i, w := range words {
		if w == text {
			return i
		}
	}
	return -1
}
