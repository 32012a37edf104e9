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
	Emits        bool // the actor can emit
}

// EventFilter is the filter of the list.
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
	TraceID    string  // of its trace; empty: none
	Hidden     bool    // the actor can't read payloads
	Pretty     Excerpt // indented
	Routing    routing.Explanation
	Verdicts   []VerdictRow
	Truncated  bool
	Deliveries []DeliveryRow
	More       bool // there are further deliveries that are not shown
	Acts       bool
	Expunges   bool                // the actor can delete the data
	Expunged   string              // who deleted it, when and why, if known
	Endpoints  []components.Option // the endpoints for a replay
	Wrong      string              // why it was not replayed
	Refused    Refused
}

// VerdictRow is why one endpoint got the event or did not.
type VerdictRow struct {
	routing.Verdict
	Endpoint EndpointLabel
	Delivery string
}

// expungeText says what deleting the data does, and to how many deliveries.
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

// EmitView is the form of a new event.
type EmitView struct {
	Shell  layout.Shell
	Root   string
	Types  []string
	Wrong  map[string]string
	Fields []components.FieldProps // type, key, channels
	Data   components.FieldProps
	Token  string // the idempotency key: a second click emits nothing
}
