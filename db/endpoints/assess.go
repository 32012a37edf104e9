package endpoints

import (
	"context"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/summary"
)

// Assessment is the decision about an endpoint.
type Assessment struct {
	Disabled  health.Reason // empty: not disabled
	Warned    []health.Warning
	Recovered bool
}

// None reports whether nothing was decided.
func (a Assessment) None() bool { return a.Disabled == "" && len(a.Warned) == 0 && !a.Recovered }

// Assess decides by the recorded counters what happens to an endpoint at now, and does all of it in one transaction: it
// disables the endpoint, holds the lane, writes the audit log and posts the notice; or it warns the owner and records
// the warning; or it notifies the owner that the endpoint recovered. A second call finds nothing left to do.
func Assess(ctx context.Context, d *db.DB, tenant, endpointID id.UUID, now time.Time) (done Assessment, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		t, err := q.LockTenant(ctx, tenant) // in the order of every change of an endpoint's state
		if err != nil {
			return err
		}
		platform, err := q.PlatformSettings(ctx)
		if err != nil {
			return err
		}
		e, err := q.LockEndpoint(ctx, tenant, endpointID)
		if err != nil {
			return err
		}
		rows, err := q.EndpointHealthOf(ctx, tenant, []id.UUID{endpointID})
		if err != nil || len(rows) == 0 || e.Status != string(endpoint.Active) {
			return err
		}
		sent, err := q.WarningsOf(ctx, tenant, []id.UUID{endpointID})
		if err != nil {
			return err
		}
		stepped, err := q.ClockSteppedAt(ctx)
		if err != nil {
			return err
		}
		done = evaluate(rows[0], health.ReadPolicy(platform, t.Settings), sentWarnings(sent), now, db.OrZero(stepped))
		switch {
		case done.Disabled != "":
			return disable(ctx, q, e, rows[0], done.Disabled, now)
		case done.Recovered:
			return recovered(ctx, q, e, rows[0], sent)
		}
		for _, w := range done.Warned {
			if err := warn(ctx, q, e, rows[0], w, now); err != nil {
				return err
			}
		}
		return nil
	})
	if db.IsNotFound(err) {
		return Assessment{}, nil
	}
	return done, err
}

// evaluate decides what happens to an active endpoint, from its counters and the warnings that were sent. stepped is
// when the clock was last set to another time. No streak starts before it.
func evaluate(h sql.EndpointHealth, p health.Policy, sent []health.SentWarning, now, stepped time.Time) Assessment {
	v := p.Verdict(Counters(h).Since(stepped), h.GoneAt != nil, now)
	switch {
	case v.Disable:
		return Assessment{Disabled: v.Reason}
	case Counters(h).Clean() && (len(sent) > 0 || h.OutageFrom != nil):
		return Assessment{Recovered: true}
	}
	return Assessment{Warned: health.Warnings(v, sent, now)}
}

// sentWarnings reads the warnings of one endpoint that were sent.
func sentWarnings(rows []sql.EndpointWarning) []health.SentWarning {
	sent := make([]health.SentWarning, len(rows))
	for i, r := range rows {
		sent[i] = health.SentWarning{
			Reason: health.Reason(r.Reason),
			Stage:  health.Stage(r.Stage),
			Since:  db.OrZero(r.Since),
			At:     r.At,
		}
	}
	return sent
}

// disable disables an active endpoint; its later deliveries are held, not lost.
func disable(ctx context.Context, q *sql.Queries, e sql.Endpoint, h sql.EndpointHealth, reason health.Reason, now time.Time) error {
	off, err := q.DisableEndpoint(ctx, sql.DisableEndpointParams{
		TenantID: e.TenantID,
		ID:       e.ID,
		Reason:   string(reason),
	})
	if err != nil {
		return err
	}
	if err := reroute(ctx, q, off, false); err != nil {
		return err
	}
	if err := holdLane(ctx, q, off); err != nil {
		return err
	}
	details, err := describe(ctx, q, e, h, reason, now)
	if err != nil {
		return err
	}
	if details.Held, details.HeldMore, err = held(ctx, q, e.TenantID, e.ID, heldCounted); err != nil {
		return err
	}
	if err := tell(ctx, q, e, notice.EndpointDisabled, key(e.ID, off.StatusAt), details); err != nil {
		return err
	}
	tenant := e.TenantID
	return db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
		Tenant:  &tenant,
		Action:  "endpoint.disabled",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(e.ID),
		Reason:  string(reason),
		Details: map[string]any{"held": details.Held, "last_status": details.LastStatus, "last_failure": details.LastFailure},
	})
}

func warn(ctx context.Context, q *sql.Queries, e sql.Endpoint, h sql.EndpointHealth, w health.Warning, now time.Time) error {
	if err := q.RememberWarning(ctx, sql.RememberWarningParams{
		TenantID:   e.TenantID,
		EndpointID: e.ID,
		Reason:     string(w.Reason),
		Stage:      string(w.Stage),
		Since:      db.OrNull(w.Since),
		At:         now,
	}); err != nil {
		return err
	}
	details, err := describe(ctx, q, e, h, w.Reason, now)
	if err != nil {
		return err
	}
	details.Stage, details.DisableAt, details.FailuresLeft = string(w.Stage), db.OrNull(w.DisableAt), w.Left
	since := w.Since
	if since.IsZero() {
		since = e.CreatedAt
	}
	return tell(ctx, q, e, notice.EndpointWarning, fmt.Sprintf("%s:%s:%s:%d", key(e.ID, since), w.Reason, w.Stage, h.Epoch), details)
}

// recovered notifies the owner that an endpoint recovered, if the owner was warned about it, or if it was out for long.
func recovered(ctx context.Context, q *sql.Queries, e sql.Endpoint, h sql.EndpointHealth, sent []sql.EndpointWarning) error {
	since, details := db.OrZero(h.OutageFrom), endpointDetails(e, h)
	for _, w := range sent {
		since, details.Reason = w.At, w.Reason
	}
	if err := q.ForgetWarnings(ctx, e.TenantID, e.ID); err != nil {
		return err
	}
	if err := q.ForgetOutage(ctx, e.TenantID, e.ID); err != nil {
		return err
	}
	return tell(ctx, q, e, notice.EndpointRecovered, key(e.ID, since), details)
}

// key makes a notice unique: one for each endpoint, kind and start.
func key(endpointID id.UUID, since time.Time) string {
	return fmt.Sprintf("%s:%d", id.Endpoint.Format(endpointID), since.UnixMicro())
}

func tell(ctx context.Context, q *sql.Queries, e sql.Endpoint, kind notice.Kind, key string, details notice.EndpointDetails) error {
	endpointID := e.ID
	_, err := accounts.PostNotice(ctx, q, accounts.Notice{
		Tenant:   e.TenantID,
		Kind:     kind,
		Key:      string(kind) + ":" + key,
		Endpoint: &endpointID,
		Details:  details,
	})
	return err
}

// endpointDetails are the fields of every notice about an endpoint's health.
func endpointDetails(e sql.Endpoint, h sql.EndpointHealth) notice.EndpointDetails {
	return notice.EndpointDetails{
		Endpoint:            id.Endpoint.Format(e.ID),
		URL:                 egress.Mask(e.URL),
		Description:         e.Description,
		Drops:               e.WhenHeld == endpoint.Drop,
		ConsecutiveFailures: int(h.ConsecutiveFailures),
		AuthStreak:          int(h.AuthStreak),
		LastStatus:          int(h.LastStatus),
		LastFailure:         h.LastFailure.String(),
		LastExcerpt:         h.LastExcerpt,
		FirstFailureAt:      h.FirstFailureAt,
		LastFailureAt:       h.LastFailureAt,
		LastSuccessAt:       h.LastSuccessAt,
	}
}

// describe is endpointDetails with counts: the results of its attempts of the last 24 hours, and how many deliveries
// failed permanently since the first failure.
func describe(
	ctx context.Context,
	q *sql.Queries,
	e sql.Endpoint,
	h sql.EndpointHealth,
	reason health.Reason,
	now time.Time,
) (notice.EndpointDetails, error) {
	out := endpointDetails(e, h)
	out.Reason, out.RetryClientErrors = string(reason), e.RetryClientErrors
	since, until := now.Add(-24*time.Hour), now.Add(time.Minute)
	in := summary.Endpoint{ID: e.ID, Name: out.URL, Disabled: reason}
	codes, err := q.FailureCodes(ctx, sql.FailureCodesParams{
		TenantID: e.TenantID,
		Since:    since,
		Until:    until,
		Endpoint: &e.ID,
	})
	if err != nil {
		return out, err
	}
	for _, c := range codes {
		in.Errors = append(in.Errors, queue.ErrorCount(c.Code, c.N))
	}
	series, err := ledger.AttemptSeries(ctx, q, e.TenantID, ledger.StatsAsked{
		Window:   analytics.Between(since, until, now),
		Endpoint: &e.ID,
	})
	if err != nil {
		return out, err
	}
	in.Day = series.At(analytics.Key{}).Attempts
	a := summary.AlertOf(in, now)
	out.Problem, out.Response, out.ResponseCount, out.Attempts = string(a.Problem), a.Response.String(), a.Response.Count, a.Attempts
	from := db.OrZero(out.FirstFailureAt).Add(-db.ClockSkew)
	failed, err := q.CountDeadLettersOf(ctx, sql.CountDeadLettersOfParams{
		TenantID:   e.TenantID,
		EndpointID: &e.ID,
		Since:      &from,
		Limit:      heldCounted + 1,
	})
	out.FailedPermanently, out.FailedMore = min(failed, heldCounted), failed > heldCounted
	return out, err
}

// heldCounted is how many held deliveries are counted at most.
const heldCounted = 10_000

// held counts the deliveries that wait for an endpoint, at most `most`; more says that there are more.
func held(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, most int) (n int64, more bool, err error) {
	rows, err := q.CountHeld(ctx, sql.CountHeldParams{
		TenantID:  tenant,
		Endpoints: []id.UUID{endpointID},
		Limit:     int32(most) + 1,
	})
	if err != nil || len(rows) == 0 {
		return 0, false, err
	}
	n = rows[0].Held
	return min(n, int64(most)), n > int64(most), nil
}

// clearHealth resets the counters of an endpoint that is active again, and ends the wait that it asked for before. It
// follows the write of the lane's row, in the recorder's order, so that the two never deadlock.
func clearHealth(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	if err := q.ClearHealth(ctx, endpointID, tenant); err != nil {
		return err
	}
	if err := q.ReleaseBacklogs(ctx, []id.UUID{endpointID}); err != nil {
		return err
	}
	if _, err := EndWait(ctx, q, tenant, endpointID); err != nil {
		return err
	}
	return q.ForgetWarnings(ctx, tenant, endpointID)
}

// AssessPage is a page of endpoints that Assess would change.
type AssessPage struct {
	Due  []sql.EndpointHealth
	Next id.UUID // where the next page starts; zero: this was the last
}

// Assessable reads active endpoints that fail, were warned of or recover, ordered by id beyond after, and returns those
// that Assess would change at now. If named is not empty, only these are read.
func Assessable(ctx context.Context, d *db.DB, named []id.UUID, after id.UUID, most int, now time.Time) (page AssessPage, err error) {
	if named == nil {
		named = []id.UUID{}
	}
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.HealthToAssess(ctx, sql.HealthToAssessParams{After: after, Endpoints: named, Limit: int32(most)})
		if err != nil || len(rows) == 0 {
			return err
		}
		var tenants, endpointIDs []id.UUID
		for _, r := range rows {
			tenants = append(tenants, r.EndpointHealth.TenantID)
			endpointIDs = append(endpointIDs, r.EndpointHealth.EndpointID)
		}
		warnings, err := q.WarningsToAssess(ctx, tenants, endpointIDs)
		if err != nil {
			return err
		}
		sent := map[id.UUID][]sql.EndpointWarning{}
		for _, w := range warnings {
			sent[w.EndpointID] = append(sent[w.EndpointID], w)
		}
		stepped, err := q.ClockSteppedAt(ctx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			h := r.EndpointHealth
			if !evaluate(h, health.ReadPolicy(r.PlatformSettings, r.Settings), sentWarnings(sent[h.EndpointID]), now, db.OrZero(stepped)).None() {
				page.Due = append(page.Due, h)
			}
		}
		if len(rows) == most {
			page.Next = rows[len(rows)-1].EndpointHealth.EndpointID
		}
		return nil
	})
	return page, err
}
