package api

import (
	"net/http"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

// madeAttempt is an attempt with everything that its request is rebuilt from.
type madeAttempt struct {
	sql.Attempt
	delivery sql.Delivery
	endpoint sql.Endpoint
	settings endpoint.Settings
	event    sql.Event
}

// getAttempt responds with one attempt and the request that it sent.
func (a *api) getAttempt(c *handlers.Call) error {
	of, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	attemptID, err := c.ID(id.Attempt, "attempt_id")
	if err != nil {
		return err
	}
	var m madeAttempt
	err = c.Tx(func(q *db.Tx) error {
		m, err = a.readAttempt(c, q, of, attemptID)
		return err
	})
	if err != nil {
		return err
	}
	v := attemptView(m.Attempt)
	return c.Answer(http.StatusOK, AttemptWithRequest{
		ID: v.ID, Number: v.Number, Late: v.Late, Status: v.Status, Failure: v.Failure, Error: v.Error,
		StartedAt: v.StartedAt, Phases: v.Phases,
		URL: v.URL, Format: v.Format, Signature: v.Signature, ResponseHeaders: v.ResponseHeaders,
		ResponseExcerpt: v.ResponseExcerpt, Request: m.request(c.Actor.Scopes.Has(access.EventsRead)),
	})
}

func (a *api) readAttempt(c *handlers.Call, q *db.Tx, of, attemptID id.UUID) (m madeAttempt, err error) {
	d, err := deliveries.Read(c.Ctx(), q, c.Actor.Tenant, of)
	if err != nil {
		return m, err
	}
	m.delivery = d.Delivery
	if m.Attempt, err = deliveries.Attempt(c.Ctx(), q, d.Delivery, attemptID); err != nil {
		return m, err
	}
	if m.endpoint, err = q.AnyEndpoint(c.Ctx(), sql.AnyEndpointParams{
		TenantID: c.Actor.Tenant,
		ID:       d.EndpointID,
	}); err != nil {
		return m, err
	}
	if m.settings, err = endpoints.OpenSettings(m.endpoint, a.Keys); err != nil {
		return m, err
	}
	m.event, err = events.ReadRow(c.Ctx(), q, c.Actor.Tenant, d.EventID)
	if db.IsMissing(err) { // a replay outlives its event: the delivery still has the type
		m.event, err = sql.Event{Type: d.EventType}, nil
	}
	return m, err
}

// request rebuilds the request of an attempt by the rules that rendered it.
func (m madeAttempt) request(withBody bool) SentRequest {
	wire := signature.ParseWire(m.Format, m.endpoint.Prefix)
	message := queue.SentMessage(&m.event, m.delivery, wire)
	v := SentRequest{
		Sent: reached(m.Failure), Headers: []HandoutHeader{}, Timestamp: Time(signedAt(wire.Format, m.CreatedAt)),
		Body: nullable.NewNullNullable[string](),
	}
	for _, h := range queue.SentHeaders(m.settings, wire, message, m.delivery, m.Attempt) {
		v.Headers = append(v.Headers, HandoutHeader{Name: h.Name, Value: h.Value})
	}
	if withBody && m.event.Data != nil {
		v.Body.Set(string(signature.AppendBody(nil, wire.Format, message)))
	}
	return v
}

// signedAt is the time of an attempt as its format signs it.
func signedAt(f signature.Format, at time.Time) time.Time {
	if f == signature.BodyHex {
		return at.UTC().Truncate(time.Millisecond)
	}
	return at.UTC().Truncate(time.Second)
}

// reached reports whether an attempt with this result sent a request.
func reached(f delivery.Failure) bool {
	switch f {
	case delivery.FailDNS, delivery.FailConnect, delivery.FailTLS, delivery.FailBlocked, delivery.FailInternal:
		return false
	}
	return true
}
