package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/worker/lanes"
	"posthorn/worker/send"
)

const (
	// passEvery is the least time between two passes under load: what gathers in it is read together. An idle worker
	// begins a pass at once.
	passEvery     = 3 * time.Millisecond
	maxLease      = 500
	readBudget    = 8 << 20 // bytes of payloads in one read
	maxReadEvents = 2000
	readRetry     = 200 * time.Millisecond
)

// read leases lanes, reads the heads of their queues, and gives the rows to the dispatcher, until the context ends.
func (w *Worker) read(ctx context.Context) {
	failing := false
	for {
		select {
		case <-w.signals:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if err := w.pass(ctx); err != nil && ctx.Err() == nil {
			if !failing && !errors.Is(err, db.ErrWorkerDead) {
				w.log.Warn("lanes could not be read; trying again until they can", "error", err)
				failing = true
			}
			w.signal()
			if !loop.Sleep(ctx, readRetry) {
				return
			}
			continue
		}
		if failing {
			failing = false
			w.log.Info("lanes can be read again")
		}
		if rest := passEvery - time.Since(began); rest > 0 && !loop.Sleep(ctx, rest) {
			return
		}
	}
}

// signal asks for a pass. Several signals before it begins are one.
func (w *Worker) signal() {
	loop.Wake(w.signals)
}

// pass does everything that was asked for since the last one.
func (w *Worker) pass(ctx context.Context) error {
	if err := w.lease(ctx); err != nil {
		return err
	}
	if err := w.readyOrdered(ctx); err != nil {
		return err
	}
	plan := w.dispatch.Plan()
	if plan.Empty() {
		return nil
	}
	found, err := w.find(ctx, plan)
	if err != nil {
		w.dispatch.Abandon(plan)
		return err
	}
	lost := w.dispatch.Take(plan, found)
	w.dispatch.Kick()
	w.expire(lost)
	return nil
}

// find reads the rows of a plan.
func (w *Worker) find(ctx context.Context, plan lanes.Plan) (found lanes.Found, err error) {
	got, err := queue.ReadLanes(ctx, w.db, queue.LaneRead{
		Endpoints: plan.Endpoints,
		Floors:    plan.Floors,
		Limits:    plan.Limits,
		Known:     plan.Known,
	})
	if err != nil {
		return found, err
	}
	found.Epoch = w.id()
	rows := got.Rows
	if len(plan.Follow) > 0 {
		var after []sql.ReadLanesRow
		if found.After, after, err = w.followers(ctx, plan, rows); err != nil {
			return found, err
		}
		rows = append(rows, after...)
	}
	if found.Events, found.Gone, err = w.payloads(ctx, rows); err != nil {
		return found, err
	}
	found.Rows = make([]lanes.Row, len(got.Rows))
	for i, r := range got.Rows {
		found.Rows[i] = lanes.Row(r)
	}
	found.Settled = w.watermark.Observe(got.Top, got.Xid, got.Oldest)
	return found, nil
}

// payloads finds the events of rows, in the cache or in the database. An event can be cut (it is read later) or
// dropped.
func (w *Worker) payloads(ctx context.Context, rows []sql.ReadLanesRow) (map[id.UUID]*send.Payload, map[id.UUID]bool, error) {
	known, missing := w.events.find(rows)
	gone := map[id.UUID]bool{}
	if len(missing) == 0 {
		return known, gone, nil
	}
	if len(missing) > maxReadEvents {
		missing = missing[:maxReadEvents] // the others stay nil and are not dropped: cut
	}
	found, err := queue.ReadEvents(ctx, w.db, missing, readBudget)
	if err != nil {
		return nil, nil, err
	}
	fresh := make([]*send.Payload, 0, len(found))
	for _, ref := range missing {
		f, ok := found[ref.ID]
		switch {
		case ok && f.Cut:
		case !ok || f.Data == nil:
			gone[ref.ID] = true
		default:
			p := &send.Payload{Event: f.Event}
			known[ref.ID] = p
			fresh = append(fresh, p)
		}
	}
	w.events.add(fresh)
	return known, gone, nil
}

// expire ends deliveries whose event no longer exists.
func (w *Worker) expire(jobs []*lanes.Job) {
	for _, j := range jobs {
		w.results <- &result{
			job: j,
			outcome: queue.Outcome{
				TenantID:   j.TenantID,
				DeliveryID: j.DeliveryID,
				EventID:    j.EventID,
				EndpointID: j.EndpointID,
				Gen:        j.Gen,
				Attempts:   j.Attempts,
				Decision:   delivery.Decision{Status: delivery.Failed, Reason: delivery.RetentionEnded},
			},
		}
	}
}

// lease takes lanes that were woken and have no owner.
func (w *Worker) lease(ctx context.Context) error {
	wanted := w.dispatch.TakeWanted(maxLease)
	if len(wanted) == 0 {
		return nil
	}
	me := w.id()
	leased, err := queue.Lease(ctx, w.db, me, wanted)
	if err != nil {
		if errors.Is(err, db.ErrWorkerDead) {
			w.died(me)
		} else {
			w.dispatch.Want(wanted)
		}
		return err
	}
	now := time.Now()
	settings := make([]*lanes.Settings, len(leased))
	for i := range leased {
		settings[i] = w.settingsOf(leased[i])
	}
	if w.id() != me {
		return nil // declared dead in between: the lanes are free again
	}
	for i := range leased {
		w.dispatch.Install(leaseOf(leased[i]), settings[i], now)
	}
	if w.dispatch.HasWanted() {
		w.signal()
	}
	return nil
}

// leaseOf translates a leased lane for the dispatcher.
func leaseOf(l queue.Leased) lanes.Lease {
	lease := lanes.Lease{
		EndpointID:   l.EndpointID,
		TenantID:     l.TenantID,
		Host:         pause.HostOf(l.Endpoint.URL),
		Rev:          l.Rev,
		Version:      l.RoutingVersion,
		DropBelow:    l.DropBelow,
		Tokens:       l.Tokens,
		IdleSeconds:  l.IdleSeconds,
		WaitSeconds:  l.WaitSeconds,
		LookSeconds:  l.LookSeconds,
		WaitEpoch:    l.WaitEpoch,
		ProbeRequest: l.Asked,
		Health: lanes.Health{
			Counters: endpoints.Counters(l.Health),
			Breaker:  endpoints.Breaker(l.Health),
			Epoch:    l.Health.Epoch,
		},
	}
	if lease.EndpointID.IsZero() {
		lease.EndpointID, lease.TenantID = l.Endpoint.ID, l.Endpoint.TenantID // read again, not leased
	}
	if l.Health.GoneAt != nil {
		lease.Health.GoneAt = *l.Health.GoneAt
	}
	return lease
}

// settingsOf reads a lane's configuration. It returns nil, and logs why, when the endpoint cannot be served; a change
// of the endpoint brings the next try.
func (w *Worker) settingsOf(l queue.Leased) *lanes.Settings {
	if l.Endpoint.DeletedAt != nil {
		return nil // its lane is deleted a moment later
	}
	s, err := w.readSettings(l)
	if err != nil {
		w.log.Error("endpoint cannot be served: its deliveries wait", "endpoint", endpointID(l.Endpoint.ID), "error", err)
		return nil
	}
	s.Log = w.log.With("tenant", id.Tenant.Format(l.Endpoint.TenantID), "endpoint", s.Destination.Endpoint, "url", s.Destination.Masked)
	return s
}

func (w *Worker) readSettings(l queue.Leased) (*lanes.Settings, error) {
	e := &l.Endpoint
	settings, err := endpoints.OpenSettings(*e, w.keys)
	if err != nil {
		return nil, fmt.Errorf("sealed settings: %w", err)
	}
	to, err := w.sender.NewDestination(l, settings, w.keys)
	if err != nil {
		return nil, err
	}
	s := &lanes.Settings{
		Destination: to,
		MaxInFlight: int(e.MaxInFlight),
		Ordered:     e.Ordering != "none",
		NoBreaker:   !e.CircuitBreaker,
		Batch:       settings.Batch(),
		Health:      l.Policy,
		Policy: delivery.Policy{
			Schedule:          settings.Schedule(),
			AcceptConflict:    e.AcceptConflict,
			RetryClientErrors: e.RetryClientErrors,
			RetryGone:         e.RetryClientErrors && !l.Policy.Gone,
			RetryRefusal:      l.Policy.HoldsRefusals(),
		},
	}
	if settings.RateLimit != nil {
		s.Rate, s.Burst = *settings.RateLimit, settings.EffectiveBurst()
	}
	return s, nil
}
