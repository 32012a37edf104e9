package db

import (
	"context"

	"posthorn/domain/id"
)

// DeliveryAct is what people and programs do to one delivery, by its word in the audit log.
type DeliveryAct string

// The acts.
const (
	ActRetryNow    DeliveryAct = "delivery.retry_now"
	ActCancel      DeliveryAct = "delivery.cancel"
	ActReplay      DeliveryAct = "delivery.replay"
	ActReplayAgain DeliveryAct = "delivery.replay_again" // in the audit log as ActReplay
	ActArchive     DeliveryAct = "delivery.archive"
	ActUnarchive   DeliveryAct = "delivery.unarchive"
)

// ActOn does something to a delivery, with its line in the audit log where it changed anything. A replay answers with the new
// delivery; its line is on the original.
func (q *Queries) ActOn(ctx context.Context, tenant, u id.UUID, act DeliveryAct, by Author, reason string) (d DeliveryState, changed bool, err error) {
	changed = true
	switch act {
	case ActRetryNow:
		d, changed, err = q.RetryNow(ctx, tenant, u)
	case ActCancel:
		d, err = q.CancelWaiting(ctx, tenant, u)
	case ActReplay, ActReplayAgain:
		d, err = q.Replay(ctx, tenant, u, act == ActReplayAgain)
		act = ActReplay
	case ActArchive, ActUnarchive:
		d, changed, err = q.Archive(ctx, tenant, u, act == ActArchive)
	}
	if err != nil || !changed {
		return d, false, err
	}
	details := map[string]string{"endpoint": id.Endpoint.Format(d.EndpointID), "event": id.Event.Format(d.EventID)}
	if d.ID != u {
		details["new_delivery"] = id.Delivery.Format(d.ID)
	}
	return d, true, q.Audit(ctx, by, Audited{
		Tenant: &tenant, Action: string(act), Kind: "delivery", Object: id.Delivery.Format(u), Reason: reason, Details: details,
	})
}
