package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/events"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/trace"
	"posthorn/handlers"
)

// emitEvent responds after the event, its deliveries, and its idempotency key are durable. It is the hot path: one
// read of the body, one scan over it, no reflection.
func (a *api) emitEvent(c *handlers.Call) error {
	body, err := c.JSONBody()
	if err != nil {
		return err
	}
	e, err := event.Parse(body, event.Limits{MaxPayload: a.Settings.largest()}, a.Now())
	if err != nil {
		return err
	}
	if err := idempotencyHeader(c, &e); err != nil {
		return err
	}
	items := [1]emit.Item{{Emission: e}}
	if e.IdempotencyKey != "" {
		items[0] = emit.Keyed(e, body)
	}
	items[0].Trace = trace.FromHeaders(c.Request.Header[trace.Header], c.Request.Header[trace.StateHeader])
	emitted, err := a.emit(c, e.CreateTenant, items[:])
	if err != nil {
		return err
	}
	if emitted[0].Err != nil {
		return emitted[0].Err
	}
	accepted(c, emitted[0], e)
	return nil
}

// idempotencyHeader sets the key of an emission from the request's header.
func idempotencyHeader(c *handlers.Call, e *event.Emission) error {
	switch given := c.Request.Header["Idempotency-Key"]; {
	case len(given) == 0:
		return nil
	case len(given) > 1, e.IdempotencyKey != "" && e.IdempotencyKey != given[0]:
		return fault.InvalidField(
			"idempotency_key",
			"idempotency_key_twice",
			"The request has two different idempotency keys. Send one, as the header or as the field.",
		)
	default:
		e.IdempotencyKey = given[0]
		return event.CheckIdempotencyKey(given[0])
	}
}

// accepted writes the 202 of an emission.
func accepted(c *handlers.Call, r emit.Result, e event.Emission) {
	if r.Duplicate {
		c.Writer.Header().Set("Idempotent-Replayed", "true")
	}
	out := make([]byte, 0, 128)
	out = append(out, `{"id":"`...)
	out = append(out, id.Event.Format(r.ID)...)
	out = append(out, `","created_at":"`...)
	out, _ = Time(r.ID.Time()).AppendText(out) // never fails
	out = append(out, `","deliveries":`...)
	out = strconv.AppendInt(out, int64(r.Deliveries), 10)
	if warnings := warningsOf(r, e); len(warnings) > 0 {
		if text, err := json.Marshal(warnings); err == nil { // texts only: can't fail
			out = append(append(out, `,"warnings":`...), text...)
		}
	}
	out = append(out, '}', '\n')
	c.Data(http.StatusAccepted, "application/json", c.Indented(out))
}

// emitEvents validates each item of a batch by itself, and emits the valid ones together.
func (a *api) emitEvents(c *handlers.Call) error {
	if len(c.Request.Header["Idempotency-Key"]) > 0 {
		return fault.InvalidField(
			"idempotency_key",
			"idempotency_key_misplaced",
			`A batch can't have an Idempotency-Key header. Give each event its own "idempotency_key".`,
		)
	}
	body, err := c.JSONBody()
	if err != nil {
		return err
	}
	raw, err := event.SplitBatch(body, a.Settings.BatchItems)
	if err != nil {
		return err
	}
	now, parent := a.Now(), trace.FromHeaders(c.Request.Header[trace.Header], c.Request.Header[trace.StateHeader])
	create := false
	results := make([]ItemResult, len(raw))
	items := make([]emit.Item, 0, len(raw))
	places := make([]int, 0, len(raw))
	for i, text := range raw {
		e, err := event.Parse(text, event.Limits{MaxPayload: a.Settings.largest()}, now)
		if err != nil {
			results[i] = refusedItem(err)
			continue
		}
		create = create || e.CreateTenant
		item := emit.Item{Emission: e}
		if e.IdempotencyKey != "" {
			item = emit.Keyed(e, text)
		}
		item.Trace = parent
		items = append(items, item)
		places = append(places, i)
	}
	answer := BatchResult{Results: results, Refused: len(raw) - len(items)}
	if len(items) > 0 {
		emitted, err := a.emit(c, create, items)
		if err != nil {
			return err
		}
		if err := wholeBatch(emitted); err != nil {
			return err
		}
		for i, r := range emitted {
			if r.Err != nil {
				results[places[i]] = refusedItem(r.Err)
				answer.Refused++
				continue
			}
			results[places[i]] = acceptedItem(r, items[i].Emission)
			answer.Accepted++
		}
	}
	status := http.StatusAccepted
	if answer.Refused > 0 {
		status = http.StatusMultiStatus
	}
	return c.Answer(status, answer)
}

// wholeBatch is the error of a batch that stored nothing for a reason that concerns no single item. A client that
// checks only the status then retries, or learns that it lacks the permission.
func wholeBatch(emitted []emit.Result) error {
	for _, r := range emitted {
		e := fault.As(r.Err)
		switch {
		case r.Err == nil:
			return nil
		case e != nil && (e.Kind == fault.Invalid || e.Kind == fault.Conflict || e.Kind == fault.TooLarge):
			return nil
		}
	}
	return emitted[0].Err
}

func acceptedItem(r emit.Result, e event.Emission) ItemResult {
	text, at := id.Event.Format(r.ID), Time(r.ID.Time())
	out := ItemResult{Status: http.StatusAccepted, ID: &text, CreatedAt: &at, Deliveries: &r.Deliveries}
	if r.Duplicate {
		out.Replayed = &r.Duplicate
	}
	if warnings := warningsOf(r, e); len(warnings) > 0 {
		out.Warnings = &warnings
	}
	return out
}

// warningsOf lists the warnings about a stored event. A repeated request gets no warning about the time: the first
// request was possibly on time, and its event is the stored one.
func warningsOf(r emit.Result, e event.Emission) []FieldProblem {
	var out []FieldProblem
	for _, w := range r.Warnings {
		code := "schema_mismatch"
		if w == emit.UnknownVersion {
			code = "unknown_version"
		}
		out = append(out, FieldProblem{Field: w.Field, Code: code, Detail: w.Detail})
	}
	if e.Late && !r.Duplicate {
		out = append(out, FieldProblem{
			Field:  "deliver_at",
			Code:   event.CodeTimeRange,
			Detail: "deliver_at is in the past, so the event is delivered now.",
		})
	}
	return out
}

func refusedItem(err error) ItemResult {
	e := handlers.Known(err)
	out := ItemResult{Status: handlers.Status(e), Code: &e.Code, Detail: &e.Detail}
	if len(e.Fields) > 0 {
		problems := make([]FieldProblem, len(e.Fields))
		for i, f := range e.Fields {
			problems[i] = FieldProblem{Field: f.Name, Code: f.Code, Detail: f.Detail}
		}
		out.Errors = &problems
	}
	return out
}

// eventList is the list of events.
var eventList = handlers.List{
	Name: "events",
	Filters: []handlers.Filter{
		handlers.BySince,
		handlers.ByUntil,
		handlers.ByType,
		handlers.ByChannel,
		handlers.ByTrace,
		handlers.ByEventID,
		handlers.ByStoredDay,
	},
	Choices: []handlers.Choice{handlers.ByOutcome},
}

func (a *api) listEvents(c *handlers.Call) error {
	return list(c, eventList, func(q *db.Tx, p handlers.Page) (show.Page[show.Event], error) {
		return events.List(c.Ctx(), q, c.Actor.Tenant, events.Filter{
			Type:       p.Type,
			Channel:    p.Channel,
			TraceID:    p.TraceID,
			ExternalID: p.EventID,
			Outcome:    p.Chosen[handlers.ByOutcome.Name],
		}, p.Range, a.Now())
	}, eventView)
}

func eventView(e show.Event) Event {
	out := Event{
		ID:          id.Event.Format(e.ID),
		Type:        e.Type,
		CreatedAt:   Time(e.CreatedAt),
		Key:         orNullText(e.Key),
		Channels:    orEmpty(e.Channels),
		Version:     orNullText(e.Version),
		OccurredAt:  orNullTime(e.OccurredAt),
		DeliverAt:   orNullTime(e.DeliverAt),
		ExpiresAt:   orNullTime(e.ExpiresAt),
		EventID:     orNullText(e.ExternalID),
		TraceID:     orNullText(e.TraceID),
		SendEventID: !e.Unsent,
		ContentType: orNullText(e.ContentType),
	}
	if o := e.Outcome; o != nil {
		out.Outcome = &EventOutcome{Waiting: o.Waiting, Delivered: o.Delivered, Failed: o.Failed, Canceled: o.Canceled, Feeds: o.Feeds}
	}
	return out
}

// getEvent responds with the event's data as it was received.
func (a *api) getEvent(c *handlers.Call) error {
	eventID := c.PathID("event_id")
	var e show.Event
	err := c.Tx(func(q *db.Tx) (err error) {
		e, err = events.Read(c.Ctx(), q, c.Actor.Tenant, eventID)
		return err
	})
	if err != nil {
		return err
	}
	text, err := eventText(e)
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json", text)
	return nil
}

// getEventData responds with the data alone, also where it is in object storage.
func (a *api) getEventData(c *handlers.Call) error {
	eventID := c.PathID("event_id")
	var found deliveries.Whole
	err := c.Tx(func(q *db.Tx) (err error) {
		found, err = deliveries.ReadWhole(c.Ctx(), q, c.Actor.Tenant, eventID)
		return err
	})
	if err != nil {
		return err
	}
	return c.AnswerData(a.Large, found)
}

// eventText is an event with its data as it was received, byte for byte. encoding/json would rewrite the data, so the
// text is built here.
func eventText(e show.Event) ([]byte, error) {
	head, err := json.Marshal(eventView(e))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(head)+len(e.Data)+32)
	out = append(out, head[:len(head)-1]...)
	out = append(out, `,"expunged":`...)
	out = strconv.AppendBool(out, e.Data == nil)
	out = append(out, `,"data":`...)
	if e.Data == nil {
		out = append(out, "null"...)
	}
	out = append(out, e.Data...)
	return append(out, '}', '\n'), nil
}
