package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/settings"
	"posthorn/domain/summary"
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
		if err != nil || notice.ReadSettings(t.Settings).Mutes(notice.Digest) {
			return err
		}
		if platform, err := q.PlatformSettings(ctx); err != nil || !settings.On(settings.Digest, platform) {
			return err
		}
		last, err := q.LastDigest(ctx, tenant)
		if err != nil && !db.IsNoRows(err) {
			return err
		}
		if !last.Day.IsZero() && !summary.DigestDay(now).After(summary.DigestDay(last.Day)) {
			return nil
		}
		h, err := ReadTenantHealth(ctx, q, tenant, now)
		if err != nil || !summary.ShouldDigest(h.Summary, last.Day, now) {
			return err
		}
		posted, err = postDigest(ctx, q, tenant, summary.DigestDay(now), h)
		return err
	})
	if db.IsNotFound(err) { // the tenant was deleted
		return false, nil
	}
	return posted && err == nil, err
}

func postDigest(ctx context.Context, q *sql.Queries, tenant id.UUID, day time.Time, h TenantHealth) (bool, error) {
	noticeID := db.NewID()
	n, err := q.InsertDigest(ctx, sql.InsertDigestParams{
		TenantID:  tenant,
		Day:       day,
		NoticeID:  noticeID,
		CreatedAt: noticeID.Time(),
	})
	if err != nil || n == 0 {
		return false, err
	}
	details := digestDetails(day, h)
	return accounts.PostNotice(ctx, q, accounts.Notice{
		ID:      noticeID,
		Tenant:  tenant,
		Kind:    notice.Digest,
		Key:     "digest:" + details.Day,
		Details: details,
	})
}

func digestDetails(day time.Time, h TenantHealth) notice.DigestDetails {
	out := notice.DigestDetails{
		Day:              day.Format(time.DateOnly),
		Severity:         h.Severity.String(),
		Action:           h.Action,
		ActionEndpoint:   endpointText(h.ActionEndpoint),
		MoreAlerts:       h.MoreAlerts,
		DeadLetters:      h.DeadLetters,
		ActiveEndpoints:  h.ActiveEndpoints,
		SuccessDay:       h.SuccessDay.String(),
		SuccessHour:      h.SuccessHour.String(),
		Attempts:         h.SuccessDay.Total,
		Retries:          h.Retries,
		FailedDeliveries: h.FailedDeliveries,
		P50Milliseconds:  h.P50.Milliseconds(),
		P95Milliseconds:  h.P95.Milliseconds(),
	}
	for _, f := range h.Findings {
		out.Findings = append(out.Findings, notice.DigestFinding{
			Severity: f.Severity.String(),
			Code:     f.Code,
			Detail:   f.Detail,
			Endpoint: endpointText(f.Endpoint),
		})
	}
	for _, a := range h.Alerts {
		out.Alerts = append(out.Alerts, notice.DigestAlert{
			Endpoint: endpointText(a.Endpoint),
			Name:     a.Name,
			Severity: a.Severity.String(),
			Code:     a.Code,
			Detail:   a.Detail,
			Action:   a.Action,
		})
	}
	for _, r := range h.Recovered {
		out.Recovered = append(out.Recovered, notice.DigestRecovery{
			Endpoint: endpointText(r.Endpoint),
			Name:     r.Name,
			Detail:   r.Detail(),
			At:       r.At,
		})
	}
	for _, e := range h.Top {
		if e.URL != "" {
			out.Endpoints = append(out.Endpoints, notice.DigestEndpoint{
				Endpoint: endpointText(e.Endpoint),
				Name:     e.Name,
				URL:      e.URL,
				Status:   string(e.State),
				Failed:   e.Failed(),
				Attempts: e.Total(),
			})
		}
	}
	return out
}

// endpointText is an endpoint's id as people see it; empty for none.
func endpointText(u id.UUID) string {
	if u.IsZero() {
		return ""
	}
	return id.Endpoint.Format(u)
}

// Promise is how long a delivery of a tenant can be due before operators are alerted.
type Promise struct {
	Tenant id.UUID
	Name   string // of the tenant
	Bound  time.Duration
}

// AlertOverdue alerts operators when a delivery of a tenant has been due for longer than the bound: by mail once a UTC
// day, and channels when it begins.
func AlertOverdue(ctx context.Context, d *db.DB, links accounts.Links, p Promise, now time.Time) error {
	tenant, name := p.Tenant, mail.TenantText(p.Name)
	return d.Worker(ctx, func(q *sql.Queries) error {
		seconds, err := q.OldestDue(ctx, tenant, incidents.Silent.Seconds())
		if err != nil || time.Duration(seconds*float64(time.Second)) <= p.Bound {
			return err
		}
		u := id.Tenant.Format(tenant)
		data := mail.OperatorAlertData{
			What: "Deliveries of “" + name + "” are overdue",
			Facts: []mail.Fact{
				{Name: "Tenant", Value: name + " (" + u + ")"},
				{Name: "Oldest overdue for", Value: time.Duration(seconds * float64(time.Second)).Round(time.Second).String()},
			},
			Link:     links.Console(tenant),
			LinkText: "View tenant",
			At:       now,
		}
		if err := accounts.AlertOperators(ctx, q, incidents.LateTenant, "overdue:"+u+":"+now.UTC().Format(time.DateOnly), data); err != nil {
			return err
		}
		return accounts.RaiseAlert(ctx, q, links, incidents.Alert{
			Kind:    incidents.LateTenant,
			Key:     u,
			Title:   data.What,
			Message: data.Text(),
			Page:    accounts.ConsolePage(tenant),
			Tenant:  u,
		}, now)
	})
}
