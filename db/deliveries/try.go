package deliveries

import (
	"context"
	"errors"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// Trial says what a transformation is tried on.
type Trial struct {
	Endpoint id.UUID
	Event    id.UUID // zero: the latest that the endpoint subscribes to
	Limit    int
	Links    queue.Links // none is made: an example shows their form
	Now      time.Time
	// Enough reports that no more events are tried; nil: all are.
	Enough func() bool
	// Settings are those to try, from the saved ones, whose secrets are marked.
	Settings func(saved endpoint.Settings) (endpoint.Settings, error)
}

// Try applies an endpoint's transformation to past events, without their deliveries. It changes nothing, and the
// planner settings of its transaction.
func (t Trial) Try(ctx context.Context, q *sql.Queries, tenant id.UUID) (tried []show.Tried, err error) {
	s, err := endpoints.ReadBareSettings(ctx, q, tenant, t.Endpoint)
	if err != nil {
		return nil, err
	}
	s.Transformation = s.Transformation.Hidden()
	if s, err = t.Settings(s); err != nil {
		return nil, err
	}
	var past []show.Event
	if t.Event.IsZero() {
		past, _, err = events.Sample(ctx, q, tenant, s.EventTypes, t.Limit, t.Now)
	} else {
		past, err = events.ReadAll(ctx, q, tenant, []id.UUID{t.Event}, true)
		if err == nil && len(past) == 0 {
			err = fault.ErrNotFound
		}
	}
	if err != nil {
		return nil, err
	}
	for _, e := range past {
		if e.Data == nil {
			continue // expunged
		}
		if t.Enough != nil && t.Enough() {
			break
		}
		one, err := t.on(s, e)
		if err != nil {
			return nil, err
		}
		tried = append(tried, one)
	}
	return tried, nil
}

func (t Trial) on(s endpoint.Settings, e show.Event) (one show.Tried, err error) {
	wire := s.Wire()
	m := signature.Message{
		EventID:     id.Event.Format(e.ID),
		DeliveryID:  id.Delivery.Format(e.ID),
		EndpointID:  id.Endpoint.Format(t.Endpoint),
		Type:        e.Type,
		CreatedAt:   e.CreatedAt,
		OccurredAt:  e.OccurredAt,
		Data:        e.Data,
		Version:     e.Version,
		ContentType: e.ContentType,
		TypeField:   wire.Field(),
		Bare:        wire.Bare(),
	}
	if e.ExternalID != "" && !e.Unsent {
		m.EventID = e.ExternalID
	}
	if m.ContentType == event.ReferenceType {
		m = queue.Linked(m, t.Links.Example())
	}
	one = show.Tried{Event: e, Before: signature.AppendBody(nil, wire.Format, m)}
	if s.Transformation == nil {
		one.Output = transform.Output{Body: one.Before, ContentType: m.BodyType(wire.Format)}
		return one, nil
	}
	one.Output, err = transform.Try(s.Transformation, transform.Input{
		Message:  m,
		Format:   wire.Format,
		Key:      e.Key,
		Channels: e.Channels,
		JSON:     s.Batch() != nil,
		Link:     t.Links.Example,
	})
	if errors.As(err, &one.Problem) {
		err = nil
	}
	return one, err
}
