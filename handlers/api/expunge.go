package api

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/bulk"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// expungeEvent destroys the data of one event before it responds. The response and the audit log prove it.
func (a *api) expungeEvent(c *handlers.Call) error {
	eventID := c.PathID("event_id")
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
	err := c.Tx(func(q *db.Tx) (err error) {
		done, err = deliveries.ExpungeEvent(c.Ctx(), q, c.Actor.Tenant, eventID, reason, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, EventExpunged{
		ID:         id.Event.Format(eventID),
		Expunged:   len(done.Events) > 0,
		Canceled:   done.Canceled,
		Answers:    done.Cleared,
		StoredDays: views(done.Stored, func(day time.Time) string { return day.Format(time.DateOnly) }),
	})
}

// createExpunge destroys the data of every event that matches.
func (a *api) createExpunge(c *handlers.Call) error {
	var in ExpungeInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	n, dryRun := bulkOptions{&in.Reason, in.Pace, nil, in.DryRun}.read(&wrong, bulk.Expunge)
	wrong.reason(&in.Reason, 1)
	n.Filter = bulk.Filter{Since: (*time.Time)(in.Since), Until: (*time.Time)(in.Until), Match: in.Match}
	readEventFilter(&wrong, "", in.Type, in.Channel, &n.Filter)
	if f := n.Filter; f.Since != nil && f.Until != nil && !f.Since.Before(*f.Until) {
		wrong.add("until", "filter_times", "until must be later than since.")
	}
	match, err := filter.Compile(in.Match)
	switch e := fault.As(err); {
	case e != nil:
		wrong.add("match", e.Code, e.Detail)
	case match == nil:
		wrong.add("match", "match_missing", `Specify which data to expunge, such as {"match": {"user.id": "42"}}.`)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	return a.startBulk(c, n, dryRun)
}
