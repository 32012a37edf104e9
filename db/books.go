package db

import (
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/id"
)

// Entry is what one transaction changes in the books of one tenant and day: counts of deliveries, but for Expunged, which
// counts events whose data was destroyed, and Events, which counts those that were stored: they are no part of the sum.
type Entry struct{ Accepted, Delivered, Failed, Canceled, Expunged, Events int32 }

type page struct {
	tenant id.UUID
	day    int64 // days since 1970, UTC, of the delivery's creation
}

// Books gathers the entries of one transaction.
type Books map[page]*Entry

// At is the entry for a tenant and the UTC day of a delivery's creation.
func (b Books) At(tenant id.UUID, created time.Time) *Entry {
	p := page{tenant, created.Unix() / 86400}
	e := b[p]
	if e == nil {
		e = &Entry{}
		b[p] = e
	}
	return e
}

// columns are the parallel arrays of a ledger row.
func (b Books) columns() (tenants []id.UUID, days []time.Time, counts [6][]int32) {
	for p, e := range b {
		tenants = append(tenants, p.tenant)
		days = append(days, time.Unix(p.day*86400, 0).UTC())
		for i, n := range []int32{e.Accepted, e.Delivered, e.Failed, e.Canceled, e.Expunged, e.Events} {
			counts[i] = append(counts[i], n)
		}
	}
	return tenants, days, counts
}

// queue adds the ledger row of a transaction that only accepts.
func (b Books) queue(batch *pgx.Batch) {
	tenants, days, counts := b.columns()
	batch.Queue(enterAccepted, tenants, days, counts[0], counts[5])
}
