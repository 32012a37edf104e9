package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// How much of a tenant an export holds in memory. An event's data has at most 1 MiB, the stored part of a response 16
// KiB.
const (
	exportRows  = 500
	exportBytes = 4 << 20
	exportTries = 500 // except for a delivery with more
	// exportWithin bounds the time for one page. An export as a whole has no time limit, and must not wait for a
	// database that does not respond.
	exportWithin = time.Minute
)

// Export reads a tenant's data page by page, each in a transaction of its own, so that it blocks nothing however long
// it takes. It leaves out what is created after it started. What changes during the export is as it was when it was
// read.
type Export struct {
	Tenant sql.Tenant
	At     time.Time // when it started, by the database's clock
	d      *db.DB
	floor  time.Time // older rows are hidden by the tenant's retention
}

// BeginExport records the export in the tenant's audit log, before any data is read.
func BeginExport(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author) (*Export, error) {
	e := &Export{d: d}
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) (err error) {
		if e.Tenant, err = q.GetTenant(ctx, tenant); err != nil {
			return err
		}
		if e.floor, err = q.VisibleSince(ctx, tenant); err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant,
			Action: "tenant.exported",
			Kind:   "tenant",
			Object: id.Tenant.Format(tenant),
			Reason: reason,
		})
	})
	// The floor is as far back as the tenant's retention reaches: rows before it are hidden.
	e.At = e.floor.UTC().AddDate(0, 0, int(e.Tenant.RetentionDays))
	return e, err
}

// Still fails if the tenant was deleted during the export: data that was read then can be incomplete.
func (e *Export) Still(ctx context.Context) error {
	return e.Read(ctx, func(ctx context.Context, q *sql.Queries) error {
		_, err := q.GetTenant(ctx, e.Tenant.ID)
		return err
	})
}

// End records in the tenant's audit log that everything was sent: the number of lines of each file.
func (e *Export) End(ctx context.Context, lines map[string]int, by db.Author) error {
	return e.d.Tenant(ctx, e.Tenant.ID, func(q *sql.Queries) error {
		return db.Audit(ctx, q, by, db.Audited{
			Tenant:  &e.Tenant.ID,
			Action:  "tenant.export_sent",
			Kind:    "tenant",
			Object:  id.Tenant.Format(e.Tenant.ID),
			Details: map[string]any{"lines": lines},
		})
	})
}

// StandingExport returns when the last export was sent that still contains everything the tenant has now; nil: there is
// none.
func StandingExport(ctx context.Context, q *sql.Queries, tenant id.UUID) (*time.Time, error) {
	last, err := q.ExportSent(ctx, &tenant, (account.ExportLasts +
		db.ClockSkew).Seconds())
	if db.IsNoRows(err) {
		return nil, nil
	}
	if err != nil || !account.ExportIsCurrent(&last.At, last.Now) {
		return nil, err
	}
	return &last.At, nil
}

// Read reads a page as the tenant, with plans by index, within the time limit of the context that it passes on.
func (e *Export) Read(ctx context.Context, read func(ctx context.Context, q *sql.Queries) error) error {
	ctx, cancel := context.WithTimeout(ctx, exportWithin)
	defer cancel()
	return e.d.Tenant(db.ReadOnly(ctx), e.Tenant.ID, func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		return read(ctx, q)
	})
}

// days reads pages one day after the other, each beyond the last id of the one before, until a day has no more.
func (e *Export) days(page func(w window) (last id.UUID, err error)) error {
	for day := e.floor.Truncate(24 * time.Hour); day.Before(e.At); day = day.Add(24 * time.Hour) {
		w := window{low: id.FirstAt(day), high: id.FirstAt(day.Add(24 * time.Hour))}
		if day.Before(e.floor) {
			w.low = id.FirstAt(e.floor)
		}
		if end := id.FirstAt(e.At); end.Compare(w.high) < 0 {
			w.high = end
		}
		for {
			last, err := page(w)
			if err != nil {
				return err
			}
			if last.IsZero() {
				break
			}
			w.low = last
		}
	}
	return nil
}

// Events passes on the tenant's events, oldest first, in parts with bounded data.
func (e *Export) Events(ctx context.Context, take func([]show.Event) error) error {
	return e.days(func(w window) (last id.UUID, err error) {
		var found []show.Event
		err = e.Read(ctx, func(ctx context.Context, q *sql.Queries) error {
			rows, err := q.ExportEvents(ctx, sql.ExportEventsParams{
				TenantID: e.Tenant.ID,
				Low:      w.low,
				LowAt:    w.low.Time(),
				High:     w.high,
				HighAt:   w.high.Time(),
				Limit:    exportRows,
				Bytes:    exportBytes,
			})
			for _, row := range rows {
				found = append(found, events.Of(row))
			}
			return err
		})
		if err != nil || len(found) == 0 {
			return last, err
		}
		return found[len(found)-1].ID, take(found)
	})
}

// Rejected passes on the rejected events that the tenant emitted in SQL, oldest first, in parts with bounded data.
func (e *Export) Rejected(ctx context.Context, take func([]show.Rejected) error) error {
	for after := (id.UUID{}); ; {
		var found []show.Rejected
		err := e.Read(ctx, func(ctx context.Context, q *sql.Queries) error {
			rows, err := q.ExportRejected(ctx, sql.ExportRejectedParams{
				TenantID: e.Tenant.ID,
				After:    after,
				Limit:    exportRows,
				Bytes:    exportBytes,
			})
			for _, row := range rows {
				found = append(found, rejectedOf(sql.ListRejectedRow(row)))
			}
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		if err := take(found); err != nil {
			return err
		}
		after = found[len(found)-1].ID
	}
}

// ExportedDelivery is a delivery with all of its attempts, oldest first.
type ExportedDelivery struct {
	show.Delivery
	Tries []show.Attempt
}

// Deliveries passes on the tenant's deliveries, including archived ones, oldest first, in parts with a bounded number
// of attempts.
func (e *Export) Deliveries(ctx context.Context, take func([]ExportedDelivery) error) error {
	return e.days(func(w window) (last id.UUID, err error) {
		var rows []show.Delivery
		err = e.Read(ctx, func(ctx context.Context, q *sql.Queries) error {
			ids, err := q.ExportDeliveries(ctx, sql.ExportDeliveriesParams{
				TenantID: e.Tenant.ID,
				Low:      w.low,
				LowAt:    w.low.Time(),
				High:     w.high,
				HighAt:   w.high.Time(),
				Limit:    exportRows,
			})
			if err != nil || len(ids) == 0 {
				return err
			}
			last = ids[len(ids)-1]
			rows, err = readDeliveries(ctx, q, e.Tenant.ID, ids)
			return err
		})
		for len(rows) > 0 && err == nil {
			var part []ExportedDelivery
			n := fewAttempts(rows)
			if err = e.Read(ctx, func(ctx context.Context, q *sql.Queries) error {
				part, err = withAttempts(ctx, q, e.Tenant.ID, rows[:n])
				return err
			}); err == nil {
				err = take(part)
			}
			rows = rows[n:]
		}
		return last, err
	})
}

// fewAttempts is how many of the first deliveries have attempts that fit in memory together: at least one.
func fewAttempts(rows []show.Delivery) int {
	attempts := 0
	for n, d := range rows {
		if attempts += d.Attempts; attempts > exportTries && n > 0 {
			return n
		}
	}
	return len(rows)
}

// withAttempts reads the attempts of deliveries of one day.
func withAttempts(ctx context.Context, q *sql.Queries, tenant id.UUID, rows []show.Delivery) ([]ExportedDelivery, error) {
	out := make([]ExportedDelivery, len(rows))
	at := make(map[id.UUID]int, len(rows))
	ask := sql.ExportAttemptsParams{
		TenantID: tenant,
		Since:    rows[0].CreatedAt.Add(-db.ClockSkew),
		Until:    rows[0].CreatedAt,
	}
	for i, d := range rows {
		out[i].Delivery, at[d.ID] = d, i
		if d.Attempts == 0 && !d.Status.Terminal() {
			continue
		}
		ask.Ids = append(ask.Ids, d.ID)
		until := id.Last.Time()
		if !d.SettledAt.IsZero() {
			until = d.SettledAt.Add(afterSettled)
		}
		if until.After(ask.Until) {
			ask.Until = until
		}
	}
	if len(ask.Ids) == 0 {
		return out, nil
	}
	attempts, err := q.ExportAttempts(ctx, ask)
	for _, t := range attempts {
		of := &out[at[t.DeliveryID]]
		of.Tries = append(of.Tries, attemptOf(t, of.Delivery))
	}
	return out, err
}
