package pages

import (
	"cmp"
	"slices"
	"time"

	"github.com/a-h/templ"

	"posthorn/domain/delivery"
	domain "posthorn/domain/event"
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
	Values       bool // the actor can read data
}

// EventFilter is the filter of the list.
type EventFilter struct{ Type, Channel, Since, Until, Outcome string }

// OutcomePresets are the filters of a list by what became of events. only says that no other filter is set.
func OutcomePresets(list string, only bool, chosen string) (out []components.Preset) {
	add := func(label, outcome string) {
		p := components.Preset{Label: label, Href: list, Active: only && chosen == outcome}
		if outcome != show.AnyOutcome {
			p.Href += "?outcome=" + outcome
		}
		out = append(out, p)
	}
	add("All", show.AnyOutcome)
	add("With failures", show.WithFailures)
	add("Matched nothing", show.MatchedNothing)
	return out
}

// keyed reports whether an event of the page has an ordering key.
func (v EventsView) keyed() bool {
	return slices.ContainsFunc(v.Rows, func(e show.Event) bool { return e.Key != "" })
}

// EventView is the page of one event.
type EventView struct {
	Shell      layout.Shell
	Root       string
	Routed     show.Routed
	Hidden     bool             // the actor can't read payloads
	Pretty     Excerpt          // indented
	Large      domain.Reference // of data in object storage; its size is 0 if there is none
	Deliveries []show.Delivery
	Durations  map[id.UUID]time.Duration // of the last attempt of each delivery
	More       bool                      // there are further deliveries that are not shown
	Acts       bool
	Expunges   bool   // the actor can delete the data
	Expunged   string // who deleted it, when and why, if known
	Wrong      string // why it was not replayed
	Refused    Refused
}

// download names the file of the data: the content type of large data is its producer's.
func (v EventView) download() templ.Attributes {
	name := id.Event.Format(v.Routed.ID)
	if v.Large.Size == 0 {
		name += ".json"
	}
	return templ.Attributes{"download": name}
}

// received is how many bytes of data were emitted.
func (v EventView) received() string {
	return components.Bytes(int64(cmp.Or(v.Large.Size, v.Pretty.Size))) + " as received"
}

// verdictsShown bounds the endpoints on an event's page.
const verdictsShown = 100

// endpoints are those of the routing that the page shows.
func (v EventView) endpoints() []show.RoutedEndpoint {
	return v.Routed.Endpoints[:min(len(v.Routed.Endpoints), verdictsShown)]
}

// result is a row of an event's page: what routing decided for an endpoint, and a delivery to it.
type result struct {
	Endpoint show.Destination
	Verdict  *routing.Verdict // nil: a further delivery to the endpoint
	Delivery *show.Delivery   // nil: none
}

// results are the endpoints in the order of the routing, each with its deliveries, the newest first; then deliveries to
// endpoints that the routing doesn't name, and endpoints that got nothing.
func (v EventView) results() (out []result) {
	left := slices.Clone(v.Deliveries)
	for i, e := range v.endpoints() {
		row := result{Endpoint: e.Destination, Verdict: &v.Routed.Verdicts[i]}
		n := len(out)
		left = slices.DeleteFunc(left, func(d show.Delivery) bool {
			if d.Endpoint.ID != e.ID {
				return false
			}
			row.Delivery = &d
			out = append(out, row)
			row.Verdict = nil
			return true
		})
		if len(out) == n {
			out = append(out, row)
		}
	}
	for _, d := range left {
		out = append(out, result{Endpoint: d.Endpoint, Delivery: &d})
	}
	slices.SortStableFunc(out, func(a, b result) int { return cmp.Compare(a.rank(), b.rank()) })
	return out
}

// rank is lower for what happened.
func (r result) rank() int {
	switch {
	case r.Delivery != nil:
		return 0
	case r.Verdict.Matched || r.Verdict.Held:
		return 1
	}
	return 2
}

// places are where a narrow screen has the routing and the delivery: a reason is a sentence, and needs the second line.
func (r result) places() (routing, sent string) {
	if r.Delivery == nil {
		return "aside", "second"
	}
	return "second", "aside"
}

// again says why there is a further delivery.
func (r result) again() string {
	if r.Delivery.ReplayedBy.IsZero() {
		return "Sent again"
	}
	return "Replayed"
}

// response is the last response to a delivery, and how long its attempt lasted; else why there is none.
func (v EventView) response(d show.Delivery) string {
	if d.Attempts == 0 {
		return d.Reason.Label()
	}
	return delivery.AnswerText(d.Last.Status, d.Last.Failure) + ", " + components.Duration(v.Durations[d.ID])
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
