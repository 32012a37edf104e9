// Package ledger keeps the totals of deliveries: how many deliveries of a tenant and day were accepted, delivered,
// failed or canceled. It also holds the attempts that roll-ups count.
package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// Entry is what one transaction changes in the totals of one tenant and day. All fields count deliveries except two:
// Expunged counts events whose data was destroyed, and Events counts stored events. These two are not part of the sum.
type Entry struct{ Accepted, Delivered, Failed, Canceled, Expunged, Events int32 }

type page struct {
	tenant id.UUID
	day    int64 // days since 1970, UTC, of the delivery's creation
}

// Totals gathers the entries of one transaction.
type Totals map[page]*Entry

// At is the entry for a tenant and the UTC day of a delivery's creation.
func (b Totals) At(tenant id.UUID, created time.Time) *Entry {
	p := page{tenant, created.Unix() / 86400}
	e := b[p]
	if e == nil {
		e = &Entry{}
		b[p] = e
	}
	return e
}

// Columns are the parallel arrays of a ledger row.
func (b Totals) Columns() (tenants []id.UUID, days []time.Time, counts [6][]int32) {
	for p, e := range b {
		tenants = append(tenants, p.tenant)
		days = append(days, time.Unix(p.day*86400, 0).UTC())
		for i, n := range []int32{e.Accepted, e.Delivered, e.Failed, e.Canceled, e.Expunged, e.Events} {
			counts[i] = append(counts[i], n)
		}
	}
	return tenants, days, counts
}

// Queue adds the ledger row of a transaction that only accepts deliveries.
func (b Totals) Queue(batch *pgx.Batch) {
	tenants, days, counts := b.Columns()
	batch.Queue(sql.EnterAccepted, db.Args(sql.EnterAcceptedParams{
		Tenants:  tenants,
		Days:     days,
		Accepted: counts[0],
		Events:   counts[5],
	})...)
}

// Enter writes entries in the ledger of the transaction's tenant.
func Enter(ctx context.Context, q *sql.Queries, totals Totals) error {
	_, days, counts := totals.Columns()
	return q.EnterOwnTotals(ctx, sql.EnterOwnTotalsParams{
		Days:      days,
		Accepted:  counts[0],
		Delivered: counts[1],
		Failed:    counts[2],
		Canceled:  counts[3],
		Expunged:  counts[4],
	})
}

// EnterSettled writes entries in the ledger of any tenants, under the worker's role.
func EnterSettled(ctx context.Context, q *sql.Queries, totals Totals) error {
	tenants, totalDays, counts := totals.Columns()
	return q.EnterSettled(ctx, sql.EnterSettledParams{
		Tenants:   tenants,
		Days:      totalDays,
		Accepted:  counts[0],
		Delivered: counts[1],
		Failed:    counts[2],
		Canceled:  counts[3],
		Expunged:  counts[4],
	})
}
