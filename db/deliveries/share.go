package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// NewShare describes a read-only link to a delivery.
type NewShare struct {
	Tenant, Delivery id.UUID
	Brand, Accent    string
	Seconds          int // until it expires
	By               db.Author
}

// CreateShare stores a link to a delivery that the tenant's retention shows, and returns its token, which is not
// stored.
func CreateShare(ctx context.Context, q *sql.Queries, n NewShare) (share show.DeliveryShare, token string, err error) {
	if _, err := Read(ctx, q, n.Tenant, n.Delivery); err != nil {
		return share, "", err
	}
	open, err := Shares(ctx, q, n.Tenant, n.Delivery)
	if err == nil && len(open) >= delivery.MaxShares {
		err = delivery.ErrShares
	}
	if err != nil {
		return share, "", err
	}
	token, hash := accounts.NewToken()
	shareID := db.NewID()
	row, err := q.InsertShare(ctx, sql.InsertShareParams{
		TenantID:   n.Tenant,
		ID:         shareID,
		Hash:       hash,
		DeliveryID: n.Delivery,
		Brand:      n.Brand,
		Accent:     n.Accent,
		CreatedAt:  shareID.Time(),
		Lives:      int32(n.Seconds),
	})
	if err != nil {
		return share, "", err
	}
	share = shareOf(row)
	return share, token, auditShare(ctx, q, n.By, "delivery.share", n.Tenant, share)
}

// auditShare writes an entry about a link to a delivery.
func auditShare(ctx context.Context, q *sql.Queries, by db.Author, action string, tenant id.UUID, s show.DeliveryShare) error {
	details := map[string]any{"share": id.Share.Format(s.ID)}
	if !s.ExpiresAt.IsZero() {
		details["expires_at"] = s.ExpiresAt
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  action,
		Kind:    "delivery",
		Object:  id.Delivery.Format(s.DeliveryID),
		Details: details,
	})
}

// Shares reads the links to a delivery that can be opened, newest first.
func Shares(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) ([]show.DeliveryShare, error) {
	rows, err := q.OpenShares(ctx, sql.OpenSharesParams{TenantID: tenant, DeliveryID: deliveryID, Limit: delivery.MaxShares})
	shares := make([]show.DeliveryShare, len(rows))
	for i, r := range rows {
		shares[i] = shareOf(r)
	}
	return shares, err
}

// RevokeShare ends a link to a delivery. A link that was revoked before is fault.ErrNotFound.
func RevokeShare(ctx context.Context, q *sql.Queries, tenant, deliveryID, shareID id.UUID, by db.Author) error {
	n, err := q.RevokeShare(ctx, sql.RevokeShareParams{TenantID: tenant, ID: shareID, DeliveryID: deliveryID})
	if err == nil && n == 0 {
		err = fault.ErrNotFound
	}
	if err != nil {
		return err
	}
	return auditShare(ctx, q, by, "delivery.share_revoke", tenant, show.DeliveryShare{ID: shareID, DeliveryID: deliveryID})
}

// OpenShare finds the link of a token in its tenant and notes its first opening. Without one, or if the tenant is not
// active, it is delivery.ErrShareGone.
func OpenShare(ctx context.Context, q *sql.Queries, tenant id.UUID, token, address string) (s show.DeliveryShare, name string, err error) {
	t, err := accounts.FindTenant(ctx, q, tenant)
	if db.IsMissing(err) || err == nil && t.State != account.TenantActive {
		return s, "", delivery.ErrShareGone
	}
	if err != nil {
		return s, "", err
	}
	row, err := q.FindShare(ctx, tenant, accounts.HashToken(token))
	if db.IsNoRows(err) {
		err = delivery.ErrShareGone
	}
	if err != nil {
		return s, "", err
	}
	s = shareOf(row)
	n, err := q.MarkShareOpened(ctx, tenant, s.ID)
	if err == nil && n > 0 {
		by := db.Author{Kind: "system", Address: address} // whoever has the link; the details name it
		err = auditShare(ctx, q, by, "delivery.share_open", tenant, s)
	}
	return s, t.Name, err
}

func shareOf(row sql.DeliveryShare) show.DeliveryShare {
	return show.DeliveryShare{
		ID:         row.ID,
		DeliveryID: row.DeliveryID,
		Brand:      row.Brand,
		Accent:     row.Accent,
		CreatedAt:  row.CreatedAt,
		ExpiresAt:  row.ExpiresAt,
		OpenedAt:   db.OrZero(row.OpenedAt),
	}
}
