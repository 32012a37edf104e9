package queue

import (
	"context"
	"errors"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// ChannelOutbox is notified by posthorn.emit.
const ChannelOutbox = "posthorn_outbox"

// maxRelayTries is after how many tries a row is rejected that fails again and again while others do not: about a
// quarter of an hour.
const maxRelayTries = 20

// ErrNotYet says that a row was not tried. It stays as it is, so that it keeps its place in the order.
var ErrNotYet = errors.New("not tried yet")

// RelayOutbox reads rows of the outbox, passes them to store, and deletes those that were stored or rejected
// permanently. Rejected rows are kept with their reason. Rows of the tenants in without stay. store returns an error
// for each row: nil if the row's event is stored, ErrNotYet if it was not tried. One relay works at a time in all
// processes, so that a tenant's events keep their order. It returns how many rows it read.
//
// store commits by itself. If this transaction fails afterwards, store gets the same rows again, and must recognize ids
// that it has stored.
func RelayOutbox(ctx context.Context, d *db.DB, most int, without []id.UUID, store func([]sql.Outbox) []error) (n int, err error) {
	var waits bool
	if err := d.Worker(ctx, func(q *sql.Queries) error {
		waits, err = q.OutboxWaits(ctx)
		return err
	}); err != nil || !waits {
		return 0, err
	}
	_, err = d.Periodic(ctx, "outbox", 0, func(q *sql.Queries) error {
		without := append([]id.UUID{}, without...) // not null
		rows, err := q.TakeOutbox(ctx, without, int32(most))
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)
		return settleOutbox(ctx, q, rows, store(rows))
	})
	return n, err
}

func settleOutbox(ctx context.Context, q *sql.Queries, rows []sql.Outbox, errs []error) error {
	var done, later []id.UUID
	for i, row := range rows {
		if errors.Is(errs[i], ErrNotYet) {
			continue
		}
		e := fault.As(errs[i])
		passing := e != nil && (e.Kind == fault.Unavailable || e.Kind == fault.Limited)
		temporary := errs[i] != nil && (e == nil || passing || e.Kind == fault.Internal)
		switch {
		case errs[i] == nil:
		// Nothing is wrong with a message of a source that waits for a quota: until then its source takes only some
		// more.
		case temporary && (row.Tries < maxRelayTries || passing && row.SourceID != nil):
			later = append(later, row.ID)
			continue
		default:
			p := sql.RejectOutboxParams{ID: row.ID, Code: "internal", Detail: "The event could not be stored."}
			if e != nil {
				p.Code, p.Detail = e.Code, e.Detail
			}
			if err := q.RejectOutbox(ctx, p); err != nil {
				return err
			}
		}
		done = append(done, row.ID)
	}
	if len(later) > 0 {
		if err := q.PostponeOutbox(ctx, later); err != nil {
			return err
		}
	}
	return q.DeleteOutbox(ctx, done)
}
