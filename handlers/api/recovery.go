package api

import (
	"net/http"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// recoverEndpoint sends everything again that failed since a time: what a member does when a receiver is well again.
func (a *api) recoverEndpoint(c *handlers.Call) error {
	return a.startForEndpoint(c, bulk.Replay)
}

// replayMissing sends past events that the endpoint never got although it takes them now.
func (a *api) replayMissing(c *handlers.Call) error {
	return a.startForEndpoint(c, bulk.ReplayMissing)
}

func (a *api) startForEndpoint(c *handlers.Call, kind bulk.Kind) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var in RecoverInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	n, dryRun := bulkOptions{in.Reason, in.Pace, in.DryRun}.read(&wrong, kind)
	n.Filter = bulk.Filter{Endpoint: id.Endpoint.Format(u)}
	if kind == bulk.Replay {
		n.Filter.Status = "failed"
	}
	readEventFilter(&wrong, "", in.Type, in.Channel, &n.Filter)
	n.Filter.Since, n.Filter.Until = wrong.since(in.Since), in.Until
	if in.Until != nil && !in.Since.Before(*in.Until) {
		wrong.add("until", "filter_times", "The time until must lie after the time since.")
	}
	if err := wrong.err(); err != nil {
		return err
	}
	return a.startBulk(c, n, dryRun)
}

// since must be given: without it a job would concern all that is kept.
func (w *wrongFields) since(given time.Time) *time.Time {
	if given.IsZero() {
		w.add("since", "field_missing", "Give the field since: what is older is not concerned.")
	}
	return &given
}

// replayEvent sends one event again, at once.
func (a *api) replayEvent(c *handlers.Call) error {
	u, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	var in EventReplayInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	if err := wrong.err(); err != nil {
		return err
	}
	var only *id.UUID
	if in.EndpointID != nil {
		ep, err := id.Endpoint.Parse(*in.EndpointID)
		if err != nil {
			ep = handlers.NoEndpoint
		}
		only = &ep
	}
	var made deliveries.EventReplay
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		made, err = deliveries.ReplayEventBy(c.Ctx(), q, c.Actor.Tenant, u, only, c.Author(), reason)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, EventReplayed{Deliveries: views(made.Deliveries, deliveryView), Skipped: skippedView(made.Skipped)})
}

func skippedView(skipped map[bulk.Skip]int64) BulkSkipped {
	out := BulkSkipped{}
	for why, n := range skipped {
		out[string(why)] = int(n)
	}
	return out
}
