package home

import "time"

// Report is what a home says of itself.
type Report struct {
	Release  string  `json:"release"`
	Database bool    `json:"database"`         // its web process can read its database
	Workers  int64   `json:"workers"`          // live ones
	Counts   *Counts `json:"counts,omitempty"` // nil: not asked for
}

// Counts are the numbers of a home, which cost it some reads.
type Counts struct {
	Tenants   int64         `json:"tenants"`
	Waiting   int64         `json:"waiting"` // deliveries, counted up to WaitingMost
	OldestDue time.Duration `json:"oldest_due"`
	Oldest    string        `json:"oldest"` // the name of the tenant whose delivery has been due for so long; empty: none is
}

// WaitingMost is up to how many waiting deliveries are counted.
const WaitingMost = 200_000

// Seen is what one process knows of a home.
type Seen struct {
	Name     string
	Here     bool // the home of the process itself
	Asked    bool
	Reached  bool      // it responded when it was asked last
	Since    time.Time // since when its state is what it is, as far as the process knows
	Last     Report    // the last that arrived; Counts is that of CountedAt
	SeenAt   time.Time // when Last arrived
	CountsAt time.Time // when Last.Counts were counted; zero: never
	Doubted  time.Time // when an operational home gave its first bad response; zero: no doubt
}

// State is how a home is.
type State string

// The states of a home.
const (
	Operational State = "operational"
	NoWorkers   State = "no_workers"  // it accepts events, and delivers none
	NoDatabase  State = "no_database" // it responds, and can't read its database
	Down        State = "down"        // it does not respond
	Unknown     State = "unknown"     // the process has not asked it yet
)

// State is how a home is, as the process that has asked it knows.
func (s Seen) State() State {
	switch {
	case !s.Asked:
		return Unknown
	case !s.Reached:
		return Down
	case !s.Last.Database:
		return NoDatabase
	case s.Last.Workers == 0:
		return NoWorkers
	}
	return Operational
}

// After is what a process knows of a home once it has asked it again, at a time: nil is no response. One bad response
// of an operational home only raises a doubt, since a busy machine can be slow once: its state changes with a second
// one that was asked for after the first. The last counts are kept until there are others.
func (s Seen) After(got *Report, asked, now time.Time) Seen {
	next := s
	next.Asked, next.Reached = true, got != nil
	if got != nil {
		next.Last, next.SeenAt = *got, now
		if got.Counts != nil {
			next.CountsAt = now
		} else {
			next.Last.Counts = s.Last.Counts
		}
	}
	changed := next.State() != s.State()
	if changed && s.State() == Operational {
		if s.Doubted.IsZero() {
			s.Doubted = now
			return s
		}
		if asked.Before(s.Doubted) {
			return s
		}
		now = s.Doubted
	}
	if changed {
		next.Since = now
	}
	next.Doubted = time.Time{}
	return next
}

// Bad reports whether the tenants of a home notice its state.
func (s State) Bad() bool { return s == Down || s == NoDatabase || s == NoWorkers }

// Word is the state as people read it.
func (s State) Word() string {
	switch s {
	case NoWorkers:
		return "No workers"
	case NoDatabase:
		return "No database"
	case Down:
		return "Down"
	case Unknown:
		return "Unknown"
	default:
		return "Operational"
	}
}

// Means is what a state means for the tenants of a home; empty: nothing.
func (s State) Means() string {
	const others = " Tenants of other homes are not affected."
	switch s {
	case Down, NoDatabase:
		return "Requests for its tenants get 503 with Retry-After: send them again, with the same Idempotency-Key. Acknowledged events are stored in its database, " +
			"and its workers deliver them while they can reach it." + others
	case NoWorkers:
		return "Events for its tenants are accepted and stored, and delivered when a worker runs again." + others
	case Unknown:
		return "This process has not reached it yet."
	default:
		return ""
	}
}

// Found is a tenant that a search has found.
type Found struct {
	Home     string `json:"home"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	External string `json:"external_id,omitempty"`
	State    string `json:"state"`
}
