package history

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"posthorn/domain/id"
)

// TextOf is the text that a row has in a column, as JSON escapes it; empty if it is null. row_to_json writes
// `"name":"text"` and escapes each quote within a text: the first match is the column. A part has ten thousand rows,
// and of most of them only an id is wanted, so they are not parsed.
func TextOf(row, column string) string {
	_, rest, _ := strings.Cut(row, `"`+column+`":"`)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

var errID = errors.New("a row has an id that can't be read")

// idOf is the id that a row has in a column; zero if it is null.
func idOf(row, column string) (u id.UUID, err error) {
	text := TextOf(row, column)
	if text == "" {
		return u, nil
	}
	var digits [2 * len(u)]byte
	n := 0
	for i := range len(text) {
		if text[i] != '-' && n < len(digits) {
			digits[n] = text[i]
			n++
		}
	}
	if _, err := hex.Decode(u[:], digits[:n]); err != nil || n < len(digits) {
		return u, errID
	}
	return u, nil
}

func idsOf(rows []string, column string) (ids []id.UUID, err error) {
	ids = make([]id.UUID, len(rows))
	for i, row := range rows {
		if ids[i], err = idOf(row, column); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// EventIDs are the events that the rows hold.
func (r Rows) EventIDs() ([]id.UUID, error) { return idsOf(r.Events, "id") }

// DeliveryIDs are the deliveries that the rows hold.
func (r Rows) DeliveryIDs() ([]id.UUID, error) { return idsOf(r.Deliveries, "id") }

// LetterIDs are the deliveries of dead letters that the rows hold.
func (r Rows) LetterIDs() ([]id.UUID, error) { return idsOf(r.DeadLetters, "delivery_id") }

// DeliveriesOf are the deliveries of some events that the rows hold.
func (r Rows) DeliveriesOf(events []id.UUID) ([]id.UUID, error) {
	own, err := having(r.Deliveries, "event_id", setOf(events))
	if err != nil {
		return nil, err
	}
	return idsOf(own, "id")
}

// OfEvent are the rows of an event: itself, its deliveries, and what belongs to these.
func (r Rows) OfEvent(event id.UUID) (out Rows, err error) {
	only := setOf([]id.UUID{event})
	if out.Events, err = having(r.Events, "id", only); err != nil {
		return out, err
	}
	if out.Deliveries, err = having(r.Deliveries, "event_id", only); err != nil {
		return out, err
	}
	return out, out.belongings(r)
}

// OfDelivery are the rows of a delivery and of the other deliveries of its event, as far as they are here, with the
// deliveries before and after it to the same endpoint. event is its event; zero: the delivery is not here.
func (r Rows) OfDelivery(delivery id.UUID) (out Rows, event id.UUID, err error) {
	ids, err := r.DeliveryIDs()
	if err != nil {
		return out, event, err
	}
	at := slices.Index(ids, delivery)
	if at < 0 {
		return out, event, nil
	}
	events, err := idsOf(r.Deliveries, "event_id")
	if err != nil {
		return out, event, err
	}
	event = events[at]
	keep := map[id.UUID]bool{}
	for i, one := range ids {
		keep[one] = events[i] == event
	}
	endpoint := TextOf(r.Deliveries[at], "endpoint_id")
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(ids); i += step {
			if TextOf(r.Deliveries[i], "endpoint_id") == endpoint {
				keep[ids[i]] = true
				break
			}
		}
	}
	out.Deliveries = kept(r.Deliveries, ids, keep)
	if out.Events, err = having(r.Events, "id", setOf([]id.UUID{event})); err != nil {
		return out, event, err
	}
	return out, event, out.belongings(r)
}

// Wanted is what a page of a list asks of a part.
type Wanted struct {
	Events    bool    // a list of events; else of deliveries
	Low, High id.UUID // the rows have ids strictly between them
	Ascending bool
	Rows      int // that are enough

	// Some of the filters. The list checks them and its others again.
	Type     string  // an event type, or all below a prefix: order.*
	Endpoint id.UUID // of deliveries
	Archived bool    // of deliveries: archived ones only; else none of them
}

// matches reports whether the list can show a row.
func (w Wanted) matches(row string) bool {
	column := "event_type"
	if w.Events {
		column = "type"
	}
	if prefix, wild := strings.CutSuffix(w.Type, "*"); w.Type != "" {
		if is := TextOf(row, column); is != w.Type && (!wild || !strings.HasPrefix(is, prefix)) {
			return false
		}
	}
	return w.Events || (w.Endpoint.IsZero() || TextOf(row, "endpoint_id") == w.Endpoint.String()) &&
		(TextOf(row, "archived_at") != "") == w.Archived
}

// OfList are the rows of a page of a list: those that are listed, the events of deliveries, the deliveries of events,
// and their dead letters and cancellations. If there are more, last is the moment of the last one, and all of this
// moment are there.
func (r Rows) OfList(w Wanted) (out Rows, last time.Time, err error) {
	rows := r.Deliveries
	if w.Events {
		rows = r.Events
	}
	ids, err := idsOf(rows, "id")
	if err != nil {
		return out, last, err
	}
	listed := map[id.UUID]bool{}
	var at time.Time
	for i := range ids {
		if !w.Ascending {
			i = len(ids) - 1 - i
		}
		if ids[i].Compare(w.Low) <= 0 || ids[i].Compare(w.High) >= 0 || !w.matches(rows[i]) {
			continue
		}
		if len(listed) >= w.Rows && !ids[i].Time().Equal(at) {
			last = at
			break
		}
		listed[ids[i]], at = true, ids[i].Time()
	}
	if w.Events {
		out.Events = kept(rows, ids, listed)
		out.Deliveries, err = having(r.Deliveries, "event_id", listed)
	} else {
		out.Deliveries = kept(rows, ids, listed)
		var of []id.UUID
		if of, err = idsOf(out.Deliveries, "event_id"); err == nil {
			out.Events, err = having(r.Events, "id", setOf(of))
		}
	}
	if err != nil {
		return out, last, err
	}
	r.Attempts = nil // no list shows them
	return out, last, out.belongings(r)
}

// belongings adds what belongs to the deliveries of the rows.
func (r *Rows) belongings(all Rows) error {
	ids, err := r.DeliveryIDs()
	if err != nil {
		return err
	}
	own := setOf(ids)
	for _, of := range []struct {
		to   *[]string
		from []string
	}{{&r.Attempts, all.Attempts}, {&r.DeadLetters, all.DeadLetters}, {&r.Cancellations, all.Cancellations}} {
		if *of.to, err = having(of.from, "delivery_id", own); err != nil {
			return err
		}
	}
	return nil
}

func setOf(ids []id.UUID) map[id.UUID]bool {
	set := make(map[id.UUID]bool, len(ids))
	for _, one := range ids {
		set[one] = true
	}
	return set
}

// having are the rows that have one of some ids in a column.
func having(rows []string, column string, wanted map[id.UUID]bool) ([]string, error) {
	ids, err := idsOf(rows, column)
	return kept(rows, ids, wanted), err
}

// kept are the rows whose ids are wanted.
func kept(rows []string, ids []id.UUID, wanted map[id.UUID]bool) (out []string) {
	for i, one := range ids {
		if wanted[one] {
			out = append(out, rows[i])
		}
	}
	return out
}
