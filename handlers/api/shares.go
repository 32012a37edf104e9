package api

import (
	"context"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/access"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// shareLife is how long a link to a delivery can be opened unless the request says so.
const shareLife = 24 * time.Hour

// createDeliveryShare creates a read-only link to a delivery. It shows the event's data, so the key must read that,
// too.
func (a *api) createDeliveryShare(c *handlers.Call) error {
	deliveryID := c.PathID("delivery_id")
	var in DeliveryShareInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	if !c.Actor.Scopes.Has(access.EventsRead) {
		return fault.New(fault.Forbidden, "scope_missing", "A link shows the event's data, so it needs the scope "+string(access.EventsRead)+", which this key lacks.")
	}
	n := deliveries.NewShare{Tenant: c.Actor.Tenant, Delivery: deliveryID, Seconds: int(shareLife.Seconds()), By: c.Author()}
	set(&n.Seconds, in.ExpiresIn)
	if wrong := delivery.ShareFaults(n.Seconds); len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	var made show.DeliveryShare
	var token string
	err := c.Tx(func(q *db.Tx) (err error) {
		made, token, err = deliveries.CreateShare(c.Ctx(), q, n)
		return err
	})
	if err != nil {
		return err
	}
	v := encodeDeliveryShare(made)
	return c.Answer(http.StatusCreated, DeliveryShareCreated{
		ID:        v.ID,
		URL:       a.BaseURL + delivery.ShareURL(c.Actor.Tenant, token),
		CreatedAt: v.CreatedAt,
		ExpiresAt: v.ExpiresAt,
		OpenedAt:  v.OpenedAt,
	})
}

func (a *api) listDeliveryShares(c *handlers.Call) error {
	return get(c, "delivery_id", func(ctx context.Context, q *db.Tx, tenant, deliveryID id.UUID) ([]show.DeliveryShare, error) {
		if _, err := deliveries.Read(ctx, q, tenant, deliveryID); err != nil {
			return nil, err
		}
		return deliveries.Shares(ctx, q, tenant, deliveryID)
	}, func(open []show.DeliveryShare) DeliveryShares {
		return DeliveryShares{Data: views(open, encodeDeliveryShare)}
	})
}

func (a *api) revokeDeliveryShare(c *handlers.Call) error {
	deliveryID := c.PathID("delivery_id")
	return end(c, "share_id", func(q *db.Tx, shareID id.UUID) error {
		return deliveries.RevokeShare(c.Ctx(), q, c.Actor.Tenant, deliveryID, shareID, c.Author())
	})
}

func encodeDeliveryShare(s show.DeliveryShare) DeliveryShare {
	return DeliveryShare{
		ID:        id.Share.Format(s.ID),
		CreatedAt: Time(s.CreatedAt),
		ExpiresAt: Time(s.ExpiresAt),
		OpenedAt:  orNullTime(s.OpenedAt),
	}
}
