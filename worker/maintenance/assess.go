package maintenance

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/worker/loop"
)

const (
	assessEvery = 30 * time.Second // for what depends on time alone, and what a dead worker left undone
	assessMost  = 500
	assessRetry = time.Second
)

// Assess requests an assessment of endpoints.
func (m *Maintenance) Assess(endpoints ...id.UUID) { m.assessing.Ask(endpoints...) }

// assess assesses the requested endpoints, until the context ends. What a stop leaves undone is found by the periodic
// job of another worker, since the decision depends on recorded data only.
func (m *Maintenance) assess(ctx context.Context) {
	for {
		select {
		case <-m.assessing.Woken:
		case <-ctx.Done():
			return
		}
		named := m.assessing.Take()
		err := m.assessPage(ctx, named)
		if err == nil {
			continue
		}
		if ctx.Err() == nil && !db.IsPassing(err) {
			m.log.Warn("the health of endpoints could not be assessed; it is tried again", "endpoints", len(named), "error", err)
		}
		if !loop.Sleep(ctx, assessRetry) {
			return
		}
		m.assessing.Ask(named...)
	}
}

// assessAll assesses every endpoint that fails, was warned of or recovers.
func (m *Maintenance) assessAll(ctx context.Context) error {
	// The claim commits before the work: the work is safe to repeat, and what a dead worker leaves undone is found at
	// the next run.
	claimed, err := m.db.Periodic(ctx, "assess health", assessEvery, func(*sql.Queries) error { return nil })
	if err != nil || !claimed {
		return err
	}
	return m.assessPage(ctx, nil)
}

// assessPage assesses the named endpoints, or all if none is named, a page at a time.
func (m *Maintenance) assessPage(ctx context.Context, named []id.UUID) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	after := id.UUID{}
	for {
		page, err := endpoints.Assessable(ctx, m.db, named, after, assessMost, now)
		if err != nil {
			return err
		}
		for _, a := range page.Due {
			done, err := endpoints.Assess(ctx, m.db, a.TenantID, a.EndpointID, now)
			if err != nil {
				return err
			}
			m.assessed(a.TenantID, a.EndpointID, done)
		}
		if page.Next.IsZero() {
			return nil
		}
		after = page.Next
	}
}

// assessed passes a decision to the metrics, the log and the lane's owner.
func (m *Maintenance) assessed(tenant, ep id.UUID, done endpoints.Assessment) {
	log := m.log.With("tenant", id.Tenant.Format(tenant), "endpoint", id.Endpoint.Format(ep))
	switch {
	case done.Disabled != "":
		m.gauges.disabled.WithLabelValues(string(done.Disabled)).Inc()
		log.Warn("endpoint disabled", "reason", done.Disabled)
		m.changed(ep)
	case done.Recovered:
		log.Info("endpoint recovered")
	}
	for _, warning := range done.Warned {
		log := log.With("reason", warning.Reason, "stage", warning.Stage)
		if warning.DisableAt.IsZero() {
			log.Warn("endpoint will be disabled after more failures", "failures_left", warning.Left)
		} else {
			log.Warn("endpoint will be disabled", "at", warning.DisableAt)
		}
	}
}
