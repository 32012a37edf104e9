package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// ReadDetail reads a delivery with what its page shows beside it: at most limit attempts, and as many deliveries of the
// same event. It changes the planner settings of its transaction.
func ReadDetail(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID, limit int) (v show.DeliveryDetail, err error) {
	if v.Delivery, err = Read(ctx, q, tenant, deliveryID); err != nil {
		return v, err
	}
	if v.Attempts, err = Attempts(ctx, q, v.Delivery, limit+1); err != nil {
		return v, err
	}
	if v.Earlier = len(v.Attempts) > limit; v.Earlier {
		v.Attempts = v.Attempts[1:]
	}
	v.Delivery = v.Diagnosed(v.Attempts)
	if !v.Endpoint.Deleted {
		lanes, err := endpoints.Conditions(ctx, q, &tenant, []id.UUID{v.Endpoint.ID})
		if err != nil {
			return v, err
		}
		v.Condition = lanes[v.Endpoint.ID].Condition.Shown()
		_, err = replayable(ctx, q, tenant, v.EventID)
		if v.Sendable = err == nil; err != nil && fault.As(err) == nil {
			return v, err
		}
	}
	list := ListOptions{Event: v.EventID, Endpoint: v.Endpoint.ID, Range: show.Range{Limit: limit}}
	same, err := List(ctx, q, tenant, list)
	if err != nil {
		return v, err
	}
	for _, d := range same.Rows {
		if d.ID != v.ID {
			v.Others = append(v.Others, d)
		}
	}
	list = ListOptions{Endpoint: v.Endpoint.ID, Range: show.Range{Limit: 1, After: v.ID[:]}}
	for _, beside := range []*id.UUID{&v.Older, &v.Newer} {
		found, err := List(ctx, q, tenant, list)
		if err != nil {
			return v, err
		}
		if len(found.Rows) > 0 {
			*beside = found.Rows[0].ID
		}
		list.Ascending = true
	}
	return v, nil
}

// Sent is what the requests of a delivery are rebuilt from.
type Sent struct {
	delivery show.Delivery
	endpoint sql.Endpoint
	settings endpoint.Settings
	event    sql.Event // without data if it is no longer kept
	versions transform.Versions
	links    queue.Links
}

// ReadSent reads what the requests of a delivery are rebuilt from. links without keys hide the signed link.
func ReadSent(ctx context.Context, q *sql.Queries, keys *seal.Ring, links queue.Links, d show.Delivery) (s Sent, err error) {
	if s, err = readShape(ctx, q, d); err == nil {
		s.links = links
		s.settings, err = endpoints.OpenSettings(s.endpoint, keys)
	}
	return s, err
}

// readShape reads what the body of a delivery is made from.
func readShape(ctx context.Context, q *sql.Queries, d show.Delivery) (s Sent, err error) {
	s.delivery = d
	if s.endpoint, err = q.AnyEndpoint(ctx, d.TenantID, d.Endpoint.ID); err != nil {
		return s, err
	}
	s.event, err = events.ReadRow(ctx, q, d.TenantID, d.EventID)
	if db.IsMissing(err) { // a replay outlives its event: the delivery still has the type
		s.event, err = sql.Event{Type: d.EventType}, nil
	}
	if err == nil {
		s.versions, err = endpoints.Transformations(ctx, q, d.TenantID, d.Endpoint.ID)
	}
	return s, err
}

// untransformed adds why the endpoint's transformation can't be applied to a delivery that waits for its edit.
func untransformed(ctx context.Context, q *sql.Queries, d show.Delivery) (show.Delivery, error) {
	if d.Wait.Reason != condition.Transformation {
		return d, nil
	}
	s, err := readShape(ctx, q, d)
	if err != nil || s.event.ID.IsZero() {
		return d, err
	}
	if _, _, problem := s.versions.Render(s.routes(), s.input(endpoints.Wire(s.endpoint))); problem != nil {
		return d.Untransformed(problem.Error()), nil
	}
	return d, nil
}

// routes is the version of the tenant's routes by which the endpoint's transformation is chosen.
func (s Sent) routes() int64 {
	if s.delivery.Routes != 0 {
		return s.delivery.Routes
	}
	return s.event.RoutingVersion
}

// message is the event as the requests of the delivery render it.
func (s Sent) message(wire signature.Wire) signature.Message {
	m := queue.SentMessage(&s.event, s.delivery, wire)
	if queue.IsReference(&s.event) {
		m = queue.Linked(m, s.link())
	}
	return m
}

func (s Sent) link() string { return s.links.Of(s.delivery.TenantID, s.delivery.ID) }

func (s Sent) input(wire signature.Wire) transform.Input {
	return transform.Input{
		Message:  s.message(wire),
		Format:   wire.Format,
		Key:      db.OrZero(s.event.Key),
		Channels: s.event.Channels,
		JSON:     s.settings.Batch() != nil,
		Link:     s.link,
	}
}

// Request rebuilds the request of an attempt by the rules that rendered it.
func (s Sent) Request(t show.Attempt) show.Request {
	wire := signature.ParseWire(t.Format, s.endpoint.Prefix)
	m := s.message(wire)
	r := show.Request{
		Headers: queue.SentHeaders(s.settings, wire, m, s.delivery, t),
		Changed: s.endpoint.UpdatedAt.After(t.StartedAt),
	}
	kind := m.BodyType(wire.Format)
	if wire.Transformed == 0 {
		r.Body = s.body(wire)
	} else if out, ok := s.versions.RenderAt(wire.Transformed, s.input(wire)); ok && s.event.Data != nil {
		r.Body, r.Method = out.Body, out.Method
		kind = out.ContentType
		r.Headers = append(r.Headers, out.Headers...)
	}
	if r.Batch = wire.Batch; r.Batch != nil && r.Body != nil {
		var body []byte
		body, kind = signature.AppendItem(nil, s.settings.Kind.BatchStart(), r.Body, kind)
		r.Body = signature.AppendBatchEnd(body, kind)
	}
	r.Headers[0].Value = kind
	if s.settings.Kind == endpoint.Kafka {
		r.Key = db.OrZero(s.event.Key)
	}
	return r
}

// Body is the body that the delivery sends, in the format of the last of its attempts; nil if the event's data is no
// longer kept.
func (s Sent) Body(attempts ...show.Attempt) []byte {
	wire := endpoints.Wire(s.endpoint)
	for _, t := range attempts {
		wire = signature.ParseWire(t.Format, wire.Prefix)
	}
	if len(attempts) == 0 && s.event.Data != nil {
		if out, used, err := s.versions.Render(s.routes(), s.input(wire)); err != nil || used != 0 {
			return out.Body
		}
	}
	return s.body(wire)
}

func (s Sent) body(wire signature.Wire) []byte {
	if s.event.Data == nil {
		return nil
	}
	if wire.Transformed != 0 {
		out, _ := s.versions.RenderAt(wire.Transformed, s.input(wire))
		return out.Body
	}
	return signature.AppendBody(nil, wire.Format, s.message(wire))
}

// FindEvent returns fault.ErrNotFound unless a tenant has an event that its retention shows.
func FindEvent(ctx context.Context, q *sql.Queries, tenant, event id.UUID) error {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return err
	}
	exists, err := q.EventExists(ctx, sql.EventExistsParams{TenantID: tenant, CreatedAt: event.Time(), ID: event})
	if err == nil && (!exists || event.Time().Before(floor)) {
		err = fault.ErrNotFound
	}
	return err
}

// DataExpunged reports whether somebody deleted the data of a delivery's event.
func DataExpunged(ctx context.Context, q *sql.Queries, d show.Delivery) (bool, error) {
	return q.EventExpunged(ctx, sql.EventExpungedParams{TenantID: d.TenantID, CreatedAt: d.EventID.Time(), ID: d.EventID})
}
