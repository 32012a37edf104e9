package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/event"
	"posthorn/domain/signature"
)

// Linked is what a signed link of a delivery opens.
type Linked struct {
	Data        []byte // as the API shows it; of text, the text itself
	ContentType string
	// Object is the name of the data in object storage, and Reference what it must be; empty: Data is it.
	Object    string
	Reference event.Reference
}

// Loaded has the data that was read from object storage. It reports whether that is what was emitted.
func (l Linked) Loaded(data []byte) (Linked, bool) {
	m := signature.Message{Data: data, ContentType: l.Reference.ContentType}
	l.Data, l.ContentType = signature.AppendBody(nil, signature.Raw, m), m.BodyType(signature.Raw)
	return l, l.Reference.Holds(data)
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
	if queue.IsReference(&e) {
		out.Object = event.ObjectName(l.Tenant, d.EventID)
		out.Reference, err = event.ParseReference(e.Data)
		return out, err
	}
	m := queue.Message(&e, "", "", "")
	out.Data, out.ContentType = signature.AppendBody(nil, signature.Raw, m), m.BodyType(signature.Raw)
	return out, nil
}
