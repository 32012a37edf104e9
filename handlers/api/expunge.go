package api

import (
	"net/http"

	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// expungeEvent destroys the data of one event. It is done when it answers: who must prove it has the answer and the audit log.
func (a *api) expungeEvent(c *handlers.Call) error {
	u, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	var in ExpungeEventInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(&in.Reason, 1)
	if err := wrong.err(); err != nil {
		return err
	}
	var done deliveries.Expunged
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		done, err = deliveries.ExpungeEvent(c.Ctx(), q, c.Actor.Tenant, u, reason, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, EventExpunged{
		ID: id.Event.Format(u), Expunged: len(done.Events) > 0, Canceled: done.Canceled, Answers: done.Cleared,
	})
}

// createExpunge destroys the data of every event that matches.
func (a *api) createExpunge(c *handlers.Call) error {
	var in ExpungeInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	n, dryRun := bulkOptions{&in.Reason, in.Pace, in.DryRun}.read(&wrong, bulk.Expunge)
	wrong.reason(&in.Reason, 1)
	n.Filter = bulk.Filter{Since: in.Since, Until: in.Until, Match: in.Match}
	readEventFilter(&wrong, "", in.Type, in.Channel, &n.Filter)
	if in.Since != nil && in.Until != nil && !in.Since.Before(*in.Until) {
		wrong.add("until", "filter_times", "The time until must lie after the time since.")
	}
	match, err := filter.Compile(in.Match)
	switch e := fault.As(err); {
	case e != nil:
		wrong.add("match", e.Code, e.Detail)
	case match == nil:
		wrong.add("match", "match_missing", `Say whose data is meant, as in {"match": {"user.id": "42"}}.`)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	return a.startBulk(c, n, dryRun)
}
