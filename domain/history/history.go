// Package history has the rules of closed days of a tenant that are kept in an object store
// (docs/adr/0023-history-elsewhere.md).
package history

import (
	"errors"
	"time"

	"posthorn/domain/fault"
)

// State is where a day of a tenant is.
type State string

// The states. A day without one is in the database.
const (
	Exporting State = "exporting" // objects are being written; all rows are in the database
	Leaving   State = "leaving"   // all objects are written and verified; rows are being deleted
	Stored    State = "stored"    // no row is in the database
	Returning State = "returning" // rows are being brought back
	Back      State = "back"      // all rows are in the database again, and no object is left
)

// MaxDays is more days than any tenant keeps.
const MaxDays = 4000

// Delayed is what people read about a day whose last try failed.
const Delayed = "The last try failed. It is repeated every ten minutes."

// Tables are those whose rows an object can hold, in their order in it and in which they are brought back.
var Tables = [...]string{"events", "deliveries", "attempts", "dead_letters", "cancellations"}

// Counts says how much there is of what.
type Counts struct {
	Events        int64            `json:"events"`
	Deliveries    int64            `json:"deliveries"`
	Attempts      int64            `json:"attempts"`
	DeadLetters   int64            `json:"dead_letters"`
	Cancellations int64            `json:"cancellations"`
	States        map[string]int64 `json:"by_status,omitempty"`   // deliveries
	Endpoints     map[string]int64 `json:"by_endpoint,omitempty"` // deliveries, by the endpoint's id
	Types         map[string]int64 `json:"by_type,omitempty"`     // events
}

// Day is a day of a tenant that is in the store, or was. Times that it does not have are zero.
type Day struct {
	At       time.Time // its first moment, UTC
	State    State
	Counts   Counts
	Bytes    int64 // of its objects
	StoredAt time.Time
	AskedAt  time.Time // when somebody asked to bring it back
	Delayed  bool      // the last try to move it failed
	// Expunging is how many events' data its files still have, although it was expunged.
	Expunging int64
}

// Add adds another part's.
func (c *Counts) Add(o Counts) {
	c.Events += o.Events
	c.Deliveries += o.Deliveries
	c.Attempts += o.Attempts
	c.DeadLetters += o.DeadLetters
	c.Cancellations += o.Cancellations
	for _, m := range []struct {
		to   *map[string]int64
		from map[string]int64
	}{{&c.States, o.States}, {&c.Endpoints, o.Endpoints}, {&c.Types, o.Types}} {
		for name, n := range m.from {
			if *m.to == nil {
				*m.to = map[string]int64{}
			}
			(*m.to)[name] += n
		}
	}
}

// A line of an object is {"table":"events","row":{...}}.
const (
	lineStart  = `{"table":"`
	lineMiddle = `","row":`
)

// AppendLine adds a row of a table, which is given as JSON, to an object's lines.
func AppendLine(lines []byte, table, row string) []byte {
	lines = append(lines, lineStart...)
	lines = append(lines, table...)
	lines = append(lines, lineMiddle...)
	lines = append(lines, row...)
	return append(lines, "}\n"...)
}

// ErrLines says that an object holds something else than lines of rows.
var ErrLines = errors.New("the object doesn't hold lines of rows")

// InStorage is the cause of ErrStored: the day that is needed.
type InStorage struct{ Day time.Time }

func (s InStorage) Error() string { return "in storage: " + s.Day.Format(time.DateOnly) }

// ErrStored says that something is of a day that is in the store. Its cause is an InStorage.
func ErrStored(day time.Time) error {
	name := day.Format(time.DateOnly)
	e := fault.New(
		fault.Conflict,
		"day_stored",
		"The history of "+name+" is in storage. Bring the day back first: in the dashboard, with POST /history/"+name+"/restore, or with `posthorn history restore "+name+"`.",
	)
	e.Cause = InStorage{Day: day}
	return e
}

// ErrUnreachable says that the store could not be read.
var ErrUnreachable = fault.New(
	fault.Unavailable,
	"storage_unavailable",
	"This is of a day in storage, which can't be read now. Try again in a minute. If it persists, the platform's operator can see why in the log.",
)

// The pauses after failures of the open tables.
const (
	firstPause   = 10 * time.Second
	longestPause = 10 * time.Minute
)

// Pause is how long the open tables wait after so many failures in a row, before they are written again.
func Pause(failures int) time.Duration {
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longestPause {
			return longestPause
		}
	}
	return pause
}

// Cutoff is the first day that stays in the database, at a moment, where closed days leave after so many days.
func Cutoff(now time.Time, after int) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -after)
}
