package listen

import (
	"context"
	"fmt"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Handout is a delivery on its way to a listener's program: the request that a worker would have made.
type Handout struct {
	Number                   int64 // grows with each that the listener is given
	Delivery, Attempt, Event id.UUID
	EventType                string
	Attempts                 int // made, this one included
	Replayed                 bool
	Headers                  []signature.Header
	Body                     []byte
}

// What a listener's program may have in its hands at once.
const (
	handWindow = 20
	handBytes  = 4 << 20
)

// ErrListenedElsewhere says that another stream of the same listener has begun.
var ErrListenedElsewhere = fault.New(fault.Conflict, "listened_elsewhere", "Another program listens here now. End that one, or make a listener of your own.")

// HandOut gives a listener's stream what waits at the head of its lane, signed at this moment, up to what its program may have in hand. fault.ErrNotFound
// where the listener was deleted, ErrListenedElsewhere where another stream has begun.
func HandOut(ctx context.Context, d *db.DB, ring *seal.Ring, tenant, u id.UUID, stream int64) ([]Handout, error) {
	var given []Handout
	var gone []*queue.Outcome
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		look, err := q.LookAtListener(ctx, sql.LookAtListenerParams{TenantID: tenant, EndpointID: u})
		switch {
		case err != nil:
			return err
		case look.Stream != stream:
			return ErrListenedElsewhere
		case look.Silent:
			if err := q.HearListener(ctx, sql.HearListenerParams{TenantID: tenant, EndpointID: u}); err != nil {
				return err
			}
		}
		if !look.Waits {
			return nil
		}
		given, gone, err = handOut(ctx, q, ring, tenant, u, stream)
		return err
	})
	if err == nil && len(gone) > 0 {
		_, err = queue.RecordOutcomes(ctx, d, queue.Record{Listened: true, Outcomes: gone})
	}
	return given, err
}

// handOut writes down what is given before it goes out: of what the program never gets to see the next stream takes back what its
// client does not name. gone are deliveries whose event can't be sent any more.
func handOut(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, u id.UUID, stream int64) (given []Handout, gone []*queue.Outcome, err error) {
	inHand, err := q.CountInHand(ctx, sql.CountInHandParams{TenantID: tenant, EndpointID: u})
	if err != nil || inHand >= handWindow {
		return nil, nil, err
	}
	sent, err := q.LockListener(ctx, sql.LockListenerParams{TenantID: tenant, EndpointID: u, Stream: stream})
	if db.IsNoRows(err) {
		return nil, nil, ErrListenedElsewhere
	} else if err != nil {
		return nil, nil, err
	}
	e, signing, err := signingOf(ctx, q, ring, tenant, u)
	if err != nil {
		return nil, nil, err
	}
	rows, err := q.NextToHandOut(ctx, sql.NextToHandOutParams{TenantID: tenant, EndpointID: u, Most: int32(handWindow - inHand)})
	if err != nil {
		return nil, nil, err
	}
	size := 0
	for _, r := range rows {
		event, err := q.GetEvent(ctx, sql.GetEventParams{TenantID: tenant, CreatedAt: r.EventID.Time(), ID: r.EventID})
		if db.IsNoRows(err) || err == nil && event.Data == nil {
			gone = append(gone, &queue.Outcome{
				TenantID: tenant, DeliveryID: r.DeliveryID, EventID: r.EventID, EndpointID: u, Gen: r.Gen, Attempts: r.Attempts,
				Decision: delivery.Decision{Status: delivery.Failed, Reason: delivery.Expired},
			})
			continue
		} else if err != nil {
			return nil, nil, err
		}
		if size += len(event.Data); size > handBytes && len(given) > 0 {
			break
		}
		sent++
		one := handoutOf(e, signing, event, r, sent)
		given = append(given, one)
		if err := q.HandOut(ctx, sql.HandOutParams{
			TenantID: tenant, EndpointID: u, DeliveryID: r.DeliveryID, Number: sent, Gen: r.Gen, Attempts: int16(one.Attempts),
			AttemptID: one.Attempt, Signature: signature.Of(one.Headers),
		}); err != nil {
			return nil, nil, err
		}
	}
	if err := q.ForgetStale(ctx, sql.ForgetStaleParams{TenantID: tenant, EndpointID: u}); err != nil {
		return nil, nil, err
	}
	return given, gone, q.SetSent(ctx, sql.SetSentParams{Sent: sent, TenantID: tenant, EndpointID: u})
}

// handoutOf renders and signs a delivery as a worker does. The moment that is signed is the attempt's own.
func handoutOf(e sql.Endpoint, signing signature.Signing, event sql.Event, r sql.NextToHandOutRow, number int64) Handout {
	h := Handout{
		Number: number, Delivery: r.DeliveryID, Attempt: db.NewID(), Event: event.ID, EventType: event.Type,
		Attempts: int(r.Attempts) + 1, Replayed: r.Replay,
	}
	m := queue.Message(&event, id.Event.Format(event.ID), id.Delivery.Format(r.DeliveryID), id.Endpoint.Format(e.ID))
	m.TypeField = signature.TypeField(e.TypeField)
	if r.FirstID != nil {
		m.FirstID = id.Delivery.Format(*r.FirstID)
	}
	h.Body = signature.AppendBody(nil, signing.Format, m)
	h.Headers = signing.Headers(signature.FixedHeaders(), m, h.Body, signature.Send{At: h.Attempt.Time(), Attempt: h.Attempts, Replayed: h.Replayed})
	return h
}

// signingOf is how an endpoint's requests are signed now.
func signingOf(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, u id.UUID) (sql.Endpoint, signature.Signing, error) {
	e, err := q.GetEndpoint(ctx, sql.GetEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return e, signature.Signing{}, err
	}
	live, err := q.LiveSecrets(ctx, sql.LiveSecretsParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return e, signature.Signing{}, err
	}
	s := signature.Signing{Format: signature.Format(e.Format), Prefix: e.Prefix, Rotation: signature.Rotation(e.RotationSignatures), Slot: endpoints.SlotOf(live, e.SlotSecretID)}
	for _, one := range live {
		text, err := ring.Open(one.Sealed, tenant, u)
		if err != nil {
			return e, s, db.Unopened(err)
		}
		key, err := signature.ParseKey(s.Format, string(text))
		if err != nil {
			return e, s, fmt.Errorf("secret of %s: %w", id.Endpoint.Format(u), err)
		}
		s.Keys = append(s.Keys, key)
	}
	return e, s, s.Validate()
}
