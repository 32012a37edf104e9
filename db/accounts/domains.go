package accounts

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/sso"
)

// ListDomains reads a tenant's domains by name. They are few.
func ListDomains(ctx context.Context, q *sql.Queries, tenant id.UUID) ([]show.Domain, error) {
	rows, err := q.ListDomains(ctx, tenant)
	domains := make([]show.Domain, len(rows))
	for i, row := range rows {
		domains[i] = show.Domain{
			Domain:   row.Domain,
			Record:   sso.RecordName(row.Domain),
			Text:     sso.RecordText(row.Proof),
			Proof:    row.Proof,
			Verified: row.VerifiedAt != nil,
		}
	}
	return domains, err
}

// ReadDomain reads one of a tenant's domains.
func ReadDomain(ctx context.Context, q *sql.Queries, tenant id.UUID, domain string) (show.Domain, error) {
	all, err := ListDomains(ctx, q, tenant)
	for _, d := range all {
		if d.Domain == domain {
			return d, nil
		}
	}
	if err == nil {
		err = fault.ErrNotFound
	}
	return show.Domain{}, err
}
