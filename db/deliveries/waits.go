package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/id"
)

// queued is a delivery's state in the queue.
type queued struct {
	waits bool // it has a row
	seq   int64
	state int16
	due   *time.Time
	asked bool
	key   *string
}

// aheadCounted is how many deliveries are counted ahead of one behind a rate limit.
const aheadCounted = 1000

// explainWaits sets for each waiting delivery why it waits. The console passes a nil tenant and sees all.
func explainWaits(ctx context.Context, q *sql.Queries, tenant *id.UUID, rows []State) error {
	var waiting []int
	var endpointIDs []id.UUID
	for i, d := range rows {
		if d.queued.waits && !d.Status.Terminal() {
			waiting, endpointIDs = append(waiting, i), append(endpointIDs, d.EndpointID)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.SortFunc(endpointIDs, id.UUID.Compare)
	lanes, err := endpoints.WaitingLanes(ctx, q, tenant, slices.Compact(endpointIDs))
	if err != nil {
		return err
	}
	behind, err := headsOf(ctx, q, rows, waiting)
	if err != nil {
		return err
	}
	ahead, err := countAhead(ctx, q, rows, waiting, lanes)
	if err != nil {
		return err
	}
	for _, i := range waiting {
		d := &rows[i]
		lane, known := lanes[d.EndpointID]
		if !known {
			continue // its endpoint was deleted: the delivery is about to fail
		}
		d.explain(lane, behind[keyOf(d)], ahead[d.ID])
	}
	return nil
}

// explain sets why a delivery waits.
func (d *State) explain(lane endpoints.WaitingLane, behind id.UUID, ahead int64) {
	r := condition.Row{State: d.queued.state, Due: db.OrZero(d.queued.due), Asked: d.queued.asked, Ahead: ahead}
	if behind != d.ID {
		r.Behind = behind
	}
	w := condition.WaitOf(r, lane.Lane, lane.At)
	if w.Reason == condition.RateLimit && ahead >= aheadCounted {
		w.Until, w.About = time.Time{}, false // the wait is longer than what was counted
	}
	d.Wait = &w
	if next := w.NextAttempt(); !next.IsZero() {
		d.NextAt = &next
	}
	if w.Scope != "" {
		d.Paused = &endpoints.Paused{By: w.Scope}
		if since := lane.Condition.Since; !since.IsZero() {
			d.Paused.Since = &since
		}
	}
}

// laneKey is an ordering key of a lane.
type laneKey struct {
	endpoint id.UUID
	key      string
}

func keyOf(d *State) laneKey {
	if d.queued.key == nil || d.queued.state != condition.RowBlocked {
		return laneKey{}
	}
	return laneKey{d.EndpointID, *d.queued.key}
}

// headsOf finds the deliveries that block others by their ordering key.
func headsOf(ctx context.Context, q *sql.Queries, rows []State, waiting []int) (map[laneKey]id.UUID, error) {
	heads := map[laneKey]id.UUID{}
	var ask sql.HeadsOfKeysParams
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

// countAhead counts the deliveries ahead of ready ones in lanes at their rate limit.
func countAhead(ctx context.Context, q *sql.Queries, rows []State, waiting []int,
	lanes map[id.UUID]endpoints.WaitingLane,
) (map[id.UUID]int64, error) {
	ask := sql.CountAheadParams{Most: aheadCounted}
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
