package db

import (
	"context"
	"slices"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/domain/trouble"
)

// queued is what the queue knows of a delivery.
type queued struct {
	waits bool // it has a row
	seq   int64
	state int16
	due   *time.Time
	asked bool
	key   *string
}

// aheadCounted is how far the deliveries are counted that go before one behind a rate limit.
const aheadCounted = 1000

// explainWaits says of each delivery that is to be sent why it waits. A nil tenant is that of the console, which sees all.
func (q *Queries) explainWaits(ctx context.Context, tenant *id.UUID, rows []DeliveryState) error {
	var waiting []int
	var endpoints []id.UUID
	for i, d := range rows {
		if d.queued.waits && !d.Status.Terminal() {
			waiting, endpoints = append(waiting, i), append(endpoints, d.EndpointID)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.SortFunc(endpoints, compareIDs)
	lanes, err := q.readLanes(ctx, tenant, slices.Compact(endpoints))
	if err != nil {
		return err
	}
	behind, err := q.headsOf(ctx, rows, waiting)
	if err != nil {
		return err
	}
	ahead, err := q.countAhead(ctx, rows, waiting, lanes)
	if err != nil {
		return err
	}
	for _, i := range waiting {
		d := &rows[i]
		lane, known := lanes[d.EndpointID]
		if !known {
			continue // its endpoint was deleted: what waits for it is about to fail
		}
		d.explain(lane, behind[keyOf(d)], ahead[d.ID])
	}
	return nil
}

// explain sets why a delivery waits.
func (d *DeliveryState) explain(lane waitingLane, behind id.UUID, ahead int64) {
	r := condition.Row{State: d.queued.state, Due: orZero(d.queued.due), Asked: d.queued.asked, Ahead: ahead}
	if behind != d.ID {
		r.Behind = behind
	}
	w := condition.WaitOf(r, lane.Lane, lane.at)
	if w.Reason == condition.RateLimit && ahead >= aheadCounted {
		w.Until, w.About = time.Time{}, false // later than was counted
	}
	d.Wait = &w
	if next := w.NextAttempt(); !next.IsZero() {
		d.NextAt = &next
	}
	if w.Scope != "" {
		d.Paused = &Paused{By: w.Scope}
		if since := lane.Condition.Since; !since.IsZero() {
			d.Paused.Since = &since
		}
	}
}

// waitingLane is a lane as of a moment.
type waitingLane struct {
	condition.Lane
	at time.Time
}

func (q *Queries) readLanes(ctx context.Context, tenant *id.UUID, endpoints []id.UUID) (map[id.UUID]waitingLane, error) {
	found, err := q.LanesOf(ctx, LanesOfParams{SilentSeconds: trouble.Silent.Seconds(), Ids: endpoints, TenantID: tenant})
	if err != nil {
		return nil, err
	}
	records, err := q.HealthOfEndpoints(ctx, HealthOfEndpointsParams{Ids: endpoints, TenantID: tenant})
	if err != nil {
		return nil, err
	}
	health := make(map[id.UUID]EndpointHealth, len(records))
	for _, h := range records {
		health[h.EndpointID] = h
	}
	lanes := make(map[id.UUID]waitingLane, len(found))
	for _, l := range found {
		h := health[l.ID]
		facts := condition.Facts{
			Status: endpoint.Status(l.Status), Reason: l.StatusReason, StatusAt: l.StatusAt, Breaker: h.Breaker(), Last: h.last(),
			Scope: pause.Scope(l.Scope), ScopeSince: notEpoch(l.Since),
		}
		lane := condition.Lane{
			Condition: condition.Of(facts, l.Now), Listens: l.Kind == string(endpoint.Listen), Served: l.Served, LimitedBy: condition.Limit(l.LimitedBy),
			NotBefore: orZero(l.NotBefore),
		}
		if l.RateLimit != nil {
			lane.RateLimit = int(*l.RateLimit)
		}
		lanes[l.ID] = waitingLane{lane, l.Now}
	}
	return lanes, nil
}

// notEpoch is a time that the database gave as the epoch where it did not know it.
func notEpoch(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t
}

// last is the result of the last failed attempt; zero where there is none.
func (h EndpointHealth) last() delivery.Result {
	return delivery.Result{Failure: h.LastFailure, Status: int(h.LastStatus)}
}

// laneKey is an ordering key of a lane.
type laneKey struct {
	endpoint id.UUID
	key      string
}

func keyOf(d *DeliveryState) laneKey {
	if d.queued.key == nil || d.queued.state != condition.RowBlocked {
		return laneKey{}
	}
	return laneKey{d.EndpointID, *d.queued.key}
}

// headsOf finds the deliveries behind which blocked ones wait.
func (q *Queries) headsOf(ctx context.Context, rows []DeliveryState, waiting []int) (map[laneKey]id.UUID, error) {
	heads := map[laneKey]id.UUID{}
	var ask HeadsOfKeysParams
	for _, i := range waiting {
		k := keyOf(&rows[i])
		if _, asked := heads[k]; k == (laneKey{}) || asked {
			continue
		}
		heads[k] = id.UUID{}
		ask.Endpoints, ask.OrderKeys = append(ask.Endpoints, k.endpoint), append(ask.OrderKeys, k.key)
	}
	if len(ask.Endpoints) == 0 {
		return heads, nil
	}
	found, err := q.HeadsOfKeys(ctx, ask)
	for _, h := range found {
		heads[laneKey{h.EndpointID, h.OrderKey}] = h.DeliveryID
	}
	return heads, err
}

// countAhead counts what goes before ready deliveries in lanes at their rate limit.
func (q *Queries) countAhead(ctx context.Context, rows []DeliveryState, waiting []int, lanes map[id.UUID]waitingLane) (map[id.UUID]int64, error) {
	ask := CountAheadParams{Most: aheadCounted}
	for _, i := range waiting {
		d := &rows[i]
		if lanes[d.EndpointID].LimitedBy == condition.ByRate && d.queued.state == condition.RowReady {
			ask.Deliveries, ask.Endpoints = append(ask.Deliveries, d.ID), append(ask.Endpoints, d.EndpointID)
			ask.Seqs = append(ask.Seqs, d.queued.seq)
		}
	}
	if len(ask.Deliveries) == 0 {
		return nil, nil
	}
	found, err := q.CountAhead(ctx, ask)
	ahead := make(map[id.UUID]int64, len(found))
	for _, r := range found {
		ahead[r.DeliveryID] = r.Ahead
	}
	return ahead, err
}
