package db

import (
	"context"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/settings"
)

// The sweeps over all tenants, by their chores' names.
const (
	SweepDigests = "digests"
	SweepOverdue = "overdue deliveries"
)

// Sweep calls each for every tenant that has endpoints, when the named sweep has not been made for a while by the database's
// clock. Of several workers one does it. False: it was not due.
func (d *DB) Sweep(ctx context.Context, name string, every time.Duration, each func(tenant id.UUID, tenantName string) error) (bool, error) {
	due := false
	err := d.Worker(ctx, func(q *Queries) error {
		if err := q.InsertChore(ctx, name); err != nil {
			return err
		}
		_, err := q.ClaimSweep(ctx, ClaimSweepParams{Name: name, Seconds: every.Seconds()})
		due = err == nil
		if noRows(err) {
			return nil
		}
		return err
	})
	if err != nil || !due {
		return false, err
	}
	const page = 200
	var after id.UUID
	for {
		var rows []SweptTenantsRow
		if err := d.Worker(ctx, func(q *Queries) (err error) {
			rows, err = q.SweptTenants(ctx, SweptTenantsParams{After: after, Most: page})
			return err
		}); err != nil {
			return true, err
		}
		for _, t := range rows {
			if err := each(t.ID, t.Name); err != nil {
				return true, err
			}
			after = t.ID
		}
		if len(rows) < page {
			return true, nil
		}
	}
}

// PostDigest posts a tenant's digest of the UTC day of now, if it is to have one and has none of this day or a later one. The
// day's row and the notice are one transaction: whoever dies when, and wherever the clock is put, no second one follows.
func (d *DB) PostDigest(ctx context.Context, tenant id.UUID, now time.Time) (posted bool, err error) {
	err = d.Worker(ctx, func(q *Queries) error {
		t, err := q.GetTenant(ctx, tenant)
		if err != nil || notice.ReadSettings(t.Settings).NoDigest {
			return err
		}
		if platform, err := q.PlatformSettings(ctx); err != nil || !settings.On(settings.Digest, platform) {
			return err
		}
		last, err := q.LastDigest(ctx, tenant)
		if err != nil && !noRows(err) {
			return err
		}
		if !last.Day.IsZero() && !health.DigestDay(now).After(health.DigestDay(last.Day)) {
			return nil
		}
		h, err := q.HealthInputs(ctx, tenant, now)
		if err != nil {
			return err
		}
		summary := health.Summarise(h.Inputs)
		if !health.ShouldDigest(summary, last.Day, now) {
			return nil
		}
		posted, err = q.postDigest(ctx, tenant, health.DigestDay(now), summary, h)
		return err
	})
	if isNotFound(err) { // the tenant went
		return false, nil
	}
	return posted && err == nil, err
}

func (q *Queries) postDigest(ctx context.Context, tenant id.UUID, day time.Time, s health.Summary, h TenantHealth) (bool, error) {
	u := NewID()
	n, err := q.InsertDigest(ctx, InsertDigestParams{TenantID: tenant, Day: day, NoticeID: u, CreatedAt: u.Time()})
	if err != nil || n == 0 {
		return false, err
	}
	details, err := q.digestDetails(ctx, tenant, day, s, h)
	if err != nil {
		return false, err
	}
	return q.PostNotice(ctx, Notice{ID: u, Tenant: tenant, Kind: notice.Digest, Key: "digest:" + details.Day, Details: details})
}

func (q *Queries) digestDetails(ctx context.Context, tenant id.UUID, day time.Time, s health.Summary, h TenantHealth) (notice.DigestDetails, error) {
	out := notice.DigestDetails{
		Day: day.Format(time.DateOnly), Severity: s.Severity.String(), Action: s.Action, ActiveEndpoints: s.ActiveEndpoints,
		SuccessDay: s.SuccessDay.String(), SuccessHour: s.SuccessHour.String(), Attempts: s.SuccessDay.Total, Retries: s.Retries,
		FailedDeliveries: s.FailedDeliveries, P50Milliseconds: s.P50.Milliseconds(), P95Milliseconds: s.P95.Milliseconds(),
		ActionEndpoint: s.ActionEndpoint, MoreAlerts: s.MoreAlerts, DeadLetters: h.DeadLetters,
	}
	for _, f := range s.Findings {
		out.Findings = append(out.Findings, notice.DigestFinding{Severity: f.Severity.String(), Code: f.Code, Detail: f.Detail, Endpoint: f.Endpoint})
	}
	for _, a := range s.Alerts {
		out.Alerts = append(out.Alerts, notice.DigestAlert{
			Endpoint: a.Endpoint, Name: a.Name, Severity: a.Severity.String(), Code: a.Code, Detail: a.Detail, Action: a.Action,
		})
	}
	var ids []id.UUID
	for _, r := range h.Top {
		ids = append(ids, r.Endpoint)
	}
	rows, err := q.DigestEndpoints(ctx, DigestEndpointsParams{TenantID: tenant, Ids: ids})
	if err != nil {
		return out, err
	}
	known := map[id.UUID]DigestEndpointsRow{}
	for _, r := range rows {
		known[r.ID] = r
	}
	for _, r := range h.Top {
		if e, ok := known[r.Endpoint]; ok && r.Failed() > 0 {
			out.Endpoints = append(out.Endpoints, notice.DigestEndpoint{
				Endpoint: id.Endpoint.Format(e.ID), Name: e.Description, URL: egress.Mask(e.URL), Status: e.Status, Failed: r.Failed(), Attempts: r.Total(),
			})
		}
	}
	return out, nil
}

// AlertOverdue tells the operators when a delivery of a tenant has been due for longer than the bound, once a UTC day.
func (d *DB) AlertOverdue(ctx context.Context, links Links, tenant id.UUID, name string, bound time.Duration, now time.Time) error {
	return d.Worker(ctx, func(q *Queries) error {
		seconds, err := q.OldestDue(ctx, tenant)
		if err != nil || time.Duration(seconds*float64(time.Second)) <= bound {
			return err
		}
		u := id.Tenant.Format(tenant)
		return q.AlertOperators(ctx, "overdue:"+u+":"+now.UTC().Format(time.DateOnly), mail.OperatorAlertData{
			What:  "Deliveries of " + name + " are overdue",
			Facts: []mail.Fact{{Name: "Tenant", Value: name + " (" + u + ")"}, {Name: "Oldest due for", Value: time.Duration(seconds * float64(time.Second)).Round(time.Second).String()}},
			Link:  links.Console(tenant), LinkText: "Look at the tenant", At: now,
		})
	})
}
