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
	Event    id.UUID // that event; zero: the place is before the first event of its row
	Position int64   // of its row in the log, or Older
	Index    int     // how many events of the row were examined
}

// String is the place as a cursor: evt_…-POSITION.INDEX, or evt_…-old before the log. It sorts by nothing.
func (p Place) String() string {
	event := "0"
	if !p.Event.IsZero() {
		event = id.Event.Format(p.Event)
	}
	if p.Position == Older {
		return event + "-old"
	}
	return fmt.Sprintf("%s-%d.%d", event, p.Position, p.Index)
}

// Compare orders places as they are read.
func (p Place) Compare(other Place) int {
	if p.Position == Older && other.Position == Older {
		return p.Event.Compare(other.Event)
	}
	return cmp.Or(cmp.Compare(p.Position, other.Position), cmp.Compare(p.Index, other.Index))
}

// maxIndex bounds the index of a cursor: no transaction stores as many events.
const maxIndex = 1 << 20

var errCursor = fault.InvalidField(
	"cursor",
	"feed_cursor_malformed",
	"cursor must be a cursor that this feed returned. Leave it out to continue where the consumer acknowledged.",
)

// ParsePlace reads a cursor. The error is a *fault.Error with code feed_cursor_malformed and field cursor.
func ParsePlace(text string) (p Place, err error) {
	event, rest, found := strings.Cut(text, "-")
	if !found {
		return p, errCursor
	}
	if event != "0" {
		if p.Event, err = id.Event.Parse(event); err != nil {
			return Place{}, errCursor
		}
	}
	if rest == "old" {
		p.Position = Older
		return p, nil
	}
	position, index, found := strings.Cut(rest, ".")
	if !found {
		return Place{}, errCursor
	}
	p.Position, err = strconv.ParseInt(position, 10, 64)
	if err == nil {
		p.Index, err = strconv.Atoi(index)
	}
	if err != nil || p.Position < 0 || p.Index < 0 || p.Index > maxIndex || p.String() != text || (p.Index == 0) != p.Event.IsZero() {
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
