package pages

import (
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
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
	Rows         []show.Event
	Newer, Older string
	Short        bool
	Stored       StoredDays
	Emits        bool // the actor can emit
}

// EventFilter is the filter of the list.
type EventFilter struct{ Type, Channel, Since, Until string }

// EventView is the page of one event.
type EventView struct {
	Shell      layout.Shell
	Root       string
	Routed     show.Routed
	Hidden     bool    // the actor can't read payloads
	Pretty     Excerpt // indented
	Deliveries []show.Delivery
	More       bool // there are further deliveries that are not shown
	Acts       bool
	Expunges   bool   // the actor can delete the data
	Expunged   string // who deleted it, when and why, if known
	Wrong      string // why it was not replayed
	Refused    Refused
}

// verdictsShown bounds the endpoints on an event's page.
const verdictsShown = 100

// endpoints are those of the routing that the page shows.
func (v EventView) endpoints() []show.RoutedEndpoint {
	return v.Routed.Endpoints[:min(len(v.Routed.Endpoints), verdictsShown)]
}

// replayTo are the endpoints to which the event can be replayed.
func (v EventView) replayTo() []components.Option {
	options := []components.Option{{Value: "", Label: "Every endpoint that received it"}}
	for _, e := range v.endpoints() {
		if !e.Deleted {
			options = append(options, components.Option{Value: id.Endpoint.Format(e.ID), Label: e.Name()})
		}
	}
	return options
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

func (v EventView) path() string { return eventPath(v.Root, v.Routed.Event) }

func eventPath(root string, e show.Event) string { return root + "/events/" + id.Event.Format(e.ID) }

func verdictTone(v routing.Verdict) components.Tone {
	switch {
	case v.Held:
		return components.Warning
	case v.Matched:
		return components.Good
	}
	return components.Neutral
}

func verdictWord(v routing.Verdict) string {
	switch {
	case v.Held:
		return "held"
	case v.Matched:
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
