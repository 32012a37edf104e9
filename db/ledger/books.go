package ledger

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// ListBooks reads the books of one tenant or of all (nil) since a day, those that don't add up first.
func ListBooks(ctx context.Context, q *sql.Queries, tenant *id.UUID, since time.Time, limit int) ([]show.Books, error) {
	rows, err := q.ConsoleLedger(ctx, sql.ConsoleLedgerParams{TenantID: tenant, Since: since, Limit: int32(limit)})
	books := make([]show.Books, len(rows))
	for i, r := range rows {
		books[i] = show.Books{
			Tenant:     r.TenantID,
			TenantName: r.TenantName,
			Day:        r.Day.In(time.UTC),
			Accepted:   r.Accepted,
			Delivered:  r.Delivered,
			Failed:     r.Failed,
			Canceled:   r.Canceled,
			Expunged:   r.Expunged,
			Purged:     r.Purged,
			PurgedAt:   r.PurgedAt,
			Waiting:    r.Waiting,
			Held:       r.Held,
			Difference: r.Difference,
		}
	}
	return books, err
}

// CountBooks counts the lines of the books of all tenants since a day.
func CountBooks(ctx context.Context, q *sql.Queries, since time.Time) (int64, error) {
	return q.CountBooks(ctx, since)
}

// ListDiscrepancies reads the differences that the job found: those that nobody has accepted first.
func ListDiscrepancies(ctx context.Context, q *sql.Queries, limit int) ([]show.Discrepancy, error) {
	rows, err := q.ListDiscrepancies(ctx, false, int32(limit))
	found := make([]show.Discrepancy, len(rows))
	for i, r := range rows {
		d := &found[i]
		_ = json.Unmarshal(r.Details, &d.Finding) // written by the job alone
		d.Tenant, d.TenantName, d.Day = r.TenantID, r.TenantName, r.Day.In(time.UTC)
		d.Amount, d.Gap, d.Open = r.Amount, r.Gap, r.Open
		d.FoundAt, d.EndedAt, d.AcceptedAt = r.FoundAt, r.EndedAt, r.AcceptedAt
		if d.Accepted() {
			d.AcceptedBy, d.Reason = *r.AcceptedBy, *r.AcceptedReason
		}
	}
	return found, err
}

// Reconciliations reads how far the checks of the books are.
func Reconciliations(ctx context.Context, q *sql.Queries) ([]show.Reconciliation, error) {
	rows, err := q.ListReconcileProgress(ctx)
	checks := make([]show.Reconciliation, len(rows))
	for i, r := range rows {
		checks[i] = show.Reconciliation{Name: r.Name, Day: r.Day.In(time.UTC), Pages: r.Checked, Since: r.RoundAt}
	}
	return checks, err
}
