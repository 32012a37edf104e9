package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/handlers"
)

func (a *api) retryDelivery(c *handlers.Call) error {
	return a.act(c, "delivery.retry_now", http.StatusAccepted, func(q *db.Queries, u id.UUID) (db.DeliveryState, bool, error) {
		return q.RetryNow(c.Ctx(), c.Actor.Tenant, u)
	})
}

func (a *api) cancelDelivery(c *handlers.Call) error {
	return a.act(c, "delivery.cancel", http.StatusOK, func(q *db.Queries, u id.UUID) (db.DeliveryState, bool, error) {
		d, err := q.CancelWaiting(c.Ctx(), c.Actor.Tenant, u)
		return d, true, err
	})
}

func (a *api) archiveDelivery(c *handlers.Call) error {
	return a.act(c, "delivery.archive", http.StatusOK, func(q *db.Queries, u id.UUID) (db.DeliveryState, bool, error) {
		return q.Archive(c.Ctx(), c.Actor.Tenant, u, true)
	})
}

func (a *api) unarchiveDelivery(c *handlers.Call) error {
	return a.act(c, "delivery.unarchive", http.StatusOK, func(q *db.Queries, u id.UUID) (db.DeliveryState, bool, error) {
		return q.Archive(c.Ctx(), c.Actor.Tenant, u, false)
	})
}

// act does something to one delivery in a transaction, and audits it where it changed anything.
func (a *api) act(c *handlers.Call, action string, status int, do func(*db.Queries, id.UUID) (db.DeliveryState, bool, error)) error {
	u, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	var d db.DeliveryState
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		var changed bool
		if d, changed, err = do(q, u); err != nil || !changed {
			return err
		}
		return auditDelivery(c, q, action, d, "", nil)
	})
	if err != nil {
		return err
	}
	return c.Answer(status, deliveryView(d))
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
	reason := wrong.text("reason", in.Reason, 0, 500)
	if err := wrong.err(); err != nil {
		return err
	}
	var d db.DeliveryState
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		if d, err = q.Replay(c.Ctx(), c.Actor.Tenant, u); err != nil {
			return err
		}
		original := d
		original.ID = u
		return auditDelivery(c, q, "delivery.replay", original, reason, map[string]string{"new_delivery": id.Delivery.Format(d.ID)})
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, deliveryView(d))
}

// auditDelivery writes what was done to a delivery, with the endpoint and event that it belongs to.
func auditDelivery(c *handlers.Call, q *db.Queries, action string, d db.DeliveryState, reason string, more map[string]string) error {
	details := map[string]string{"endpoint": id.Endpoint.Format(d.EndpointID), "event": id.Event.Format(d.EventID)}
	for k, v := range more {
		details[k] = v
	}
	return c.Audit(q, action, "delivery", id.Delivery.Format(d.ID), reason, details)
}
