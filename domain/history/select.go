package history

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"posthorn/domain/id"
)

// hexID is an id as PostgreSQL writes it.
type hexID struct{ id.UUID }

// UnmarshalText reads an id.
func (u *hexID) UnmarshalText(text []byte) error {
	n, err := hex.Decode(u.UUID[:], []byte(strings.ReplaceAll(string(text), "-", "")))
	if err == nil && n != len(u.UUID) {
		err = errors.New("an id is too short")
	}
	return err
}

// ofRow are the ids in a row of any table.
type ofRow struct {
	ID         hexID `json:"id"`
	EventID    hexID `json:"event_id"`
	EndpointID hexID `json:"endpoint_id"`
	DeliveryID hexID `json:"delivery_id"`
}

func idsOf(row string) (ids ofRow, err error) {
	err = json.Unmarshal([]byte(row), &ids)
	return ids, err
}

// EventIDs are the events that the rows hold.
func (r Rows) EventIDs() ([]id.UUID, error) {
	return each(r.Events, func(o ofRow) id.UUID { return o.ID.UUID })
}

// DeliveryIDs are the deliveries that the rows hold.
func (r Rows) DeliveryIDs() ([]id.UUID, error) {
	return each(r.Deliveries, func(o ofRow) id.UUID { return o.ID.UUID })
}

// LetterIDs are the deliveries of dead letters that the rows hold.
func (r Rows) LetterIDs() ([]id.UUID, error) {
	return each(r.DeadLetters, func(o ofRow) id.UUID { return o.DeliveryID.UUID })
}

func each(rows []string, of func(ofRow) id.UUID) ([]id.UUID, error) {
	ids := make([]id.UUID, len(rows))
	for i, row := range rows {
		o, err := idsOf(row)
		if err != nil {
			return nil, err
		}
		ids[i] = of(o)
	}
	return ids, nil
}

// DeliveriesOf are the deliveries of some events that the rows hold.
func (r Rows) DeliveriesOf(events []id.UUID) (ids []id.UUID, err error) {
	for _, row := range r.Deliveries {
		o, err := idsOf(row)
		if err != nil {
			return nil, err
		}
		if slices.Contains(events, o.EventID.UUID) {
			ids = append(ids, o.ID.UUID)
		}
	}
	return ids, nil
}

// OfEvent are the rows of an event: itself, its deliveries, and what belongs to these.
func (r Rows) OfEvent(event id.UUID) (out Rows, err error) {
	if out.Events, err = filter(r.Events, func(o ofRow) bool { return o.ID.UUID == event }); err != nil {
		return out, err
	}
	if out.Deliveries, err = filter(r.Deliveries, func(o ofRow) bool { return o.EventID.UUID == event }); err != nil {
		return out, err
	}
	return out, out.belongings(r)
}

// OfDelivery are the rows of a delivery and of the other deliveries of its event, as far as they are here, with the
// deliveries before and after it to the same endpoint. event is its event; zero: the delivery is not here.
func (r Rows) OfDelivery(delivery id.UUID) (out Rows, event id.UUID, err error) {
	all := make([]ofRow, len(r.Deliveries))
	at := -1
	for i, row := range r.Deliveries {
		if all[i], err = idsOf(row); err != nil {
			return out, event, err
		}
		if all[i].ID.UUID == delivery {
			at = i
		}
	}
	if at < 0 {
		return out, event, nil
	}
	event = all[at].EventID.UUID
	keep := map[int]bool{}
	for i, o := range all {
		keep[i] = o.EventID.UUID == event
	}
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(all); i += step {
			if all[i].EndpointID == all[at].EndpointID {
				keep[i] = true
				break
			}
		}
	}
	for i, row := range r.Deliveries {
		if keep[i] {
			out.Deliveries = append(out.Deliveries, row)
		}
	}
	if out.Events, err = filter(r.Events, func(o ofRow) bool { return o.ID.UUID == event }); err != nil {
		return out, event, err
	}
	return out, event, out.belongings(r)
}

// OfList are the rows that lists show: all but the attempts.
func (r Rows) OfList() Rows {
	r.Attempts = nil
	return r
}

// belongings adds what belongs to the deliveries of the rows.
func (r *Rows) belongings(all Rows) error {
	deliveries, err := r.DeliveryIDs()
	if err != nil {
		return err
	}
	belongs := func(o ofRow) bool { return slices.Contains(deliveries, o.DeliveryID.UUID) }
	for _, of := range []struct {
		to   *[]string
		from []string
	}{{&r.Attempts, all.Attempts}, {&r.DeadLetters, all.DeadLetters}, {&r.Cancellations, all.Cancellations}} {
		if *of.to, err = filter(of.from, belongs); err != nil {
			return err
		}
	}
	return nil
}

func filter(rows []string, keep func(ofRow) bool) (out []string, err error) {
	for _, row := range rows {
		o, err := idsOf(row)
		if err != nil {
			return nil, err
		}
		if keep(o) {
			out = append(out, row)
		}
	}
	return out, nil
}
