package pages

import (
	"time"

	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// SearchView is the result of a search.
type SearchView struct {
	Shell     layout.Shell
	Root      string
	Query     string
	Wrong     string // why the text can't be searched for
	Missing   bool   // the text is an id of no object here
	Hidden    bool   // the actor can't read payloads, so data was not searched
	Further   bool   // the search continued below an event
	Endpoints []components.Option
	Types     []string
	Events    []show.FoundEvent
	Looked    int64     // how many events were read
	Reached   time.Time // the oldest of them; zero if all were read
	More      string    // the address that continues the search
}

func (v SearchView) searched() bool { return v.Query != "" && v.Wrong == "" && !v.Missing }

// looked says how much was searched.
func (v SearchView) looked() string {
	what := "types, keys, and data"
	if v.Hidden {
		what = "types and keys"
	}
	switch {
	case !v.Reached.IsZero():
		return "Searched the " + what + " of events back to "
	case v.Further:
		return "Searched the " + what + " of events back to the oldest one."
	}
	return "Searched the " + what + " of " + components.Many(v.Looked, "event, the only one.", "events, back to the oldest one.")
}

// Yesterday is the start of the previous UTC day, as in a list's address.
func Yesterday(now time.Time) string {
	return now.UTC().Truncate(24 * time.Hour).Add(-24 * time.Hour).Format(time.RFC3339)
}
