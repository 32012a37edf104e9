package feeds

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// assessPage is how many feeds are listed in a statement.
const assessPage = 100

// Assess notes which consumers are late, tells their tenants, warns of feeds that nobody reads, and disables them. Each
// feed has a transaction of its own.
func Assess(ctx context.Context, d *db.DB, now time.Time) error {
	after := id.UUID{}
	for {
		var page []sql.FeedsToAssessRow
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			page, err = q.FeedsToAssess(ctx, after, assessPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, f := range page {
			err := d.Worker(ctx, func(q *sql.Queries) error { return assess(ctx, q, f, now) })
			if err != nil && !db.IsNotFound(err) {
				return err
			}
		}
		after = page[len(page)-1].ID
	}
}

func assess(ctx context.Context, q *sql.Queries, f sql.FeedsToAssessRow, now time.Time) error {
	if err := noteLate(ctx, q, f, now); err != nil {
		return err
	}
	v := feed.Assess(f.ReadAt, now)
	details := notice.FeedDetails{Reason: feed.Unread, Since: new(f.ReadAt.UTC()), DisableAt: new(v.DisableAt.UTC()), Disabled: v.Disable}
	// A read, and a resume, begins anew, and with it another warning.
	key := f.ReadAt.UTC().Format(time.RFC3339)
	switch {
	case v.Disable:
		done, err := endpoints.DisableFeed(ctx, q, f.TenantID, f.ID, feed.Unread)
		if err != nil || !done {
			return err
		}
		return tell(ctx, q, f, "disabled:"+key, details)
	case v.Warn:
		return tell(ctx, q, f, "warned:"+key, details)
	}
	return nil
}

// noteLate writes which consumers are late, and tells of each at most once a UTC day.
func noteLate(ctx context.Context, q *sql.Queries, f sql.FeedsToAssessRow, now time.Time) error {
	rows, err := q.ListConsumers(ctx, f.TenantID, f.ID)
	if err != nil || len(rows) == 0 {
		return err
	}
	l, err := openLog(ctx, q, f.TenantID)
	if err != nil {
		return err
	}
	for _, c := range rows {
		place, err := feed.ParsePlace(c.Cursor)
		if err != nil {
			return err
		}
		lag, err := l.lag(ctx, place, now)
		if err != nil {
			return err
		}
		var since *time.Time
		if late := lag.LateSince(c.AckedAt, now); !late.IsZero() {
			since = new(late.UTC().Truncate(time.Second))
		}
		set := sql.SetLateParams{LateSince: since, TenantID: f.TenantID, EndpointID: f.ID, Name: c.Name}
		if err := q.SetLate(ctx, set); err != nil {
			return err
		}
		if since == nil {
			continue
		}
		err = tell(ctx, q, f, "late:"+c.Name+":"+now.UTC().Format(time.DateOnly), notice.FeedDetails{
			Reason:     "late",
			Consumer:   c.Name,
			Events:     lag.Events,
			EventsMore: lag.More,
			Since:      since,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func tell(ctx context.Context, q *sql.Queries, f sql.FeedsToAssessRow, key string, d notice.FeedDetails) error {
	d.Endpoint, d.URL, d.Description = id.Endpoint.Format(f.ID), f.URL, f.Description
	_, err := accounts.PostNotice(ctx, q, accounts.Notice{
		Tenant:   f.TenantID,
		Kind:     notice.FeedUnread,
		Key:      string(notice.FeedUnread) + ":" + d.Endpoint + ":" + key,
		Endpoint: &f.ID,
		Details:  d,
	})
	return err
}
