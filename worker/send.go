package worker

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// sender renders and signs messages and hands them to what carries to the endpoint's kind.
type sender struct {
	carriers map[endpoint.Kind]carrier
	guard    *guard
	now      func() time.Time
}

func newSender(policy egress.Policy) *sender {
	s := &sender{now: time.Now}
	s.carriers, s.guard = newCarriers(policy)
	return s
}

// send makes one attempt at a job and says what came of it.
func (s *sender) send(ctx context.Context, j *job, t *target) (delivery.Result, *db.AttemptRecord) {
	a := &db.AttemptRecord{ID: db.NewID(), URL: t.masked}
	a.StartedAt = a.ID.Time()
	// The moment that is signed is the one that the attempt keeps, so that its headers can be shown again as they were.
	now := a.StartedAt
	m := j.event.Message(j.eventText(), j.deliveryText(), t.endpoint)
	signing := t.signingAt(now)
	body := j.event.render(signing.Format, m)
	headers := signing.Headers(make([]signature.Header, 0, 8), m, body, signature.Send{At: now, Attempt: int(j.attempts) + 1, Replayed: j.replay})
	a.Format, a.Signature = string(signing.Format), signature.Of(headers)
	p := &parcel{message: m, body: body, headers: headers}
	if j.event.Key != nil {
		p.key = *j.event.Key
	}
	return s.carriers[t.kind].carry(ctx, t, p, a), a
}

// prove sends a verification's challenge as the endpoint's kind does it, and judges the answer.
func (s *sender) prove(ctx context.Context, t *target, mode string, v db.PendingVerificationsRow) (status int, detail string, proven bool) {
	data, _ := json.Marshal(map[string]string{"challenge": v.Challenge}) // a map of strings cannot fail
	now := s.now()
	signing := t.signingAt(now)
	m := signature.Message{
		EventID: id.Event.Format(v.ID), DeliveryID: id.Delivery.Format(v.ID), EndpointID: t.endpoint, Type: "endpoint.verification",
		CreatedAt: v.ID.Time(), OccurredAt: v.ID.Time(), Data: data,
	}
	body := signature.AppendBody(nil, signing.Format, m)
	headers := signing.Headers(nil, m, body, signature.Send{At: now, Attempt: int(v.Tries)})
	return s.carriers[t.kind].prove(ctx, t, &parcel{message: m, body: body, headers: headers}, challenge{mode: mode, text: v.Challenge})
}

func (s *sender) close() {
	for _, c := range s.carriers {
		c.close()
	}
}
