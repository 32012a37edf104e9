package worker

import (
	"context"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

const (
	verifyEvery = time.Second
	verifyMost  = 20
)

// verifyDelays are the delays after failed tries; after the last one the verification has failed.
var verifyDelays = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// verifications sends the verification requests and the checks of secrets that are due.
func (w *Worker) verifications(ctx context.Context) {
	wake := make(chan struct{}, 1)
	poke := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	go db.Listen(ctx, w.listen, []string{db.ChannelJobs}, poke, func(string, string) { poke() })
	for ctx.Err() == nil {
		select {
		case <-wake:
		case <-time.After(verifyEvery):
		case <-ctx.Done():
			return
		}
		var due []sql.PendingVerificationsRow
		var checks []sql.PendingSecretChecksRow
		err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
			if due, err = q.PendingVerifications(ctx, verifyMost); err != nil {
				return err
			}
			checks, err = q.PendingSecretChecks(ctx, verifyMost)
			return err
		})
		if err != nil {
			if ctx.Err() == nil && !db.IsPassing(err) {
				w.log.Warn("verifications could not be read", "error", err)
			}
			continue
		}
		for _, v := range due {
			w.background.Go(func() { w.verify(ctx, v) })
		}
		for _, c := range checks {
			w.background.Go(func() { w.checkSecret(ctx, c) })
		}
	}
}

// verify makes one try of a verification and records the result. A try that a stop interrupts is repeated when its
// claim has expired.
func (w *Worker) verify(ctx context.Context, v sql.PendingVerificationsRow) {
	details, err := queue.LaneDetails(ctx, w.db, []id.UUID{v.EndpointID})
	if err != nil {
		return
	}
	leased, ok := details[v.EndpointID]
	if !ok || leased.Endpoint.DeletedAt != nil {
		w.finishVerification(ctx, v, 0, "The endpoint was deleted.", "superseded")
		return
	}
	s := w.settingsOf(leased)
	if s == nil {
		w.finishVerification(ctx, v, 0, "The endpoint's configuration couldn't be read because of an error on our side.", "failed")
		return
	}
	ask := send.Ask{Mode: leased.Endpoint.Verification, Origin: w.origin(), Rate: leased.Endpoint.RateLimit}
	status, detail, verified, permitted := w.sender.Verify(ctx, s.Destination, ask, v)
	switch {
	case ctx.Err() != nil:
	case verified:
		w.verified(ctx, v, status, permitted)
	case int(v.Tries) > len(verifyDelays):
		w.finishVerification(ctx, v, status, detail, "failed")
	default:
		err = w.db.Worker(ctx, func(q *sql.Queries) error {
			return q.PostponeVerification(ctx, sql.PostponeVerificationParams{
				TenantID:   v.TenantID,
				ID:         v.ID,
				Seconds:    verifyDelays[v.Tries-1].Seconds(),
				LastStatus: statusOrNull(status),
				LastDetail: detail,
			})
		})
	}
	if err != nil && ctx.Err() == nil {
		w.log.Warn("a verification's result could not be written; it is tried again", "endpoint", endpointID(v.EndpointID), "error", err)
	}
	w.log.Info("verification", "endpoint", endpointID(v.EndpointID), "status", status, "verified", verified, "detail", detail, "try", v.Tries)
}

func statusOrNull(status int) *int32 {
	if status == 0 {
		return nil
	}
	s := int32(status)
	return &s
}

func (w *Worker) finishVerification(ctx context.Context, v sql.PendingVerificationsRow, status int, detail,
	state string,
) {
	if err := w.db.Worker(ctx, func(q *sql.Queries) error {
		_, err := q.FinishVerification(ctx, sql.FinishVerificationParams{
			TenantID:   v.TenantID,
			ID:         v.ID,
			State:      state,
			LastStatus: statusOrNull(status),
			LastDetail: detail,
		})
		return err
	}); err != nil && ctx.Err() == nil {
		w.log.Warn("a verification's result could not be written; it is tried again", "endpoint", endpointID(v.EndpointID), "error", err)
	}
}

// origin is the host that names this platform to receivers.
func (w *Worker) origin() string {
	if u, err := url.Parse(w.baseURL); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "posthorn"
}

// verified activates the endpoint, at the rate that it permits, and wakes its lane.
func (w *Worker) verified(ctx context.Context, v sql.PendingVerificationsRow, status int, permitted send.Permission) {
	opened, err := endpoints.OpenVerified(ctx, w.db, v, int32(status), permitted.PerSecond())
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("a verification's result could not be written; it is tried again", "endpoint", endpointID(v.EndpointID), "error", err)
		}
		return
	}
	if opened {
		w.announce(ctx, w.dispatch.Wake([]id.UUID{v.EndpointID}))
	}
}
