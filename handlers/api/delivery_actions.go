package api

import (
	"net/http"

	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/handlers"
)

func (a *api) retryDelivery(c *handlers.Call) error {
	return a.act(c, deliveries.ActRetryNow, http.StatusAccepted)
}

func (a *api) cancelDelivery(c *handlers.Call) error {
	return a.act(c, deliveries.ActCancel, http.StatusOK)
}

func (a *api) archiveDelivery(c *handlers.Call) error {
	return a.act(c, deliveries.ActArchive, http.StatusOK)
}

func (a *api) unarchiveDelivery(c *handlers.Call) error {
	return a.act(c, deliveries.ActUnarchive, http.StatusOK)
}

// act does something to one delivery that needs no words.
func (a *api) act(c *handlers.Call, act deliveries.Act, status int) error {
	u, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	return a.actOn(c, u, act, "", status)
}

// replayDelivery answers with the new delivery. The audit log says who asked and why, on the original.
func (a *api) replayDelivery(c *handlers.Call) error {
	u, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	var in ReplayInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	if err := wrong.err(); err != nil {
		return err
	}
	act := deliveries.ActReplay
	if in.Again != nil && *in.Again {
		act = deliveries.ActReplayAgain
	}
	return a.actOn(c, u, act, reason, http.StatusAccepted)
}

func (a *api) actOn(c *handlers.Call, u id.UUID, act deliveries.Act, reason string, status int) error {
	var d deliveries.State
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		d, _, err = deliveries.ActOn(c.Ctx(), q, c.Actor.Tenant, u, act, c.Author(), reason)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(status, deliveryView(d))
}
