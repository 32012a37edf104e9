package queue

import (
	"strings"

	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/domain/trace"
)

// Message is an event as the wire formats render it for one endpoint, for the sender and for the page that shows what
// was sent. The ids are in their external form.
func Message(e *sql.Event, eventID, deliveryID, endpointID string) signature.Message {
	m := signature.Message{
		EventID:    eventID,
		DeliveryID: deliveryID,
		EndpointID: endpointID,
		Type:       e.Type,
		CreatedAt:  e.CreatedAt,
		OccurredAt: e.CreatedAt,
		Data:       e.Data,
	}
	if e.ExternalID != nil && e.ExternalIDUnsent == nil {
		m.EventID = *e.ExternalID // the producer's own id, by which its receivers already deduplicate
	}
	if e.ContentType != nil {
		m.ContentType = *e.ContentType
	}
	if e.Traceparent != nil {
		m.Traceparent = *e.Traceparent
	}
	if e.OccurredAt != nil {
		m.OccurredAt = *e.OccurredAt
	}
	if e.Version != nil {
		m.Version = *e.Version
	}
	return m
}

// IsReference reports whether the data of an event is in object storage, and a reference in its place.
func IsReference(e *sql.Event) bool {
	return e.ContentType != nil && *e.ContentType == event.ReferenceType
}

// Linked is the message of such an event: the reference, with a link to the data.
func Linked(m signature.Message, link string) signature.Message {
	r, err := event.ParseReference(m.Data)
	if err != nil {
		return m // it is expunged
	}
	r.Link = link
	m.Data, m.ContentType = r.Encode(), ""
	return m
}

// SentMessage is the event as the requests of a delivery render it.
func SentMessage(e *sql.Event, d show.Delivery, w signature.Wire) signature.Message {
	m := Message(e, id.Event.Format(d.EventID), id.Delivery.Format(d.ID), id.Endpoint.Format(d.Endpoint.ID))
	m.TypeField, m.Bare = w.Field(), w.Bare()
	if w.Batch != nil {
		m.ContentType = "" // a batch is JSON
	}
	if !d.FirstID.IsZero() {
		m.FirstID = id.Delivery.Format(d.FirstID)
	}
	return m
}

// AppendTrace adds the headers of the trace context that was stored with the event.
func AppendTrace(h []signature.Header, stored string, delivery id.UUID, attempt int) []signature.Header {
	c, ok := trace.Attempt(stored, delivery, attempt)
	if !ok {
		return h
	}
	h = append(h, signature.Header{Name: trace.Header, Value: c.String()})
	if c.State != "" {
		h = append(h, signature.Header{Name: trace.StateHeader, Value: c.State})
	}
	return h
}

// SentHeaders are the headers of an attempt: those of every request, the endpoint's present custom headers with their
// secrets masked, and the format's as they were sent.
func SentHeaders(s endpoint.Settings, w signature.Wire, m signature.Message, d show.Delivery, t show.Attempt) []signature.Header {
	send := signature.Send{At: t.StartedAt, Attempt: t.Number, Replayed: d.SentAgain()}
	if w.Batch != nil {
		m, send = w.Batch.Message(m, t.StartedAt), signature.Send{At: t.StartedAt, Attempt: 1}
	}
	h := signature.FixedHeaders(m.BodyType(w.Format))
	if s.Kind.Broker() {
		h = h[:1] // the content type
	}
	for _, name := range s.Headers.Names() {
		value := s.Headers[name].Value
		if s.Headers.Hidden(name) {
			value = endpoint.Marker
		}
		h = append(h, signature.Header{Name: name, Value: value})
	}
	if a := s.Auth; a != nil {
		h = append(h, signature.Header{Name: a.HeaderName(), Value: a.HeaderShown()})
	}
	h = append(h, signature.SentHeaders(w, m, t.Signature, send)...)
	if s.SendTraceparent && m.Traceparent != "" {
		h = AppendTrace(h, m.Traceparent, d.ID, t.Number)
	}
	if s.Kind.Broker() {
		for i := range h {
			h[i].Name = strings.ToLower(h[i].Name) // in lower case, as workers write the headers of messages to brokers
		}
	}
	return h
}
