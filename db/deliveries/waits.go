package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// explain completes deliveries with why they wait, and with what that means.
func explain(ctx context.Context, q *sql.Queries, rows []sql.ReadDeliveriesRow) ([]show.Delivery, error) {
	var waiting []sql.ReadDeliveriesRow
	var endpointIDs []id.UUID
	var tenant *id.UUID // nil: the rows are of several
	for i, r := range rows {
		if i == 0 {
			tenant = &rows[0].Delivery.TenantID
		} else if tenant != nil && r.Delivery.TenantID != *tenant {
			tenant = nil
		}
		if r.Queued && !r.Delivery.Status.Terminal() {
			waiting = append(waiting, r)
			endpointIDs = append(endpointIDs, r.Delivery.EndpointID)
		}
	}
	queued := map[id.UUID]*show.Queued{}
	if len(waiting) > 0 {
		slices.SortFunc(endpointIDs, id.UUID.Compare)
		lanes, err := endpoints.WaitingLanes(ctx, q, tenant, slices.Compact(endpointIDs))
		if err != nil {
			return nil, err
		}
		behind, err := headsOf(ctx, q, waiting)
		if err != nil {
			return nil, err
		}
		ahead, err := countAhead(ctx, q, waiting, lanes)
		if err != nil {
			return nil, err
		}
		for _, r := range waiting {
			d := r.Delivery
			lane, known := lanes[d.EndpointID]
			if !known {
				continue // its endpoint was deleted: the delivery is about to fail
			}
			row := condition.Row{
				State: r.QueueState,
				Due:   db.OrZero(r.DueAt),
				Asked: r.Asked,
				Ahead: ahead[d.ID],
				Sent:  lane.InFlight[d.ID.String()],
			}
			if head := behind[keyOf(r)]; head != d.ID {
				row.Behind = head
			}
			queued[d.ID] = &show.Queued{Row: row, Lane: lane.Lane, Now: lane.At}
		}
	}
	shown := make([]show.Delivery, len(rows))
	for i, r := range rows {
		shown[i] = show.NewDelivery(stored(r), queued[r.Delivery.ID])
	}
	return shown, nil
}

// stored is what is stored about a delivery.
func stored(r sql.ReadDeliveriesRow) show.Delivery {
	d := r.Delivery
	if r.Queued && r.Held && !d.Status.Terminal() {
		d.Status = delivery.Held
	}
	return show.Delivery{
		ID:         d.ID,
		TenantID:   d.TenantID,
		EventID:    d.EventID,
		EventType:  d.EventType,
		Status:     d.Status.Shown(d.Reason),
		Reason:     d.Reason,
		Attempts:   int(d.Attempts),
		Last:       delivery.Result{Failure: d.LastFailure, Status: int(d.LastStatus)},
		CreatedAt:  d.CreatedAt,
		SettledAt:  db.OrZero(d.SettledAt),
		ArchivedAt: db.OrZero(d.ArchivedAt),
		ExpiresAt:  db.OrZero(r.ExpiresAt),
		JobID:      db.OrZero(d.JobID),
		ReplayOf:   db.OrZero(d.ReplayOf),
		FirstID:    db.OrZero(d.FirstID),
		Routes:     db.OrZero(d.RoutingVersion),
		ReplayedBy: r.ReplayedBy,
		DeadLetter: r.Dead,
		Endpoint: show.Destination{
			ID:             d.EndpointID,
			Kind:           endpoint.Kind(r.Kind),
			URL:            egress.Mask(r.URL),
			Description:    r.Description,
			Deleted:        r.Deleted,
			Timeout:        time.Duration(r.TimeoutSeconds) * time.Second,
			AcceptConflict: r.AcceptConflict,
			Tenant:         r.TenantName,
		},
	}
}

// laneKey is an ordering key of a lane.
type laneKey struct {
	endpoint id.UUID
	key      string
}

func keyOf(r sql.ReadDeliveriesRow) laneKey {
	if r.OrderKey == nil || r.QueueState != condition.RowBlocked {
		return laneKey{}
	}
	return laneKey{r.Delivery.EndpointID, *r.OrderKey}
}

// headsOf finds the deliveries that block others by their ordering key.
func headsOf(ctx context.Context, q *sql.Queries, waiting []sql.ReadDeliveriesRow) (map[laneKey]id.UUID, error) {
	heads := map[laneKey]id.UUID{}
	var endpointIDs []id.UUID
	var orderKeys []string
	for _, r := range waiting {
		k := keyOf(r)
		if _, asked := heads[k]; k == (laneKey{}) || asked {
			continue
		}
		heads[k] = id.UUID{}
		endpointIDs = append(endpointIDs, k.endpoint)
		orderKeys = append(orderKeys, k.key)
	}
	if len(endpointIDs) == 0 {
		return heads, nil
	}
	found, err := q.HeadsOfKeys(ctx, endpointIDs, orderKeys)
	for _, h := range found {
		heads[laneKey{h.EndpointID, h.OrderKey}] = h.DeliveryID
	}
	return heads, err
}

// countAhead counts the deliveries ahead of ready ones in lanes with a rate limit.
func countAhead(
	ctx context.Context,
	q *sql.Queries,
	waiting []sql.ReadDeliveriesRow,
	lanes map[id.UUID]endpoints.WaitingLane,
) (map[id.UUID]int64, error) {
	ask := sql.CountAheadParams{Limit: condition.AheadCounted}
	for _, r := range waiting {
		if lanes[r.Delivery.EndpointID].RateLimit > 0 && r.QueueState == condition.RowReady {
			ask.Deliveries = append(ask.Deliveries, r.Delivery.ID)
			ask.Endpoints = append(ask.Endpoints, r.Delivery.EndpointID)
			ask.Seqs = append(ask.Seqs, r.Seq)
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
