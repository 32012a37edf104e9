// Package listen stores listeners and test inboxes: the endpoints whose deliveries this server leases to a program or
// keeps itself.
package listen

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Create stores a listener with validated settings. It receives immediately: its deliveries wait in a lane that is
// always held, so that no worker ever leases it, until a stream leases them.
func Create(ctx context.Context, q *sql.Queries, ed endpoints.Editor, tenant id.UUID, n endpoints.New) (show.Endpoint, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return show.Endpoint{}, err
	}
	if has, err := q.CountListeners(ctx, tenant); err != nil {
		return show.Endpoint{}, err
	} else if err := endpoint.CheckListenerRoom(int(has)); err != nil {
		return show.Endpoint{}, err
	}
	row, err := endpoints.Insert(ctx, q, ed.Keys, tenant, n.Settings, n.Secret)
	if err != nil {
		return show.Endpoint{}, err
	}
	if row, err = q.MakeListener(ctx, tenant, row.ID); err != nil {
		return show.Endpoint{}, err
	}
	if err := q.InsertListener(ctx, tenant, row.ID); err != nil {
		return show.Endpoint{}, err
	}
	return ed.Adopt(ctx, q, row, n.Imported)
}

// BeginListening starts a listener's stream, which replaces one that is still open. seen is the number of the last
// delivery that the client has; later ones are sent again. A client that has none sends 0.
func BeginListening(ctx context.Context, d *db.DB, tenant, endpointID id.UUID, seen int64) (stream int64, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if err := welcomeBack(ctx, q, tenant, endpointID); err != nil {
			return err
		}
		if stream, err = q.BeginStream(ctx, tenant, endpointID); err != nil {
			return err
		}
		return q.TakeBack(ctx, sql.TakeBackParams{TenantID: tenant, EndpointID: endpointID, Seen: seen})
	})
	return stream, err
}

// welcomeBack lets a listener that was disconnected get deliveries again.
func welcomeBack(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	left := func(e sql.Endpoint) bool {
		return e.Status == string(endpoint.Paused) && e.StatusReason == endpoint.Disconnected
	}
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil || !left(e) {
		return err
	}
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return err
	}
	if e, err = q.LockEndpoint(ctx, tenant, endpointID); err != nil || !left(e) {
		return err
	}
	return endpoints.SetListening(ctx, q, tenant, endpointID, true)
}

// Answer is the result that a listener's program reports for a delivery.
type Answer struct {
	Delivery, Attempt id.UUID
	Result            delivery.Result
	Took              time.Duration
	Headers           string
	Excerpt           []byte
	Error             string
}

var errNotLeased = fault.New(
	fault.Conflict,
	"answer_unexpected",
	"This delivery wasn't sent with this attempt_id, or was sent again since. Use the attempt_id that the stream sent last.",
)

// TakeAnswer records the result of a leased delivery, as a worker records its attempts: with the queue row as it was at
// the lease. A repeated report changes nothing. A delivery is tried once: the developer who listens decides what is
// sent again.
func TakeAnswer(ctx context.Context, d *db.DB, tenant, endpointID id.UUID, a Answer) (show.Delivery, error) {
	var given sql.LeaseRow
	var state show.Delivery
	answered := false
	read := func(q *sql.Queries) (err error) {
		state, err = deliveries.Read(ctx, q, tenant, a.Delivery)
		return err
	}
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) (err error) {
		if _, err := q.PeekListener(ctx, tenant, endpointID); err != nil {
			return err
		}
		if err := q.TouchListener(ctx, tenant, endpointID); err != nil {
			return err
		}
		if err := read(q); err != nil {
			return err
		}
		given, err = q.GetLease(ctx, sql.GetLeaseParams{
			TenantID:   tenant,
			EndpointID: endpointID,
			DeliveryID: a.Delivery,
			AttemptID:  a.Attempt,
		})
		if !db.IsNoRows(err) {
			return err
		}
		answered, err = q.AttemptExists(ctx, sql.AttemptExistsParams{
			TenantID:   tenant,
			DeliveryID: a.Delivery,
			CreatedAt:  a.Attempt.Time(),
			ID:         a.Attempt,
		})
		if err == nil && !answered {
			err = errNotLeased
		}
		return err
	})
	if err != nil || answered {
		return state, err
	}
	if err := recordAnswer(ctx, d, state, given, a); err != nil {
		return state, err
	}
	return state, d.Tenant(ctx, tenant, read)
}

func recordAnswer(ctx context.Context, d *db.DB, of show.Delivery, given sql.LeaseRow, a Answer) error {
	e, err := anyEndpoint(ctx, d, of.TenantID, of.Endpoint.ID)
	if err != nil {
		return err
	}
	o := &queue.Outcome{
		TenantID:   of.TenantID,
		DeliveryID: of.ID,
		EventID:    of.EventID,
		EndpointID: of.Endpoint.ID,
		EventType:  of.EventType,
		Gen:        given.Gen,
		Attempts:   given.Attempts,
		Result:     a.Result,
		Decision:   delivery.Decide(delivery.Policy{}, int(given.Attempts), a.Result, 0),
		Attempt: &queue.Attempt{
			ID:              a.Attempt,
			StartedAt:       a.Attempt.Time(),
			Wait:            int32(min(a.Took, time.Hour).Microseconds()),
			Total:           int32(min(max(a.Took, time.Microsecond), time.Hour).Microseconds()),
			URL:             e.URL,
			Format:          endpoints.Wire(e).String(),
			Signature:       given.Signature,
			ResponseHeaders: a.Headers,
			ResponseExcerpt: a.Excerpt,
			Error:           a.Error,
		},
	}
	_, err = queue.RecordOutcomes(ctx, d, queue.OutcomeBatch{
		Listened: true,
		Outcomes: []*queue.Outcome{o},
		Again:    true,
	})
	return err
}

func anyEndpoint(ctx context.Context, d *db.DB, tenant, endpointID id.UUID) (e sql.Endpoint, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		e, err = q.AnyEndpoint(ctx, tenant, endpointID)
		return err
	})
	return e, err
}

// Disconnect stops new deliveries to listeners that had no contact for a time, at most `most` of them. What waits in
// their lanes stays, and is sent when the program connects again.
func Disconnect(ctx context.Context, d *db.DB, silent time.Duration, most int32) error {
	var left []sql.SilentListenersRow
	if err := d.Worker(ctx, func(q *sql.Queries) (err error) {
		left, err = q.SilentListeners(ctx, silent.Seconds(), most)
		return err
	}); err != nil {
		return err
	}
	for _, l := range left {
		err := whileAway(ctx, d, l.TenantID, l.EndpointID, silent, func(q *sql.Queries) error {
			return endpoints.SetListening(ctx, q, l.TenantID, l.EndpointID, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EndAbandoned deletes listeners that had no contact for a time, at most `most` of them, and returns how many. The
// sweep of deleted endpoints cancels the rows in their lanes.
func EndAbandoned(ctx context.Context, d *db.DB, silent time.Duration, most int32) (n int, err error) {
	var gone []sql.AbandonedListenersRow
	if err := d.Worker(ctx, func(q *sql.Queries) (err error) {
		gone, err = q.AbandonedListeners(ctx, silent.Seconds(), most)
		return err
	}); err != nil {
		return 0, err
	}
	for _, l := range gone {
		err := whileAway(ctx, d, l.TenantID, l.EndpointID, silent, func(q *sql.Queries) error {
			if _, err := endpoints.Remove(ctx, q, l.TenantID, l.EndpointID); err != nil {
				return err
			}
			return db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
				Tenant: &l.TenantID,
				Action: "endpoint.delete",
				Kind:   "endpoint",
				Object: id.Endpoint.Format(l.EndpointID),
				Reason: "nobody has listened for a day",
			})
		})
		if err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// whileAway changes a listener in a transaction of its tenant, unless its program came back or it was deleted.
func whileAway(ctx context.Context, d *db.DB, tenant, endpointID id.UUID, silent time.Duration, change func(*sql.Queries) error) error {
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if _, err := q.LockTenant(ctx, tenant); err != nil { // first, in the order of every deletion
			return err
		}
		if _, err := q.LockAbandoned(ctx, sql.LockAbandonedParams{
			TenantID:   tenant,
			EndpointID: endpointID,
			Seconds:    silent.Seconds(),
		}); err != nil {
			return err
		}
		return change(q)
	})
	if db.IsNotFound(err) {
		return nil
	}
	return err
}
