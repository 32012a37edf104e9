package source

import (
	"fmt"
	"time"

	"posthorn/domain/words"
)

// The bounds of reading.
const (
	Batch       = 200              // messages that one transaction takes
	Wait        = 5 * time.Second  // for the first of them
	MeasureEach = 10 * time.Second // how often the broker is asked how many wait
	KeptDays    = 15               // how long messages are recognized: longer than SQS keeps any

	maxStored        = 1000     // messages of a source that wait to be stored
	maxStoredBytes   = 32 << 20 // of these
	maxRejected      = 10_000   // messages of a source that were rejected
	maxRejectedBytes = 1 << 30

	// FailingTold and BehindTold are how long a source fails, or more wait than one batch, before its tenant is told.
	FailingTold = 5 * time.Minute
	BehindTold  = time.Hour
)

// Status is what a source does.
type Status string

// The statuses.
const (
	Active  Status = "active"
	Paused  Status = "paused"
	Failing Status = "failing" // it is tried again and again
)

// State is how a source is.
type State struct {
	PausedAt     time.Time // zero: it is not
	FailingSince time.Time // zero: it does not
	Reason       string    // why it fails
	Waiting      *int64    // messages in the broker; nil: not known
	BehindSince  time.Time // since when more wait than one batch; zero: fewer do
	LastReadAt   time.Time // when the newest message was taken; zero: none was
	LastSentAt   time.Time // the time that the broker says of it
	Missed       int64     // records that the topic deleted before they were read
}

// Status is what the source does.
func (s State) Status() Status {
	switch {
	case !s.PausedAt.IsZero():
		return Paused
	case !s.FailingSince.IsZero():
		return Failing
	}
	return Active
}

// Delay is how old the newest message was when it was taken, while others wait behind it; 0: none does.
func (s State) Delay() time.Duration {
	if s.Waiting == nil || *s.Waiting == 0 || s.LastSentAt.IsZero() {
		return 0
	}
	return max(s.LastReadAt.Sub(s.LastSentAt), 0)
}

// Held is what of a source is in the database and is no event, counted up to the numbers of Counted.
type Held struct{ Stored, StoredBytes, Rejected, RejectedBytes int64 }

// Counted is how many messages of a source are counted.
func Counted() (stored, rejected int32) { return maxStored, maxRejected }

// Full says why no more messages are taken; reason is empty where that needs no person: the messages that were taken
// wait to be stored.
func (h Held) Full() (full bool, reason string) {
	switch {
	case h.Rejected >= maxRejected, h.RejectedBytes >= maxRejectedBytes:
		return true, fmt.Sprintf("%s messages were rejected. Fix the cause and retry them, or discard them", words.Number(h.Rejected))
	case h.Stored >= maxStored, h.StoredBytes >= maxStoredBytes:
		return true, ""
	}
	return false, ""
}

// Backoff is how long a reader waits after so many failures in a row.
func Backoff(failures int) time.Duration {
	return min(time.Second<<min(max(failures-1, 0), 6), time.Minute)
}

// Told is why a tenant is told of a source; empty: it is not.
func (s State) Told(now time.Time) string {
	switch {
	case s.Status() == Failing && now.Sub(s.FailingSince) >= FailingTold:
		return "failing"
	case s.Status() != Paused && !s.BehindSince.IsZero() && now.Sub(s.BehindSince) >= BehindTold:
		return "behind"
	}
	return ""
}
