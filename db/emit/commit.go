package emit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Run stores emitted events until the context ends; then it rejects new requests, stores those that wait, and returns.
func (c *Committer) Run(ctx context.Context) error {
	work := context.WithoutCancel(ctx)
	go c.announce.run(ctx)
	c.makeDays(ctx)
	var p pace
	for {
		select {
		case r := <-c.queue:
			p.wait(func() int { return len(c.queue) + 1 })
			batch := c.gather(r)
			p.begin(len(batch))
			c.commit(work, batch)
		case <-ctx.Done():
			c.close()
			for r := range c.queue {
				c.commit(work, c.gather(r))
			}
			return nil
		}
	}
}

// makeDays makes the partitions of these days: workers can have been away for longer than they lie ahead.
func (c *Committer) makeDays(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := c.db.ServerTime(limited)
	if err == nil {
		err = c.db.MakeDays(limited, now)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("the partitions of the coming days could not be made", "error", err)
	}
}

func (c *Committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	close(c.queue)
}

// gather takes the first request and all others that wait, within the bounds of one transaction.
func (c *Committer) gather(first *request) []*request {
	batch := []*request{first}
	events, deliveries, bytes := size(first)
	for events < maxBatchEvents && deliveries < maxBatchDeliveries && bytes < maxBatchBytes {
		select {
		case r, open := <-c.queue:
			if !open {
				return batch
			}
			e, d, b := size(r)
			events, deliveries, bytes = events+e, deliveries+d, bytes+b
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

func size(r *request) (events, deliveries int, bytes int64) {
	for _, it := range r.waiting {
		deliveries += len(it.Deliveries)
	}
	return len(r.waiting), deliveries, r.bytes
}

// commit stores a batch of requests and releases their callers. The time limit of a request starts when it is queued,
// so a request that waited behind a failing batch does not wait for the full time again. The first request is the
// oldest.
func (c *Committer) commit(ctx context.Context, batch []*request) {
	items := make([]*item, 0, len(batch))
	again := false
	for _, r := range batch {
		items = append(items, r.waiting...)
		again = again || r.again
	}
	again = again || slices.ContainsFunc(items, func(it *item) bool { return it.given })
	again = c.store(ctx, items, batch[0].since.Add(patience), again)
	for _, r := range batch {
		c.forget(r)
		r.waiting = slices.DeleteFunc(slices.Clone(r.waiting), func(it *item) bool { return !it.stale })
		if len(r.waiting) > 0 {
			r.again = again
			r.done <- true
			continue
		}
		c.settle(r)
		r.done <- false
	}
}

// store writes items in one transaction. Items whose routes changed are marked as stale, and the others are stored. If
// the database does not respond, store tries again with the same ids until the deadline. If the database rejects the
// batch, store halves it until the bad item fails alone. again says that an earlier try, or an earlier run of the
// caller, possibly committed; so does what store returns, for the stale items.
func (c *Committer) store(ctx context.Context, items []*item, deadline time.Time, again bool) bool {
	for len(items) > 0 {
		events, routes := prepare(items)
		mark := int64(0)
		if c.before != nil {
			mark = c.before()
		}
		attempt, cancel := context.WithDeadline(ctx, deadline.Add(time.Second))
		answers, err := queue.StoreEvents(attempt, c.db, events, routes, again)
		cancel()
		switch {
		case err == nil:
			c.finish(items, answers, mark)
			return again
		case errors.Is(err, db.ErrRoutesChanged):
			items = c.current(ctx, items)
		case db.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded):
			if time.Now().After(deadline) {
				failItems(items, err)
				return again
			}
			again = true
			if errors.Is(err, db.ErrNoDay) {
				c.makeDays(ctx)
			}
			time.Sleep(50 * time.Millisecond)
		case len(items) == 1:
			c.log.Error("event rejected by the database", "event", id.Event.Format(items[0].ID), "type", items[0].Type, "error", err)
			failItems(items, err)
			return again
		default:
			half := len(items) / 2
			again = c.store(ctx, items[:half], deadline, again)
			items = items[half:]
		}
	}
	return again
}

func prepare(items []*item) ([]*queue.NewEvent, map[id.UUID]int64) {
	events := make([]*queue.NewEvent, len(items))
	routes := map[id.UUID]int64{}
	for i, it := range items {
		it.RoutingVersion = it.version
		events[i] = &it.NewEvent
		// Two requests of a tenant can have used different routes; the older version makes the check fail for both.
		if v, seen := routes[it.TenantID]; !seen || it.version < v {
			routes[it.TenantID] = it.version
		}
	}
	return events, routes
}

// current returns the items whose routes are still the database's, and marks the others as stale: all of a request, so
// that they keep their order. If the versions can't be read, all are stale: their requests read the routes, and fail if
// they can't.
func (c *Committer) current(ctx context.Context, items []*item) []*item {
	versions := map[id.UUID]int64{}
	for _, it := range items {
		versions[it.TenantID] = -1
	}
	_ = c.db.Ingest(ctx, func(q *sql.Queries) error {
		rows, err := q.RoutingVersions(ctx, slices.Collect(maps.Keys(versions)))
		for _, r := range rows {
			versions[r.ID] = r.RoutingVersion
		}
		return err
	})
	for _, it := range items {
		if it.version != versions[it.TenantID] {
			it.from.stale = true
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool {
		it.stale = it.from.stale
		return it.stale
	})
}

// finish writes results and announces the commit.
func (c *Committer) finish(items []*item, answers map[int]queue.FirstAnswer, mark int64) {
	batch := Batch{Events: make([]*queue.NewEvent, 0, len(items)), Mark: mark}
	seen := make(map[id.UUID]struct{}, len(items))
	for i, it := range items {
		if first, lost := answers[i]; lost {
			it.result.ID, it.result.Deliveries, it.result.Duplicate = first.EventID, first.Deliveries, true
			if !first.SameBody {
				*it.result = Result{Err: errIdempotencyConflict}
			}
			continue
		}
		it.result.ID, it.result.Deliveries = it.ID, it.Counted()
		if len(it.Deliveries) == 0 {
			continue
		}
		if it.only != nil {
			it.result.DeliveryID = it.Deliveries[0].ID
		}
		if it.DeliverAt != nil {
			continue // the scheduler wakes the lanes when it is due
		}
		batch.Events = append(batch.Events, &it.NewEvent)
		for k := range it.Deliveries {
			ep := it.Deliveries[k].EndpointID
			if _, known := seen[ep]; !known {
				seen[ep] = struct{}{}
				batch.Endpoints = append(batch.Endpoints, ep)
			}
		}
	}
	foreign := batch.Endpoints
	if c.onCommit != nil {
		foreign = c.onCommit(batch)
	}
	c.announce.add(foreign)
}

var errIdempotencyConflict = &fault.Error{
	Kind:   fault.Conflict,
	Code:   "idempotency_conflict",
	Detail: "This Idempotency-Key was already used with another body within 24 hours. Bodies are compared byte for byte, apart from the field idempotency_key. Use a new key for a new event, or send the original body again.",
	Fields: []fault.Field{{Name: "idempotency_key", Code: "idempotency_conflict", Detail: "used with another body"}},
}

func failItems(items []*item, err error) {
	if fault.As(err) == nil {
		err = &fault.Error{
			Kind:       fault.Unavailable,
			Code:       "database_unavailable",
			RetryAfter: 2,
			Cause:      err,
			Detail:     "The event can't be stored right now. Send the same request again.",
		}
	}
	for _, it := range items {
		*it.result = Result{Err: err}
	}
}
