package maintenance

import (
	"context"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/db/listen"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/db/subscriptions"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
)

const (
	expireEvery = time.Minute
	expireMost  = 10000
	forgetEvery = 10 * time.Minute
	forgetMost  = 1000
	listenEvery = time.Minute
	heldEvery   = 5 * time.Minute
	startsEvery = time.Second
	heldPage    = 500

	certificatesEvery = time.Hour
)

// expireKeys deletes idempotency keys that have expired.
func (m *Maintenance) expireKeys(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	for {
		var n int64
		if err := m.db.Worker(ctx, func(q *sql.Queries) (err error) {
			n, err = q.ExpireIdempotencyKeys(ctx, expireMost)
			return err
		}); err != nil || n < expireMost {
			return err
		}
	}
}

// forgetExpired deletes expired sessions, links and counts of tries.
func (m *Maintenance) forgetExpired(ctx context.Context) error {
	for {
		var n int64
		if _, err := m.db.Periodic(ctx, "forget expired sessions", 0, func(q *sql.Queries) (err error) {
			n, err = q.ForgetExpired(ctx, forgetMost)
			return err
		}); err != nil || n < forgetMost {
			return err
		}
	}
}

// endAbandoned ends listeners that have had no contact for long, and stops new deliveries to those that went away.
func (m *Maintenance) endAbandoned(ctx context.Context) error {
	if err := listen.Disconnect(ctx, m.db, endpoint.ListenerLeft, sweepMost); err != nil {
		return err
	}
	_, err := listen.EndAbandoned(ctx, m.db, endpoint.ListenerAbandoned, sweepMost)
	return err
}

// lapsedEvery is how often subscriptions of AI clients are looked at.
const lapsedEvery = 15 * time.Second

// gapsEvery is how often clients are told of events that they did not get.
const gapsEvery = 15 * time.Second

// tellGaps tells AI clients of events that were not delivered to them and will not be.
func (m *Maintenance) tellGaps(ctx context.Context) error {
	if m.post == nil {
		return nil
	}
	return subscriptions.TellGaps(ctx, m.db, m.keys, m.baseURL, m.post, sweepMost)
}

// endLapsed ends subscriptions that were not refreshed in time, or whose receivers want no more events.
func (m *Maintenance) endLapsed(ctx context.Context) error {
	_, err := subscriptions.EndLapsed(ctx, m.db, sweepMost)
	return err
}

// sweepInboxes deletes old requests of test inboxes.
func (m *Maintenance) sweepInboxes(ctx context.Context) error {
	return m.db.Worker(ctx, func(q *sql.Queries) error {
		_, err := q.SweepInboxes(ctx, inbox.KeptFor.Seconds())
		return err
	})
}

// forgetDeadWorkers deletes workers that died long ago.
func (m *Maintenance) forgetDeadWorkers(ctx context.Context) error {
	return m.db.Worker(ctx, func(q *sql.Queries) error { return q.ForgetDeadWorkers(ctx) })
}

// expireHeld ends deliveries that were held for too long, and notifies owners before.
func (m *Maintenance) expireHeld(ctx context.Context) error {
	claimed, err := m.db.Periodic(ctx, "expire held deliveries", heldEvery, func(*sql.Queries) error { return nil })
	if err != nil || !claimed {
		return err
	}
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	return m.ExpireHeld(ctx, now)
}

// lateEvery is how often deliveries are looked for that wait beyond their expiry. A worker sends none of them.
const lateEvery = 2 * time.Second

// expireLate ends deliveries that were not delivered before their expiry. None ends while the clock is not trusted.
func (m *Maintenance) expireLate(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	for {
		if n, err := queue.EndExpired(ctx, m.db, now, sweepMost); err != nil || n < sweepMost {
			return err
		}
	}
}

// ExpireHeld ends deliveries that were held for too long at now.
func (m *Maintenance) ExpireHeld(ctx context.Context, now time.Time) error {
	after := id.UUID{}
	for {
		holding, err := endpoints.Holding(ctx, m.db, after, heldPage)
		if err != nil {
			return err
		}
		for _, h := range holding {
			for more := true; more; {
				if more, err = endpoints.ExpireHeld(ctx, m.db, h, now, sweepMost); err != nil {
					return err
				}
			}
			after = h.ID
		}
		if len(holding) < heldPage {
			return nil
		}
	}
}

// warnOfCertificates notifies owners of client certificates that are about to expire.
func (m *Maintenance) warnOfCertificates(ctx context.Context) error {
	claimed, err := m.db.Periodic(ctx, "warn of certificates", certificatesEvery, func(*sql.Queries) error { return nil })
	if err != nil || !claimed {
		return err
	}
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	return endpoints.WarnOfCertificates(ctx, m.db, now)
}

// trimLogs deletes the rows of the logs of feeds whose events retention has dropped.
func (m *Maintenance) trimLogs(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	_, err = feeds.Trim(ctx, m.db)
	return err
}

// assessFeeds tells of late consumers, and of feeds that nobody reads.
func (m *Maintenance) assessFeeds(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	return feeds.Assess(ctx, m.db, now)
}

// catchUp creates deliveries of endpoints that begin in the past.
func (m *Maintenance) catchUp(ctx context.Context) error { return feeds.CatchUp(ctx, m.db) }
