// Package feed holds the rules of feeds: the cursor, the names of consumers, what a page can ask for, and when a
// consumer lags.
package feed

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Older is the position of events that were stored before the tenant's log began. They are ordered by id.
const Older = -1

// Place is how far a consumer has read: the last event that was examined, whether it matched or not.
type Place struct {
	Event    id.UUID // that event; zero: it is not known, or the place is before the first event of its row
	Position int64   // of its row in the log, or Older
	Index    int     // how many events of the row were examined
}

// String is the place as a cursor. Cursors of one feed sort as texts in the order in which they are read: a-EVENT
// before the log, and b-POSITION-INDEX-EVENT in it, with numbers in hexadecimal of a fixed length.
func (p Place) String() string {
	event := "0"
	if !p.Event.IsZero() {
		event = id.Event.Format(p.Event)
	}
	if p.Position == Older {
		return "a-" + event
	}
	return fmt.Sprintf("b-%016x-%05x-%s", p.Position, p.Index, event)
}

// Compare orders places as they are read.
func (p Place) Compare(other Place) int {
	if p.Position == Older && other.Position == Older {
		return p.Event.Compare(other.Event)
	}
	return cmp.Or(cmp.Compare(p.Position, other.Position), cmp.Compare(p.Index, other.Index))
}

var errCursor = fault.InvalidField(
	"cursor",
	"feed_cursor_malformed",
	"cursor must be a cursor that this feed returned. Leave it out to continue where the consumer acknowledged.",
)

// ParsePlace reads a cursor. The error is a *fault.Error with code feed_cursor_malformed and field cursor.
func ParsePlace(text string) (p Place, err error) {
	phase, rest, _ := strings.Cut(text, "-")
	event := rest
	switch phase {
	case "a":
		p.Position = Older
	case "b":
		numbers := strings.SplitN(rest, "-", 3)
		if len(numbers) != 3 {
			return Place{}, errCursor
		}
		p.Position, err = strconv.ParseInt(numbers[0], 16, 64)
		if err != nil {
			return Place{}, errCursor
		}
		index, err := strconv.ParseInt(numbers[1], 16, 32)
		if err != nil {
			return Place{}, errCursor
		}
		p.Index, event = int(index), numbers[2]
	}
	if event != "0" {
		if p.Event, err = id.Event.Parse(event); err != nil {
			return Place{}, errCursor
		}
	}
	if p.Position < Older || p.Index < 0 || p.String() != text || p.Position != Older && p.Index == 0 && !p.Event.IsZero() {
		return Place{}, errCursor
	}
	return p, nil
}

// ErrCursorLost says that the log has another event in the place of the cursor's.
var ErrCursorLost = fault.New(
	fault.Conflict,
	"feed_cursor_lost",
	"The log has another event in the place of this cursor: the database was restored to an earlier moment, or the cursor is another feed's. Rewind the consumer to a time before that moment.",
)
