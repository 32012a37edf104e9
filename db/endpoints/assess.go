package endpoints

import (
	"context"
	"fmt"
	"reflect"
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
		if e.Status != string(endpoint.Active) {
			return nil
		}
		sent, err := q.WarningsOf(ctx, tenant, []id.UUID{endpointID})
		if err != nil {
			return err
		}
		stepped, err := q.ClockSteppedAt(ctx)
		if err != nil {
			return err
		}
		of, err := observe(ctx, q, e, now, func(h sql.EndpointHealth) bool {
			done = evaluate(h, health.ReadPolicy(platform, t.Settings), sentWarnings(sent), now, db.OrZero(stepped))
			return done.Disabled != "" || len(done.Warned) > 0
		})
		if err != nil || of == nil {
			return err
		}
		switch {
		case done.Disabled != "":
			return of.disable(ctx, q, done.Disabled)
		case done.Recovered:
			return recovered(ctx, q, e, of.health, sent)
		}
		for _, w := range done.Warned {
			if err := of.warn(ctx, q, w); err != nil {
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

// observed is an endpoint's health, with what notices about it count at the same moment.
type observed struct {
	endpoint sql.Endpoint
	health   sql.EndpointHealth
	now      time.Time
	errors   []health.ErrorCount // what failed attempts of the last 24 hours ended with
	day      health.Attempts
	failed   int64 // deliveries that failed permanently since the first failure, up to one more than heldCounted
}

// observations is how often numbers are read again that changed while they were read.
const observations = 5

// observe reads an endpoint's health, and what notices count if the health needs one; nil: there is no health yet. The
// recorder writes attempts and the health that follows from them in one transaction. So the numbers are of one moment
// where the health is the same before and after.
func observe(ctx context.Context, q *sql.Queries, e sql.Endpoint, now time.Time, needed func(sql.EndpointHealth) bool) (*observed, error) {
	of := &observed{endpoint: e, now: now}
	for range observations {
		rows, err := q.EndpointHealthOf(ctx, e.TenantID, []id.UUID{e.ID})
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		if reflect.DeepEqual(of.health, rows[0]) {
			break
		}
		of.health = rows[0]
		if !needed(of.health) {
			break
		}
		if err := of.count(ctx, q); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// disable disables an active endpoint; its later deliveries are held, not lost.
func (o *observed) disable(ctx context.Context, q *sql.Queries, reason health.Reason) error {
	e := o.endpoint
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
	details := o.describe(reason)
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

// DisableFeed disables a feed that nobody reads. It returns false if the feed was not active any more.
func DisableFeed(ctx context.Context, q *sql.Queries, tenant, feedID id.UUID, reason string) (bool, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return false, err
	}
	off, err := q.DisableEndpoint(ctx, sql.DisableEndpointParams{TenantID: tenant, ID: feedID, Reason: reason})
	if db.IsNoRows(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := reroute(ctx, q, off, false); err != nil {
		return false, err
	}
	return true, db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
		Tenant: &tenant,
		Action: "endpoint.disabled",
		Kind:   "endpoint",
		Object: id.Endpoint.Format(feedID),
		Reason: reason,
	})
}

func (o *observed) warn(ctx context.Context, q *sql.Queries, w health.Warning) error {
	e := o.endpoint
	if err := q.RememberWarning(ctx, sql.RememberWarningParams{
		TenantID:   e.TenantID,
		EndpointID: e.ID,
		Reason:     string(w.Reason),
		Stage:      string(w.Stage),
		Since:      db.OrNull(w.Since),
		At:         o.now,
	}); err != nil {
		return err
	}
	details := o.describe(w.Reason)
	details.Stage, details.DisableAt, details.FailuresLeft = string(w.Stage), db.OrNull(w.DisableAt), w.Left
	since := w.Since
	if since.IsZero() {
		since = e.CreatedAt
	}
	return tell(ctx, q, e, notice.EndpointWarning, fmt.Sprintf("%s:%s:%s:%d", key(e.ID, since), w.Reason, w.Stage, o.health.Epoch), details)
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
	if err := q.UnmuteRecovered(ctx, e.TenantID, e.ID); err != nil {
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

// count reads the results of the endpoint's attempts of the last 24 hours, and how many deliveries failed permanently
// since the first failure.
func (o *observed) count(ctx context.Context, q *sql.Queries) error {
	e, since, until := o.endpoint, o.now.Add(-24*time.Hour), o.now.Add(time.Minute)
	codes, err := q.FailureCodes(ctx, sql.FailureCodesParams{
		TenantID: e.TenantID,
		Since:    since,
		Until:    until,
		Endpoint: &e.ID,
	})
	if err != nil {
		return err
	}
	o.errors = nil
	for _, c := range codes {
		o.errors = append(o.errors, queue.ErrorCount(c.Code, c.N))
	}
	series, err := ledger.AttemptSeries(ctx, q, e.TenantID, ledger.StatsAsked{
		Window:   analytics.Between(since, until, o.now),
		Endpoint: &e.ID,
	})
	if err != nil {
		return err
	}
	o.day = series.At(analytics.Key{}).Attempts
	from := db.OrZero(o.health.FirstFailureAt).Add(-db.ClockSkew)
	o.failed, err = q.CountDeadLettersOf(ctx, sql.CountDeadLettersOfParams{
		TenantID:   e.TenantID,
		EndpointID: &e.ID,
		Since:      &from,
		Limit:      heldCounted + 1,
	})
	return err
}

// describe is endpointDetails with what was counted.
func (o *observed) describe(reason health.Reason) notice.EndpointDetails {
	e, out := o.endpoint, endpointDetails(o.endpoint, o.health)
	out.Reason, out.RetryClientErrors = string(reason), e.RetryClientErrors
	a := summary.AlertOf(summary.Endpoint{
		ID:       e.ID,
		Name:     out.URL,
		Kind:     endpoint.Kind(e.Kind),
		Disabled: reason,
		Day:      o.day,
		Errors:   o.errors,
	}, o.now)
	out.Problem, out.Response, out.ResponseCount, out.Attempts = string(a.Problem), a.Response.String(), a.Response.Count, a.Attempts
	if a.Response.Count > 0 {
		out.Action = a.Action
	}
	out.FailedPermanently, out.FailedMore = min(o.failed, heldCounted), o.failed > heldCounted
	return out
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
	if err := q.UnmuteRecovered(ctx, tenant, endpointID); err != nil {
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
