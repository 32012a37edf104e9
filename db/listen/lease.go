package listen

import (
	"context"

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

// Request is a delivery for a listener's program: the request that a worker would have sent.
type Request struct {
	Number                   int64 // grows with each request to the listener
	Delivery, Attempt, Event id.UUID
	EventType                string
	Attempts                 int // started so far, including this one
	Replayed                 bool
	Headers                  []signature.Header
	Body                     []byte
}

// How much a listener's program can hold without responding.
const (
	leaseWindow = 20
	leaseBytes  = 4 << 20
)

// ErrListenedElsewhere says that another stream of the same listener has started.
var ErrListenedElsewhere = fault.New(fault.Conflict, "listened_elsewhere", "Another program uses this listener now. Stop that program, or create a listener of your own.")

// Lease gives a listener's stream the deliveries at the head of its lane, with fresh signatures, up to what its program
// can hold. It returns fault.ErrNotFound if the listener was deleted, and ErrListenedElsewhere if another stream has
// started.
func Lease(ctx context.Context, d *db.DB, ring *seal.Ring, tenant, endpointID id.UUID, stream int64) ([]Request, error) {
	var given []Request
	var gone []*queue.Outcome
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		listener, err := q.PeekListener(ctx, tenant, endpointID)
		switch {
		case err != nil:
			return err
		case listener.Stream != stream:
			return ErrListenedElsewhere
		case listener.Silent:
			if err := welcomeBack(ctx, q, tenant, endpointID); err != nil {
				return err
			}
			if err := q.TouchListener(ctx, tenant, endpointID); err != nil {
				return err
			}
		}
		if !listener.Waits {
			return nil
		}
		given, gone, err = leaseRows(ctx, q, ring, tenant, endpointID, stream)
		return err
	})
	if err == nil && len(gone) > 0 {
		_, err = queue.RecordOutcomes(ctx, d, queue.OutcomeBatch{Listened: true, Outcomes: gone})
	}
	return given, err
}

// leaseRows stores each lease before the request goes out. The next stream revokes the leases that its client does not
// name, since the program never received those. gone are deliveries whose event can no longer be sent.
func leaseRows(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant, endpointID id.UUID,
	stream int64,
) (given []Request, gone []*queue.Outcome, err error) {
	leased, err := q.CountLeased(ctx, tenant, endpointID)
	if err != nil || leased >= leaseWindow {
		return nil, nil, err
	}
	sent, err := q.LockListener(ctx, sql.LockListenerParams{TenantID: tenant, EndpointID: endpointID, Stream: stream})
	if db.IsNoRows(err) {
		return nil, nil, ErrListenedElsewhere
	} else if err != nil {
		return nil, nil, err
	}
	e, signing, err := endpoints.Signing(ctx, q, ring, tenant, endpointID)
	if err != nil {
		return nil, nil, err
	}
	rows, err := q.NextToLease(ctx, sql.NextToLeaseParams{
		TenantID:   tenant,
		EndpointID: endpointID,
		Limit:      int32(leaseWindow - leased),
	})
	if err != nil {
		return nil, nil, err
	}
	size := 0
	for _, r := range rows {
		event, err := q.GetEvent(ctx, sql.GetEventParams{TenantID: tenant, CreatedAt: r.EventID.Time(), ID: r.EventID})
		if db.IsNoRows(err) || err == nil && event.Data == nil {
			gone = append(gone, &queue.Outcome{
				TenantID:   tenant,
				DeliveryID: r.DeliveryID,
				EventID:    r.EventID,
				EndpointID: endpointID,
				Gen:        r.Gen,
				Attempts:   r.Attempts,
				Decision:   delivery.Decision{Status: delivery.Failed, Reason: delivery.RetentionEnded},
			})
			continue
		} else if err != nil {
			return nil, nil, err
		}
		if size += len(event.Data); size > leaseBytes && len(given) > 0 {
			break
		}
		sent++
		one := requestOf(e, signing, event, r, sent)
		given = append(given, one)
		if err := q.InsertLease(ctx, sql.InsertLeaseParams{
			TenantID:   tenant,
			EndpointID: endpointID,
			DeliveryID: r.DeliveryID,
			Number:     sent,
			Gen:        r.Gen,
			Attempts:   int16(one.Attempts),
			AttemptID:  one.Attempt,
			Signature:  signing.Kept(one.Headers),
		}); err != nil {
			return nil, nil, err
		}
	}
	if err := q.ForgetStale(ctx, tenant, endpointID); err != nil {
		return nil, nil, err
	}
	return given, gone, q.SetSent(ctx, sql.SetSentParams{Sent: sent, TenantID: tenant, EndpointID: endpointID})
}

// requestOf renders and signs a delivery as a worker does. It signs the attempt's own time.
func requestOf(e sql.Endpoint, signing signature.Signing, event sql.Event, r sql.NextToLeaseRow, number int64) Request {
	h := Request{
		Number:    number,
		Delivery:  r.DeliveryID,
		Attempt:   db.NewID(),
		Event:     event.ID,
		EventType: event.Type,
		Attempts:  int(r.Attempts) + 1,
		Replayed:  r.Replay,
	}
	m := queue.Message(&event, id.Event.Format(event.ID), id.Delivery.Format(r.DeliveryID), id.Endpoint.Format(e.ID))
	w := endpoints.Wire(e)
	m.TypeField, m.Bare = w.TypeField, w.Bare()
	if r.FirstID != nil {
		m.FirstID = id.Delivery.Format(*r.FirstID)
	}
	h.Body = signature.AppendBody(nil, signing.Format, m)
	h.Headers = signing.Headers(signature.FixedHeaders(m.BodyType(signing.Format)), m, h.Body, signature.Send{
		At:       h.Attempt.Time(),
		Attempt:  h.Attempts,
		Replayed: h.Replayed,
	})
	return h
}
