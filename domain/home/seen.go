package home

import "time"

// State is how a home is.
type State string

// The states of a home.
const (
	Operational State = "operational"
	NotReady    State = "not_ready" // it responds, and can't work: it can't read its database, for example
	Down        State = "down"      // it does not respond
	Unknown     State = "unknown"   // the process has not asked it yet
)

// Seen is what one process knows of a home.
type Seen struct {
	Home
	Here    bool // the home of the process itself
	State   State
	Since   time.Time // since when, as far as the process knows
	Release string    // the last known
	SeenAt  time.Time // when it responded last; zero: never
	Numbers Numbers
	Known   bool      // Numbers have been read
	AskedAt time.Time // when they were asked for last; zero: never
	Fault   string    // why that failed; empty: it did not
	doubted bool
}

// Numbers are what the API of a home tells operators of it.
type Numbers struct {
	Tenants     int64    `json:"tenants"`
	Waiting     int64    `json:"waiting"` // deliveries
	DeadLetters int64    `json:"dead_letters"`
	Workers     int64    `json:"workers"`
	Findings    []string `json:"findings"` // what needs an operator there
}

// After is what a process knows of a home once it has asked it again, at a time. One bad response of an operational
// home only raises a doubt, since a busy machine can be slow once: its state changes with the second one.
func (s Seen) After(state State, release string, now time.Time) Seen {
	if state != Down {
		s.SeenAt, s.Release = now, release
	}
	if s.State == Operational && state != Operational && !s.doubted {
		s.doubted = true
		return s
	}
	if s.doubted = false; s.State != state {
		s.State, s.Since = state, now
	}
	return s
}

// Bad reports whether the tenants of a home notice its state.
func (s State) Bad() bool { return s == Down || s == NotReady }

var words = map[State][2]string{
	Operational: {"Operational", ""},
	NotReady: {"Not ready", "Requests for its tenants get 503 with Retry-After: send them again, with the same Idempotency-Key. " +
		"Acknowledged events are stored in its database. Tenants of other homes are not affected."},
	Down: {"Down", "Requests for its tenants fail: send them again, with the same Idempotency-Key. Acknowledged events are stored in its database, " +
		"and its workers deliver them while they can reach it. Tenants of other homes are not affected."},
	Unknown: {"Unknown", "This process has not reached it yet."},
}

// Word is the state as people read it.
func (s State) Word() string { return words[s][0] }

// Means is what a state means for the tenants of a home; empty: nothing.
func (s State) Means() string { return words[s][1] }
