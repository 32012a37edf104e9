package emit

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/event"
)

// refer puts a reference in the place of data that is too large for a request. Filters see the reference, now and
// whenever they are explained; a schema is checked with the data.
func (it *item) refer() {
	if len(it.Data) <= event.DefaultMaxPayload {
		return
	}
	contentType := ""
	if it.ContentType != nil {
		contentType = *it.ContentType
	}
	it.whole = it.Data
	it.Data, it.ContentType = event.Refer(it.whole, contentType).Encode(), new(event.ReferenceType)
}

// data is what was emitted.
func (it *item) data() []byte {
	if it.whole != nil {
		return it.whole
	}
	return it.Data
}

// storeWhole writes large data to object storage. A row names the object before it is there, so that whatever happens
// in between, a job finds the object that belongs to no event (worker/maintenance/payloads.go).
func (c *Committer) storeWhole(ctx context.Context, it *item) error {
	if err := c.db.Ingest(ctx, func(q *sql.Queries) error {
		return q.InsertLargePayload(ctx, sql.InsertLargePayloadParams{TenantID: it.TenantID, CreatedAt: it.CreatedAt, EventID: it.ID})
	}); err != nil {
		return err
	}
	if err := c.objects.Put(ctx, event.ObjectName(it.TenantID, it.ID), it.whole); err != nil {
		c.log.Error("the data of a large event could not be stored", "error", err)
		return event.ErrNotStored
	}
	return nil
}
