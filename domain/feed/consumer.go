package feed

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Bounds of a page.
const (
	MaxLimit     = 250
	DefaultLimit = 100
	MaxWait      = 25              // seconds of a long poll; proxies end a request after 30 or 60
	MaxScan      = 1000            // events that a page examines
	MaxBytes     = 4 << 20         // of the data in a page, unless its first event has more
	MaxConsumers = 50              // of a feed
	Ahead        = 5 * time.Second // how often a read writes that the consumer reads
)

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName validates the name of a consumer. The error is a *fault.Error with code consumer_name_malformed and field
// name.
func CheckName(text string) error {
	if name.MatchString(text) {
		return nil
	}
	return fault.InvalidField("name", "consumer_name_malformed", "The name of a consumer has 1 to 64 letters, digits, periods, hyphens, and underscores, and starts with a letter or a digit.")
}

// CheckRoom says whether a feed with so many consumers can have one more.
func CheckRoom(has int) error {
	if has < MaxConsumers {
		return nil
	}
	return fault.New(fault.Conflict, "consumers_limit", fmt.Sprintf("This feed has %d consumers, the maximum. Delete one that no longer reads.", has))
}

// Lag is how far a consumer is behind what the tenant accepted. It counts events before the feed's filter.
type Lag struct {
	Events  int
	More    bool          // there are more than Events
	Waiting time.Duration // since the oldest of them was accepted
}

// MaxLag is how many events of a lag are counted.
const MaxLag = 10_000

// Late is how long a consumer acknowledges nothing, although events wait, until that is reported.
const Late = time.Hour

// LateSince is since when a consumer that last acknowledged or was rewound at a time acknowledges nothing although
// events wait; zero: it is not late. A consumer that reads a long backlog acknowledges, and is not late.
func (l Lag) LateSince(acked, now time.Time) time.Time {
	since := now.Add(-l.Waiting)
	if acked.After(since) {
		since = acked
	}
	if l.Events == 0 && !l.More || now.Sub(since) < Late {
		return time.Time{}
	}
	return since
}

// How long nobody reads a feed until its owners are warned, and until it is disabled.
const (
	UnreadWarned   = 14 * 24 * time.Hour
	UnreadDisabled = 30 * 24 * time.Hour
)

// Unread is the reason of a feed that was disabled since nobody read it.
const Unread = "unread"

// Verdict is what happens to a feed that nobody reads.
type Verdict struct {
	Warn, Disable bool
	DisableAt     time.Time
}

// Assess decides about a feed that was last read, created, or resumed at a time.
func Assess(last, now time.Time) Verdict {
	v := Verdict{DisableAt: last.Add(UnreadDisabled)}
	v.Disable = !now.Before(v.DisableAt)
	v.Warn = !v.Disable && !now.Before(last.Add(UnreadWarned))
	return v
}

// scope is what the token of a consumer is permitted, as its key stores it.
const scope = "feed:"

// Scope is the scope of the token of one consumer.
func Scope(endpoint id.UUID, consumer string) string {
	return scope + id.Endpoint.Format(endpoint) + "/" + consumer
}

// ParseScope reads Scope.
func ParseScope(text string) (endpoint id.UUID, consumer string, ok bool) {
	text, ok = strings.CutPrefix(text, scope)
	if !ok {
		return endpoint, "", false
	}
	text, consumer, ok = strings.Cut(text, "/")
	if !ok {
		return endpoint, "", false
	}
	endpoint, err := id.Endpoint.Parse(text)
	return endpoint, consumer, err == nil
}
