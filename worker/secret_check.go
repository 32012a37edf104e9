package worker

import (
	"context"
	"slices"

	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// checkSecret sends an endpoint a test event that one of its secrets alone signs, and records whether it was accepted.
// A check that a stop interrupts is repeated when its claim has expired.
func (w *Worker) checkSecret(ctx context.Context, c sql.PendingSecretChecksRow) {
	details, err := queue.LaneDetails(ctx, w.db, []id.UUID{c.EndpointID})
	if err != nil {
		return
	}
	leased, ok := details[c.EndpointID]
	if !ok || leased.Endpoint.DeletedAt != nil {
		return // its secrets are deleted
	}
	leased.Secrets = slices.DeleteFunc(slices.Clone(leased.Secrets), func(s sql.LaneSecretsRow) bool { return s.ID != c.ID })
	leased.Endpoint.SlotSecretID = nil
	if len(leased.Secrets) == 0 {
		return // it has ended
	}
	status, detail, accepted := 0, "The endpoint's configuration couldn't be read because of an error on our side.", false
	if s := w.settingsOf(leased); s != nil {
		status, detail, accepted = w.sender.Check(ctx, s.Destination)
	}
	if ctx.Err() != nil {
		return
	}
	state := endpoint.CheckRejected
	if accepted {
		state = endpoint.CheckAccepted
	}
	err = w.db.Worker(ctx, func(q *sql.Queries) error {
		return q.FinishSecretCheck(ctx, sql.FinishSecretCheckParams{
			State:       string(state),
			Status:      statusOrNull(status),
			Detail:      detail,
			TenantID:    c.TenantID,
			ID:          c.ID,
			RequestedAt: *c.CheckedAt,
		})
	})
	if err != nil && ctx.Err() == nil {
		w.log.Warn("a check's result could not be written; it is tried again", "endpoint", endpointID(c.EndpointID), "error", err)
	}
	w.log.Info("secret checked", "endpoint", endpointID(c.EndpointID), "status", status, "accepted", accepted, "detail", detail)
}
