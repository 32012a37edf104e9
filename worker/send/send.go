// Package send makes delivery attempts: it renders and signs a message and passes it to the transport of the endpoint's
// kind. It knows destinations and messages, but no queues and no lanes.
//
// Every connection is opened through one guard (dial.go), which resolves a name once, checks the whole DNS response and
// dials a checked address.
package send

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Sender sends to endpoints of every kind. It is safe for concurrent use.
type Sender struct {
	transports map[endpoint.Kind]transport
	guard      *guard
	now        func() time.Time
	links      queue.Links
	bot        atomic.Pointer[httpsig.Bot] // signs as the platform; nil: nobody does
}

// New returns a sender that connects only to addresses that the policy allows.
func New(policy egress.Policy) *Sender {
	s := &Sender{now: time.Now}
	s.transports, s.guard = newTransports(policy)
	return s
}

// UseLinks has deliveries contain signed links. Call it before the first delivery.
func (s *Sender) UseLinks(l queue.Links) { s.links = l }

// Message is one event for one endpoint in one attempt.
type Message struct {
	Event      *Payload
	EventID    string // the external id
	Delivery   id.UUID
	DeliveryID string // the external id
	FirstID    string // of a replay: the first delivery of the event to the endpoint; else empty
	Attempt    int    // from 1
	Version    int64  // of the tenant's routes by which the endpoint's transformation is chosen
	Replayed   bool
}

// Deliver makes one attempt and returns its result and its record.
func (s *Sender) Deliver(ctx context.Context, to *Destination, m Message) (delivery.Result, *queue.Attempt) {
	a := &queue.Attempt{ID: db.NewID(), URL: to.Masked}
	a.StartedAt = a.ID.Time()
	// The signed time is the recorded time, so that the page can show the request's headers exactly.
	now := a.StartedAt
	signing := to.signingAt(now)
	r := &request{}
	used, failure, err := s.render(to, r, m, signing.Format)
	if failure != delivery.FailNone {
		if err != nil {
			a.Error = err.Error()
		}
		return delivery.Result{Failure: failure}, a
	}
	wire := to.wire
	if used != 0 {
		wire = to.wireWith(used)
	}
	headers := signing.Headers(
		make([]signature.Header, 0, 8),
		r.message,
		r.body,
		signature.Send{At: now, Attempt: m.Attempt, Replayed: m.Replayed},
	)
	public := s.publicHeaders(to, r.body, r.contentType, headers, now)
	a.Format, a.Signature = wire, signature.KeptWith(signing.Kept(headers), public)
	headers = append(headers, public...)
	if to.traced && r.message.Traceparent != "" {
		headers = queue.AppendTrace(headers, r.message.Traceparent, m.Delivery, m.Attempt)
	}
	r.headers = headers
	return s.transports[to.kind].deliver(ctx, to, r, a), a
}

// render puts an event's own body into a request, as the endpoint's transformation or else its format makes it. used is
// the version of the transformation; 0: none. A failure says why there is no body.
func (s *Sender) render(to *Destination, r *request, m Message, f signature.Format) (used int64, failure delivery.Failure, err error) {
	content := queue.Message(m.Event.Event, m.EventID, m.DeliveryID, to.Endpoint)
	content.FirstID, content.TypeField, content.Bare = m.FirstID, to.typeField, to.bare
	shared := true // with other deliveries of the event; a link is of this delivery alone
	if queue.IsReference(m.Event.Event) {
		if !to.large {
			return 0, delivery.FailTooLarge, nil
		}
		content, shared = queue.Linked(content, s.links.Of(m.Event.TenantID, m.Delivery)), false
	}
	if to.batch != nil && content.ContentType != "" { // in an array, a payload that is no JSON is a JSON string
		content.ContentType, shared = "", false
	}
	r.message, r.contentType = content, content.BodyType(f)
	if m.Event.Key != nil {
		r.key = *m.Event.Key
	}
	if to.transformations != nil {
		link := func() string { return s.links.Of(m.Event.TenantID, m.Delivery) }
		if used, err = to.transform(r, m, f, content, link); err != nil {
			return 0, delivery.FailTransformation, err
		}
	}
	switch {
	case r.body != nil:
	case shared:
		r.body = m.Event.render(f, content)
	default:
		r.body = signature.AppendBody(nil, f, content)
	}
	return used, delivery.FailNone, nil
}

// Ask is what a verification asks a receiver for.
type Ask struct {
	Mode   string
	Origin string // the host that requests come from, for the mode options
	Rate   *int32 // requests a second; nil: as many as there are
}

// Permission is how many requests a minute a receiver permits; 0: it says nothing, or any number.
type Permission int

// Verify sends a verification's challenge in the mode of the endpoint's kind and checks the response. The detail is a
// sentence for the endpoint's owner; it is empty after a success.
func (s *Sender) Verify(ctx context.Context, to *Destination, ask Ask, v sql.PendingVerificationsRow) (
	status int,
	detail string,
	verified bool,
	permitted Permission,
) {
	fields := map[string]string{"challenge": v.Challenge}
	shaped := ask.Mode == "simple" && to.transformations != nil
	if shaped { // people read it, and it opens no incident
		fields["message"], fields["status"] = "Posthorn verifies that this endpoint receives its messages.", "resolved"
	}
	data, _ := json.Marshal(fields) // a map of strings cannot fail
	r := s.ask(to, v.ID, "endpoint.verification", data, int(v.Tries), shaped)
	status, detail, verified = s.transports[to.kind].verify(ctx, to, r, challenge{mode: ask.Mode, text: v.Challenge, ask: ask, rate: &permitted})
	return status, detail, verified, permitted
}

// Check sends a test event that is recorded nowhere, and reports whether the endpoint accepts it: with a 2xx. The
// detail is as that of Verify.
func (s *Sender) Check(ctx context.Context, to *Destination) (status int, detail string, accepted bool) {
	r := s.ask(to, db.NewID(), endpoint.TestType, testData(to), 1, to.transformations != nil)
	return s.transports[to.kind].verify(ctx, to, r, challenge{mode: "simple"})
}

// testData is the data of a test event. Where a transformation is applied, it opens no incident.
func testData(to *Destination) json.RawMessage {
	if to.transformations != nil {
		return json.RawMessage(`{"test":true,"status":"resolved"}`)
	}
	return json.RawMessage(`{"test":true}`)
}

// ask renders and signs a request that is no delivery. shaped says that it is sent as the newest transformation has it:
// a receiver that wants its own JSON accepts no other. One that can't be applied is left out.
func (s *Sender) ask(to *Destination, ID id.UUID, kind string, data json.RawMessage, attempt int, shaped bool) *request {
	now := s.now()
	signing := to.signingAt(now)
	m := signature.Message{
		EventID:    id.Event.Format(ID),
		DeliveryID: id.Delivery.Format(ID),
		EndpointID: to.Endpoint,
		Type:       kind,
		CreatedAt:  ID.Time(),
		OccurredAt: ID.Time(),
		Data:       data,
		TypeField:  to.typeField,
	}
	r := &request{
		message:     m,
		contentType: m.BodyType(signing.Format),
		signGet:     func(u *url.URL) []signature.Header { return s.botHeaders(to, u, now) },
	}
	if shaped {
		_, _ = to.transform(r, Message{Event: &Payload{Event: &sql.Event{}}, Version: math.MaxInt64}, signing.Format, m, s.links.Example)
	}
	if r.body == nil {
		r.body = signature.AppendBody(nil, signing.Format, m)
	}
	if to.batch != nil {
		r.alone(to.kind.BatchStart())
	}
	headers := signing.Headers(nil, m, r.body, signature.Send{At: now, Attempt: attempt})
	r.headers = append(headers, s.publicHeaders(to, r.body, r.contentType, headers, now)...)
	return r
}

// OpenInbox lets test inboxes receive through this process until the returned function is called. Call it once.
func (s *Sender) OpenInbox(receiver http.Handler) (closeInbox func()) {
	return s.transports[endpoint.Inbox].(*inboxTransport).door.open(receiver)
}

// Close closes idle connections.
func (s *Sender) Close() {
	for _, t := range s.transports {
		t.close()
	}
}
