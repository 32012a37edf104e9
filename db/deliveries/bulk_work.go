package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// bulkWork is a job within one transaction: plan selects the next chunk, apply does it.
type bulkWork struct {
	q       *sql.Queries
	tenant  id.UUID
	kind    bulk.Kind
	filter  bulk.Filter
	floor   time.Time // older rows are hidden
	ceiling time.Time // younger rows came after the job, perhaps from it
	job     *id.UUID
	sample  bool // a chunk ends after the first that is sent

	endpoint id.UUID // of a drop
	oldest   int64   // the oldest transaction that ran when a drop read its rows
}

// bulkPart is a chunk: the rows to change, those to leave alone with the reason, and the position after it.
type bulkPart struct {
	rows     []show.Delivery
	again    []againDelivery
	events   []id.UUID             // to be expunged
	ids      []id.UUID             // of deliveries, if only their ids are known
	queued   map[id.UUID]sql.Queue // the rows' locked queue rows
	orders   map[id.UUID]string
	keys     map[id.UUID]*string // of the rows' events
	made     []id.UUID           // the deliveries that apply created
	skipped  map[bulk.Skip]int64
	position id.UUID
	end      bool
	failure  string // ends the job: the reason in plain words
}

func newPart(after id.UUID) bulkPart {
	return bulkPart{skipped: map[bulk.Skip]int64{}, position: after}
}

func (p *bulkPart) count() int64 {
	return int64(len(p.rows) + len(p.again) + len(p.events) + len(p.ids))
}

func (p *bulkPart) skip(why bulk.Skip) { p.skipped[why]++ }

func newBulkWork(ctx context.Context, q *sql.Queries, tenant id.UUID, kind bulk.Kind, f bulk.Filter, ceiling time.Time) (*bulkWork, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	w := &bulkWork{q: q, tenant: tenant, kind: kind, filter: f, floor: floor, ceiling: ceiling}
	return w, nil
}

// plan selects the next chunk after a position. With lock it locks the rows on which the decision depends, since the
// chunk is done next.
func (w *bulkWork) plan(ctx context.Context, after id.UUID, most int, lock bool) (bulkPart, error) {
	switch w.kind {
	case bulk.ReplayMissing:
		return w.planMissing(ctx, after, most, lock)
	case bulk.Drop:
		return w.planDrop(ctx, most)
	case bulk.Expunge:
		return w.planExpunge(ctx, after, most)
	}
	part, err := w.pick(ctx, after, most)
	if err != nil {
		return part, err
	}
	rows := part.rows
	part.rows = rows[:0:0]
	switch w.kind {
	case bulk.Replay:
		err = w.planReplay(ctx, &part, rows, lock)
	case bulk.RetryNow, bulk.Cancel:
		err = w.planWaiting(ctx, &part, rows, lock)
	case bulk.Archive, bulk.Unarchive:
		for _, d := range rows {
			part.take(d, bulk.SkipArchive(d.Status, d.Archived(), w.kind == bulk.Archive))
		}
	}
	return part, err
}

// take adds a row to the chunk, or counts why it is left alone.
func (p *bulkPart) take(d show.Delivery, why bulk.Skip) {
	if why != bulk.SkipNone {
		p.skip(why)
		return
	}
	p.rows = append(p.rows, d)
}

// pick reads the next rows that the filter selects, oldest first.
func (w *bulkWork) pick(ctx context.Context, after id.UUID, most int) (bulkPart, error) {
	part := newPart(after)
	if len(w.filter.IDs) > 0 {
		return part, w.pickIDs(ctx, &part, most)
	}
	list, err := listOptions(w.filter)
	if err != nil {
		return part, err
	}
	if list.Until.IsZero() || list.Until.After(w.ceiling) {
		list.Until = w.ceiling
	}
	list.Archived = w.kind == bulk.Unarchive || w.filter.Archived
	list.Ascending, list.Limit = true, most
	if !after.IsZero() {
		list.After = after[:]
	}
	page, err := List(ctx, w.q, w.tenant, list)
	if err != nil {
		return part, err
	}
	part.rows, part.end = page.Rows, page.Next == nil
	if page.Next != nil {
		part.position = id.UUID(page.Next)
	}
	return part, nil
}

// pickIDs reads the next of the deliveries that the filter names. It skips unknown ids.
func (w *bulkWork) pickIDs(ctx context.Context, part *bulkPart, most int) error {
	ids := make([]id.UUID, 0, len(w.filter.IDs))
	for _, text := range w.filter.IDs {
		if deliveryID, err := id.Delivery.Parse(text); err == nil && deliveryID.Compare(part.position) > 0 &&
			!deliveryID.Time().Before(w.floor) {
			ids = append(ids, deliveryID)
		}
	}
	slices.SortFunc(ids, id.UUID.Compare)
	ids = slices.Compact(ids)
	part.end = len(ids) <= most
	ids = ids[:min(len(ids), most)]
	if len(ids) == 0 {
		return nil
	}
	rows, err := readDeliveries(ctx, w.q, w.tenant, ids)
	part.rows, part.position = rows, ids[len(ids)-1]
	return err
}

// listOptions is the list that a filter of deliveries describes.
func listOptions(f bulk.Filter) (l ListOptions, err error) {
	l = ListOptions{Status: f.Status, EventType: f.Type, Channel: f.Channel}
	l.Since, l.Until = db.OrZero(f.Since), db.OrZero(f.Until)
	if f.Endpoint != "" {
		l.Endpoint, err = id.Endpoint.Parse(f.Endpoint)
	}
	return l, err
}

// apply does a chunk that was planned with its locks.
func (w *bulkWork) apply(ctx context.Context, part *bulkPart) (err error) {
	if part.count() == 0 {
		return nil
	}
	switch w.kind {
	case bulk.Replay:
		return w.applyReplay(ctx, part)
	case bulk.ReplayMissing:
		part.made, err = sendAgain(ctx, w.q, w.tenant, part.again, w.job)
		return err
	case bulk.RetryNow:
		return w.applyRetry(ctx, part)
	case bulk.Cancel:
		return w.applyCancel(ctx, part, delivery.None)
	case bulk.Drop:
		if err := cancelMany(ctx, w.q, w.tenant, part.ids, part.queued, delivery.None); err != nil {
			return err
		}
		return wakeLanes(ctx, w.q, w.tenant, []id.UUID{w.endpoint})
	case bulk.Expunge:
		return w.applyExpunge(ctx, part)
	case bulk.Archive, bulk.Unarchive:
		return w.applyArchive(ctx, part)
	}
	return nil
}

// over reports whether a job that reached the end is done, or how long it rests before it reads again.
func (w *bulkWork) over(ctx context.Context, job *sql.BulkJob) (over bool, rest time.Duration, err error) {
	switch w.kind {
	case bulk.ReplayMissing:
		over, rest = w.overMissing(job)
		return over, rest, nil
	case bulk.Drop:
		return w.overDrop(ctx, job)
	}
	return true, 0, nil
}

func idsOf(rows []show.Delivery) []id.UUID {
	ids := make([]id.UUID, len(rows))
	for i, d := range rows {
		ids[i] = d.ID
	}
	return ids
}

// endpointsOf returns the endpoints of rows, each once, in order.
func endpointsOf(rows []show.Delivery) []id.UUID {
	ids := make([]id.UUID, len(rows))
	for i, d := range rows {
		ids[i] = d.Endpoint.ID
	}
	slices.SortFunc(ids, id.UUID.Compare)
	return slices.Compact(ids)
}
