package endpoints

import (
	"context"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// certificatesPage is how many endpoints one transaction warns of.
const certificatesPage = 500

// WarnOfCertificates posts a notice for each client certificate that is about to expire, or has expired, at now: once
// for each stage of each certificate.
func WarnOfCertificates(ctx context.Context, d *db.DB, now time.Time) error {
	stages := endpoint.CertificateStages()
	at := sql.EndingCertificatesParams{
		Before: now.Add(stages[len(stages)-1]),
		Limit:  certificatesPage,
	}
	for {
		var rows []sql.EndingCertificatesRow
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			if rows, err = q.EndingCertificates(ctx, at); err != nil {
				return err
			}
			for _, r := range rows {
				if err := tellCertificate(ctx, q, r, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(rows) < certificatesPage {
			return err
		}
		last := rows[len(rows)-1]
		at.AfterEnds, at.AfterID = last.EndsAt, last.ID
	}
}

func tellCertificate(ctx context.Context, q *sql.Queries, r sql.EndingCertificatesRow, now time.Time) error {
	stage, warn := endpoint.CertificateStage(r.EndsAt, now)
	if !warn {
		return nil
	}
	_, err := accounts.PostNotice(ctx, q, accounts.Notice{
		Tenant:   r.TenantID,
		Kind:     notice.CertificateExpiring,
		Key:      fmt.Sprintf("%s:%s:%d:%s", notice.CertificateExpiring, id.Endpoint.Format(r.ID), r.EndsAt.Unix(), stage),
		Endpoint: &r.ID,
		Details: notice.CertificateDetails{
			Endpoint:    id.Endpoint.Format(r.ID),
			URL:         egress.Mask(r.URL),
			Description: r.Description,
			ExpiresAt:   r.EndsAt.UTC(),
			Expired:     stage == 0,
		},
	})
	return err
}
