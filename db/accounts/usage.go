package accounts

import (
	"context"
	"strconv"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/quota"
)

// Usage holds a tenant's limits and what it has used of them.
type Usage struct {
	Month     time.Time // its beginning, UTC
	Events    int64     // of the month
	Endpoints int64
	Limits    quota.Limits
}

// ReadUsage reads a tenant's limits and what it has used of them. most and payload are the platform's values, which
// apply unless a setting overrides them. q can have the role of the tenant, the worker or the console.
func ReadUsage(ctx context.Context, q *sql.Queries, tenant id.UUID, most, payload int, now time.Time) (u Usage, err error) {
	t, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return u, err
	}
	platform, err := q.PlatformSettings(ctx)
	if err != nil {
		return u, err
	}
	u = Usage{Month: quota.Month(now), Limits: quota.Read(platform, t.Settings)}
	u.Limits.Endpoints = endpoint.ReadDefaults(most, platform, t.Settings).MaxEndpoints
	if u.Limits.MaxPayload == 0 || u.Limits.MaxPayload > payload {
		u.Limits.MaxPayload = payload
	}
	if u.Events, err = q.EventsSince(ctx, tenant, u.Month); err != nil {
		return u, err
	}
	u.Endpoints, err = q.CountEndpoints(ctx, tenant)
	return u, err
}

// PostQuotaNotices notifies tenants that have used most or all of the month's events, once for each month and limit.
func PostQuotaNotices(ctx context.Context, d *db.DB, now time.Time) (posted int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		platform, err := q.PlatformSettings(ctx)
		if err != nil {
			return err
		}
		month := quota.Month(now)
		rows, err := q.MonthsEvents(ctx, month, quota.Read(platform, nil).EventsPerMonth > 0)
		if err != nil {
			return err
		}
		for _, r := range rows {
			l := quota.Read(platform, r.Settings)
			kind, stage := notice.QuotaWarning, l.StageOf(r.Events)
			switch stage {
			case quota.Below:
				continue
			case quota.Reached:
				kind = notice.QuotaReached
			}
			resets := quota.Resets(now)
			made, err := PostNotice(ctx, q, Notice{
				Tenant: r.ID,
				Kind:   kind,
				Key:    string(kind) + ":events_per_month:" + month.Format("2006-01") + ":" + strconv.Itoa(l.EventsPerMonth),
				Details: notice.QuotaDetails{
					Quota:    "events per month",
					Used:     r.Events,
					Limit:    int64(l.EventsPerMonth),
					ResetsAt: &resets,
				},
			})
			if err != nil {
				return err
			}
			if made {
				posted++
			}
		}
		return nil
	})
	return posted, err
}
