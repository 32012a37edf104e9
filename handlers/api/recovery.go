package api

import (
	"context"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// recoverEndpoint sends everything again that failed since a time, after a receiver has recovered.
func (a *api) recoverEndpoint(c *handlers.Call) error {
	return a.startForEndpoint(c, bulk.Replay)
}

// replayMissing sends past events that the endpoint never received although it matches them now.
func (a *api) replayMissing(c *handlers.Call) error {
	return a.startForEndpoint(c, bulk.ReplayMissing)
}

func (a *api) startForEndpoint(c *handlers.Call, kind bulk.Kind) error {
	endpointID := c.PathID("endpoint_id")
	var in RecoverInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	n, dryRun := bulkOptions{in.Reason, in.Pace, in.Sample, in.DryRun}.read(&wrong, kind)
	n.Filter = bulk.Filter{Endpoint: id.Endpoint.Format(endpointID)}
	if kind == bulk.Replay {
		n.Filter.Status = "failed"
	}
	readEventFilter(&wrong, "", in.Type, in.Channel, &n.Filter)
	n.Filter.Since, n.Filter.Until = wrong.since(time.Time(in.Since)), (*time.Time)(in.Until)
	if in.Until != nil && !n.Filter.Since.Before(*n.Filter.Until) {
		wrong.add("until", "filter_times", "until must be later than since.")
	}
	if err := wrong.err(); err != nil {
		return err
	}
	return a.startBulk(c, n, dryRun)
}

// since is required: without it a job would cover all stored events.
func (w *wrongFields) since(given time.Time) *time.Time {
	if given.IsZero() {
		w.add("since", "field_missing", "Add the field since. Older events and deliveries aren't affected.")
	}
	return &given
}

// listEndpointFailures groups the newest failures of an endpoint by their response.
func (a *api) listEndpointFailures(c *handlers.Call) error {
	return get(c, "endpoint_id", func(ctx context.Context, q *db.Tx, tenant, endpointID id.UUID) (show.Failures, error) {
		return deliveries.Failures(ctx, q, tenant, endpointID, true)
	}, encodeFailures)
}

func encodeFailures(f show.Failures) EndpointFailures {
	return EndpointFailures{Data: views(f.Groups, encodeFailureGroup), Total: f.Total, More: f.More}
}

func encodeFailureGroup(g show.FailureGroup) FailureGroup {
	v := FailureGroup{
		Key:      g.Key,
		Status:   orNullStatus(g.Result),
		Failure:  orNullText(g.Result.Failure.String()),
		Text:     g.Text,
		Count:    len(g.Deliveries),
		OldestAt: Time(g.Deliveries[len(g.Deliveries)-1].CreatedAt),
		NewestAt: Time(g.Deliveries[0].CreatedAt),
	}
	for _, d := range g.Deliveries {
		v.DeliveryIds = append(v.DeliveryIds, id.Delivery.Format(d.ID))
	}
	return v
}

// replayEvent sends one event again, now.
func (a *api) replayEvent(c *handlers.Call) error {
	eventID := c.PathID("event_id")
	var in EventReplayInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	var only *id.UUID
	if in.EndpointID != nil {
		ep, err := c.FindEndpoint(*in.EndpointID)
		if err != nil {
			return err
		}
		only = &ep
	}
	if err := wrong.err(); err != nil {
		return err
	}
	var made deliveries.EventReplay
	err := c.Tx(func(q *db.Tx) (err error) {
		made, err = deliveries.ReplayEventBy(c.Ctx(), q, c.Actor.Tenant, eventID, only, c.Author().Because(reason))
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, EventReplayed{
		Deliveries: views(made.Deliveries, encodeDelivery),
		Skipped:    skippedView(made.Skipped),
	})
}

func skippedView(skipped map[bulk.Skip]int64) BulkSkipped {
	out := BulkSkipped{}
	for why, n := range skipped {
		out[string(why)] = int(n)
	}
	return out
}
