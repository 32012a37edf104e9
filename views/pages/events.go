package pages

import (
	"time"

	"posthorn/domain/routing"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// EventsView is a page of a tenant's events.
type EventsView struct {
	Shell        layout.Shell
	Root         string
	Filter       EventFilter
	Types        []string
	Wrong        map[string]string
	Rows         []EventRow
	Newer, Older string
	Short        bool
	Stored       StoredDays
	Emits        bool // the actor may emit
}

// EventFilter is what the list is narrowed down to.
type EventFilter struct{ Type, Channel, Since, Until string }

// EventRow is one event of a list.
type EventRow struct {
	ID, Type, Key string
	Channels      []string
	Created       time.Time
	Due           time.Time // of a scheduled one
}

// EventView is the page of one event.
type EventView struct {
	Shell      layout.Shell
	Root       string
	Row        EventRow
	Version    string
	Occurred   time.Time
	TraceID    string  // of the trace that it belongs to; empty: none
	Hidden     bool    // the actor may not read payloads
	Pretty     Excerpt // indented
	Routing    routing.Explanation
	Verdicts   []VerdictRow
	Truncated  bool
	Deliveries []DeliveryRow
	More       bool // there are further deliveries, which are not shown
	Acts       bool
	Expunges   bool                // the actor may destroy the data
	Expunged   string              // who destroyed it, when and why, where that is known
	Endpoints  []components.Option // to replay to
	Wrong      string              // why it was not replayed
	Refused    Refused
}

// VerdictRow is why one endpoint got the event, or why not.
type VerdictRow struct {
	routing.Verdict
	Endpoint EndpointLabel
	Delivery string
}

// expungeText says what destroying the data does, and to how many deliveries.
func (v EventView) expungeText() string {
	waiting := int64(0)
	for _, d := range v.Deliveries {
		if !d.Status.Terminal() {
			waiting++
		}
	}
	called := "Waiting deliveries are canceled."
	switch {
	case v.More:
	case waiting == 0:
		called = "It has no waiting deliveries."
	default:
		called = components.Many(waiting, "waiting delivery is canceled.", "waiting deliveries are canceled.")
	}
	return "Its data, the responses to it, and copies in test inboxes are deleted. " + called + " The record of when and where it was sent stays. This can't be undone."
}

func (v EventView) path() string { return v.Root + "/events/" + v.Row.ID }

func (r VerdictRow) tone() components.Tone {
	switch {
	case r.Held:
		return components.Warning
	case r.Matched:
		return components.Good
	}
	return components.Neutral
}

func (r VerdictRow) word() string {
	switch {
	case r.Held:
		return "held"
	case r.Matched:
		return "matched"
	}
	return "not matched"
}

// EmitView is the form that emits an event.
type EmitView struct {
	Shell  layout.Shell
	Root   string
	Types  []string
	Wrong  map[string]string
	Fields []components.FieldProps // type, key, channels
	Data   components.FieldProps
	Token  string // the idempotency key: pressing twice emits once
}
