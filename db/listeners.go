package db

import (
	"context"
	"time"

	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// CreateListener stores a listener whose settings have been checked. It receives at once: its deliveries wait in a lane that
// stays held, so that no worker ever leases it, until a stream hands them out.
func (q *Queries) CreateListener(ctx context.Context, ring *seal.Ring, tenant id.UUID, s endpoint.Settings, secret endpoint.Secret) (FullEndpoint, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return FullEndpoint{}, err
	}
	if n, err := q.CountListeners(ctx, tenant); err != nil {
		return FullEndpoint{}, err
	} else if err := endpoint.CheckListenerRoom(int(n)); err != nil {
		return FullEndpoint{}, err
	}
	e, err := q.storeEndpoint(ctx, ring, tenant, s, secret)
	if err != nil {
		return FullEndpoint{}, err
	}
	if e, err = q.MakeListener(ctx, MakeListenerParams{TenantID: tenant, ID: e.ID}); err != nil {
		return FullEndpoint{}, err
	}
	if err := q.InsertListener(ctx, InsertListenerParams{TenantID: tenant, EndpointID: e.ID}); err != nil {
		return FullEndpoint{}, err
	}
	return FullEndpoint{Endpoint: e, Settings: s, Record: EndpointRecord{HeldExact: true}}, q.reroute(ctx, e, false)
}

// BeginListening begins a listener's stream, which takes the place of one that may still be open. seen is the number of the last
// delivery that the client has; what it was given after that is given again. 0 is a client that has nothing.
func (d *DB) BeginListening(ctx context.Context, tenant, u id.UUID, seen int64) (stream int64, err error) {
	err = d.Tenant(ctx, tenant, func(q *Queries) error {
		if stream, err = q.BeginStream(ctx, BeginStreamParams{TenantID: tenant, EndpointID: u}); err != nil {
			return err
		}
		return q.TakeBack(ctx, TakeBackParams{TenantID: tenant, EndpointID: u, Seen: seen})
	})
	return stream, err
}

// Answer is what a listener's program made of a delivery.
type Answer struct {
	Delivery, Attempt id.UUID
	Result            delivery.Result
	Took              time.Duration
	Headers           string
	Excerpt           []byte
	Error             string
}

var errNotHandedOut = fault.New(fault.Conflict, "answer_unexpected",
	"This delivery was not given out under this attempt_id, or was given out again since. Answer the one that the stream brought last.")

// TakeAnswer records what became of a delivery that a stream handed out, as a worker records its attempts: with the queue row
// as it was when it was handed out. Who answers twice answers once. A delivery is tried once: who listens decides what is
// sent again.
func (d *DB) TakeAnswer(ctx context.Context, tenant, u id.UUID, a Answer) (DeliveryState, error) {
	var given HandedOut
	var state DeliveryState
	answered := false
	read := func(q *Queries) (err error) {
		state, err = q.ReadDelivery(ctx, tenant, a.Delivery)
		return err
	}
	err := d.Tenant(ctx, tenant, func(q *Queries) (err error) {
		if _, err := q.LookAtListener(ctx, LookAtListenerParams{TenantID: tenant, EndpointID: u}); err != nil {
			return err
		}
		if err := q.HearListener(ctx, HearListenerParams{TenantID: tenant, EndpointID: u}); err != nil {
			return err
		}
		if err := read(q); err != nil {
			return err
		}
		given, err = q.GetHandedOut(ctx, GetHandedOutParams{TenantID: tenant, EndpointID: u, DeliveryID: a.Delivery, AttemptID: a.Attempt})
		if !noRows(err) {
			return err
		}
		answered, err = q.AttemptExists(ctx, AttemptExistsParams{TenantID: tenant, DeliveryID: a.Delivery, CreatedAt: a.Attempt.Time(), ID: a.Attempt})
		if err == nil && !answered {
			err = errNotHandedOut
		}
		return err
	})
	if err != nil || answered {
		return state, err
	}
	if err := d.recordAnswer(ctx, state.Delivery, given, a); err != nil {
		return state, err
	}
	return state, d.Tenant(ctx, tenant, read)
}

func (d *DB) recordAnswer(ctx context.Context, of Delivery, given HandedOut, a Answer) error {
	e, err := d.anyEndpoint(ctx, of.TenantID, of.EndpointID)
	if err != nil {
		return err
	}
	o := &Outcome{
		TenantID: of.TenantID, DeliveryID: of.ID, EventID: of.EventID, EndpointID: of.EndpointID, EventType: of.EventType,
		Gen: given.Gen, Attempts: given.Attempts, Result: a.Result, Decision: delivery.Decide(delivery.Policy{}, int(given.Attempts), a.Result, 0),
		Attempt: &AttemptRecord{
			ID: a.Attempt, StartedAt: a.Attempt.Time(), Wait: int32(min(a.Took, time.Hour).Microseconds()), Total: int32(min(max(a.Took, time.Microsecond), time.Hour).Microseconds()),
			URL: e.URL, Format: e.Wire().String(), Signature: given.Signature, ResponseHeaders: a.Headers, ResponseExcerpt: a.Excerpt, Error: a.Error,
		},
	}
	_, err = d.RecordOutcomes(ctx, Record{Listened: true, Outcomes: []*Outcome{o}, Again: true})
	return err
}

func (d *DB) anyEndpoint(ctx context.Context, tenant, u id.UUID) (e Endpoint, err error) {
	err = d.Tenant(ctx, tenant, func(q *Queries) error {
		e, err = q.AnyEndpoint(ctx, AnyEndpointParams{TenantID: tenant, ID: u})
		return err
	})
	return e, err
}

// EndAbandoned deletes a listener of which nothing was heard for so long; its lane's rows are canceled by the sweep of deleted
// endpoints. It returns how many there were, at most most.
func (d *DB) EndAbandoned(ctx context.Context, silent time.Duration, most int32) (n int, err error) {
	var gone []AbandonedListenersRow
	if err := d.Worker(ctx, func(q *Queries) (err error) {
		gone, err = q.AbandonedListeners(ctx, AbandonedListenersParams{Seconds: silent.Seconds(), Most: most})
		return err
	}); err != nil {
		return 0, err
	}
	for _, l := range gone {
		err := d.Tenant(ctx, l.TenantID, func(q *Queries) error {
			if _, err := q.LockTenant(ctx, l.TenantID); err != nil { // first, as who deletes it
				return err
			}
			if _, err := q.LockAbandoned(ctx, LockAbandonedParams{TenantID: l.TenantID, EndpointID: l.EndpointID, Seconds: silent.Seconds()}); err != nil {
				return err
			}
			if _, err := q.RemoveEndpoint(ctx, l.TenantID, l.EndpointID); err != nil {
				return err
			}
			return q.Audit(ctx, Author{Kind: "system"}, Audited{
				Tenant: &l.TenantID, Action: "endpoint.delete", Kind: "endpoint", Object: id.Endpoint.Format(l.EndpointID), Reason: "nobody has listened for a day",
			})
		})
		if err != nil && !isNotFound(err) {
			return 0, err
		}
	}
	return len(gone), nil
}

// cancelTaken cancels the deliveries of rows that were just taken from the queue of a listener that is no more.
func cancelTaken(ctx context.Context, q *Queries, rows []takenRow) error {
	books := Books{}
	days := map[int64]*EndListenedParams{}
	for _, r := range rows {
		created := r.DeliveryID.Time()
		p := days[created.Unix()/86400]
		if p == nil {
			p = &EndListenedParams{Reason: delivery.EndpointDeleted}
			days[created.Unix()/86400] = p
		}
		p.Tenants, p.Ids, p.Created = append(p.Tenants, r.TenantID), append(p.Ids, r.DeliveryID), append(p.Created, created)
		p.Low, p.High = widen(p.Low, p.High, created)
		books.At(r.TenantID, created).Canceled++
	}
	for _, p := range days {
		if _, err := q.EndListened(ctx, *p); err != nil {
			return err
		}
	}
	return q.enterSettled(ctx, books)
}
