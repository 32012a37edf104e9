package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/id"
	"posthorn/domain/show"
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

// act does an action without parameters to one delivery.
func (a *api) act(c *handlers.Call, act deliveries.Act, status int) error {
	deliveryID := c.PathID("delivery_id")
	if err := c.NoBody(); err != nil {
		return err
	}
	return a.actOn(c, deliveryID, act, "", status)
}

// replayDelivery responds with the new delivery. The audit log records who asked and why, for the original.
func (a *api) replayDelivery(c *handlers.Call) error {
	deliveryID := c.PathID("delivery_id")
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
	return a.actOn(c, deliveryID, act, reason, http.StatusAccepted)
}

func (a *api) actOn(c *handlers.Call, deliveryID id.UUID, act deliveries.Act, reason string, status int) error {
	var d show.Delivery
	err := c.Tx(func(q *db.Tx) (err error) {
		d, _, err = deliveries.ActOn(c.Ctx(), q, c.Actor.Tenant, deliveryID, act, c.Author().Because(reason))
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(status, encodeDelivery(d))
}
