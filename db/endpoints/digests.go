package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/settings"
)

// The sweeps over all tenants, by the names of their jobs.
const (
	SweepDigests = "digests"
	SweepOverdue = "overdue deliveries"
)

// RequestSweeps makes the sweeps due now, whenever they last ran, and returns their names.
func RequestSweeps(ctx context.Context, d *db.DB) ([]string, error) {
	sweeps := []string{SweepDigests, SweepOverdue}
	return sweeps, d.Console(ctx, func(q *sql.Queries) error {
		_, err := q.MakePeriodicDue(ctx, sweeps)
		return err
	})
}

// PostDigest posts a tenant's digest of the UTC day of now, unless the tenant has switched digests off, or a digest of
// this day or a later one was posted. The day's row and the notice are one transaction, so no day has two digests, even
// if a process is killed or the clock is set.
func PostDigest(ctx context.Context, d *db.DB, tenant id.UUID, now time.Time) (posted bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		t, err := q.GetTenant(ctx, tenant)
		if err != nil || notice.ReadSettings(t.Settings).NoDigest {
			return err
		}
		if platform, err := q.PlatformSettings(ctx); err != nil || !settings.On(settings.Digest, platform) {
			return err
		}
		last, err := q.LastDigest(ctx, tenant)
		if err != nil && !db.IsNoRows(err) {
			return err
		}
		if !last.Day.IsZero() && !health.DigestDay(now).After(health.DigestDay(last.Day)) {
			return nil
		}
		h, err := HealthInputs(ctx, q, tenant, now)
		if err != nil {
			return err
		}
		summary := health.Summarise(h.Inputs)
		if !health.ShouldDigest(summary, last.Day, now) {
			return nil
		}
		posted, err = postDigest(ctx, q, tenant, health.DigestDay(now), summary, h)
		return err
	})
	if db.IsNotFound(err) { // the tenant was deleted
		return false, nil
	}
	return posted && err == nil, err
}

func postDigest(ctx context.Context, q *sql.Queries, tenant id.UUID, day time.Time, s health.Summary,
	h TenantHealth,
) (bool, error) {
	noticeID := db.NewID()
	n, err := q.InsertDigest(ctx, sql.InsertDigestParams{
		TenantID: tenant, Day: day, NoticeID: noticeID, CreatedAt: noticeID.Time(),
	})
	if err != nil || n == 0 {
		return false, err
	}
	details, err := digestDetails(ctx, q, tenant, day, s, h)
	if err != nil {
		return false, err
	}
	return accounts.PostNotice(ctx, q, accounts.Notice{ID: noticeID, Tenant: tenant, Kind: notice.Digest, Key: "digest:" +
		details.Day, Details: details})
}

func digestDetails(ctx context.Context, q *sql.Queries, tenant id.UUID, day time.Time, s health.Summary,
	h TenantHealth,
) (notice.DigestDetails, error) {
	out := notice.DigestDetails{
		Day: day.Format(time.DateOnly), Severity: s.Severity.String(), Action: s.Action,
		ActiveEndpoints: s.ActiveEndpoints,
		SuccessDay:      s.SuccessDay.String(), SuccessHour: s.SuccessHour.String(), Attempts: s.SuccessDay.Total,
		Retries: s.Retries, FailedDeliveries: s.FailedDeliveries, P50Milliseconds: s.P50.Milliseconds(),
		P95Milliseconds: s.P95.Milliseconds(),
		ActionEndpoint:  s.ActionEndpoint, MoreAlerts: s.MoreAlerts, DeadLetters: h.DeadLetters,
	}
	for _, f := range s.Findings {
		out.Findings = append(out.Findings, notice.DigestFinding{
			Severity: f.Severity.String(), Code: f.Code,
			Detail: f.Detail, Endpoint: f.Endpoint,
		})
	}
	for _, a := range s.Alerts {
		out.Alerts = append(out.Alerts, notice.DigestAlert{
			Endpoint: a.Endpoint, Name: a.Name, Severity: a.Severity.String(), Code: a.Code, Detail: a.Detail,
			Action: a.Action,
		})
	}
	var ids []id.UUID
	for _, r := range h.Top {
		ids = append(ids, r.Endpoint)
	}
	rows, err := q.DigestEndpoints(ctx, sql.DigestEndpointsParams{TenantID: tenant, Ids: ids})
	if err != nil {
		return out, err
	}
	states, err := ConditionsCrossTenant(ctx, q, ids)
	if err != nil {
		return out, err
	}
	known := map[id.UUID]sql.DigestEndpointsRow{}
	for _, r := range rows {
		known[r.ID] = r
	}
	for _, r := range h.Top {
		if e, ok := known[r.Endpoint]; ok && r.Failed() > 0 {
			out.Endpoints = append(out.Endpoints, notice.DigestEndpoint{
				Endpoint: id.Endpoint.Format(e.ID), Name: e.Description, URL: egress.Mask(e.URL),
				Status: string(states[e.ID].State), Failed: r.Failed(), Attempts: r.Total(),
			})
		}
	}
	return out, nil
}

// Promise is how long a delivery of a tenant can be due before operators are alerted.
type Promise struct {
	Tenant id.UUID
	Name   string // of the tenant
	Bound  time.Duration
}

// AlertOverdue alerts operators when a delivery of a tenant has been due for longer than the bound, once a UTC day.
func AlertOverdue(ctx context.Context, d *db.DB, links accounts.Links, p Promise, now time.Time) error {
	tenant, name := p.Tenant, mail.TenantText(p.Name)
	return d.Worker(ctx, func(q *sql.Queries) error {
		seconds, err := q.OldestDue(ctx, sql.OldestDueParams{
			TenantID:      tenant,
			SilentSeconds: incidents.Silent.Seconds(),
		})
		if err != nil || time.Duration(seconds*float64(time.Second)) <= p.Bound {
			return err
		}
		u := id.Tenant.Format(tenant)
		return accounts.AlertOperators(ctx, q, "overdue:"+u+":"+now.UTC().Format(time.DateOnly), mail.OperatorAlertData{
			What: "Deliveries of “" + name + "” are overdue",
			Facts: []mail.Fact{
				{Name: "Tenant", Value: name + " (" + u + ")"},
				{Name: "Oldest overdue for", Value: time.Duration(seconds * float64(time.Second)).Round(time.Second).String()},
			},
			Link: links.Console(tenant), LinkText: "View tenant", At: now,
		})
	})
}
