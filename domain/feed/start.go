package feed

import (
	"time"

	"posthorn/domain/fault"
)

// Start is where a consumer begins: with what is accepted from now on, with the oldest event that is kept, or with the
// first event that was accepted at a time or later.
type Start struct {
	Oldest bool
	At     time.Time // zero: now, unless Oldest
}

// String is the start as ParseStart reads it.
func (s Start) String() string {
	switch {
	case s.Oldest:
		return Oldest
	case s.At.IsZero():
		return Now
	}
	return s.At.UTC().Format(time.RFC3339)
}

// Past says whether a start lies in the past, as that of an endpoint whose events are sent again must. The error is a
// *fault.Error with code start_malformed and field start.
func (s Start) Past(now time.Time) error {
	if s.At.After(now) {
		return fault.InvalidField("start", "start_malformed", "start must be oldest, or a time in the past. now ends a rewind.")
	}
	return nil
}

// The words of a start.
const (
	Now    = "now"
	Oldest = "oldest"
)

// ParseStart reads now, oldest, or a time (RFC 3339); empty is now. The error is a *fault.Error with code
// start_malformed and field start.
func ParseStart(text string) (Start, error) {
	switch text {
	case "", Now:
		return Start{}, nil
	case Oldest:
		return Start{Oldest: true}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 2000 || at.Year() > 9999 {
		return Start{}, fault.InvalidField("start", "start_malformed", "start must be now, oldest, or a time such as 2026-11-01T00:00:00Z.")
	}
	return Start{At: at}, nil
}
