package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Whole is the data of an event as it was emitted.
type Whole struct {
	Data        []byte // as the API shows it; of text, the text itself
	ContentType string
	// Object is the name of the data in object storage, and Reference what it must be; empty: Data is it.
	Object    string
	Reference event.Reference
}

// Loaded has the data that was read from object storage. It reports whether that is what was emitted.
func (w Whole) Loaded(data []byte) (Whole, bool) {
	m := signature.Message{Data: data, ContentType: w.Reference.ContentType}
	w.Data, w.ContentType = signature.AppendBody(nil, signature.Raw, m), m.BodyType(signature.Raw)
	return w, w.Reference.Holds(data)
}

// OpenLink reads the data that a signed link opens. The caller has checked the signature.
func OpenLink(ctx context.Context, q *sql.Queries, l delivery.Link) (out Whole, err error) {
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
	return wholeOf(&e)
}

// ReadWhole reads the data of an event.
func ReadWhole(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (Whole, error) {
	e, err := events.ReadRow(ctx, q, tenant, eventID)
	switch {
	case err != nil:
		return Whole{}, err
	case e.Data == nil:
		return Whole{}, event.ErrDataDeleted
	}
	return wholeOf(&e)
}

func wholeOf(e *sql.Event) (out Whole, err error) {
	if queue.IsReference(e) {
		out.Object = event.ObjectName(e.TenantID, e.ID)
		out.Reference, err = event.ParseReference(e.Data)
		return out, err
	}
	m := queue.Message(e, "", "", "")
	out.Data, out.ContentType = signature.AppendBody(nil, signature.Raw, m), m.BodyType(signature.Raw)
	return out, nil
}
