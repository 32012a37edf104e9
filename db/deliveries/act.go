package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Act is an action on one delivery, named as in the audit log.
type Act string

// The actions.
const (
	ActRetryNow    Act = "delivery.retry_now"
	ActCancel      Act = "delivery.cancel"
	ActReplay      Act = "delivery.replay"
	ActReplayAgain Act = "delivery.replay_again" // in the audit log as ActReplay
	ActArchive     Act = "delivery.archive"
	ActUnarchive   Act = "delivery.unarchive"
)

// ActOn does an action on a delivery, and writes the audit log if it changed anything. A replay returns the new
// delivery; its audit entry is on the original.
func ActOn(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID, act Act, by db.Author) (
	d show.Delivery,
	changed bool,
	err error,
) {
	changed = true
	switch act {
	case ActRetryNow:
		d, changed, err = RetryNow(ctx, q, tenant, deliveryID)
	case ActCancel:
		d, err = Cancel(ctx, q, tenant, deliveryID)
	case ActReplay, ActReplayAgain:
		d, err = Replay(ctx, q, tenant, deliveryID, act == ActReplayAgain)
		act = ActReplay
	case ActArchive, ActUnarchive:
		d, changed, err = archive(ctx, q, tenant, deliveryID, act == ActArchive)
	}
	if err != nil || !changed {
		return d, false, err
	}
	details := map[string]string{"endpoint": id.Endpoint.Format(d.Endpoint.ID), "event": id.Event.Format(d.EventID)}
	if d.ID != deliveryID {
		details["new_delivery"] = id.Delivery.Format(d.ID)
	}
	return d, true, db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  string(act),
		Kind:    "delivery",
		Object:  id.Delivery.Format(deliveryID),
		Details: details,
	})
}
