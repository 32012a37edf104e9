package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/signature"
)

// Linked is what a signed link of a delivery opens.
type Linked struct {
	Data        []byte // as the API shows it; of text, the text itself
	ContentType string
}

// OpenLink reads the data that a signed link opens. The caller has checked the signature.
func OpenLink(ctx context.Context, q *sql.Queries, l delivery.Link) (out Linked, err error) {
	d, err := q.LinkedDelivery(ctx, sql.LinkedDeliveryParams{TenantID: l.Tenant, CreatedAt: l.Delivery.Time(), ID: l.Delivery})
	if db.IsNoRows(err) {
		err = delivery.ErrLinkEnded
	}
	if err == nil {
		err = delivery.LinkFault(d.Status.Shown(d.Reason), d.SettledAt, d.Now)
	}
	if err != nil {
		return out, err
	}
	e, err := q.GetEvent(ctx, sql.GetEventParams{TenantID: l.Tenant, CreatedAt: d.EventID.Time(), ID: d.EventID})
	switch {
	case db.IsNoRows(err):
		return out, delivery.ErrLinkEnded
	case err != nil:
		return out, err
	case e.Data == nil:
		return out, delivery.ErrLinkVoid
	}
	m := queue.Message(&e, "", "", "")
	return Linked{signature.AppendBody(nil, signature.Raw, m), m.BodyType(signature.Raw)}, nil
}
