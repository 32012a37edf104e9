// Package emit turns emissions into stored events: it routes each to the endpoints that subscribe, gathers concurrent
// requests into one transaction, and returns only after that transaction has committed (group commit).
//
// Emit routes in the caller's goroutine, puts the batch on a bounded queue, and waits. One committer takes everything
// that is queued, stores it, and then takes what has gathered in the meantime: a single request commits immediately,
// and batches grow by themselves under load. The queue is bounded in rows and bytes; beyond the bounds Emit returns
// busy immediately.
//
// The committer serves all tenants, so no work of a tenant's size runs in it: no filter, no schema check. Where a
// tenant's routes changed after a request was routed, the committer gives the request back to its own goroutine.
package emit

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/schema"
	"posthorn/domain/trace"
)

// Bounds of one transaction and of the queue.
const (
	maxBatchEvents     = 1000
	maxBatchDeliveries = 5000
	maxBatchBytes      = 8 << 20
	maxWaitingEvents   = 20000
	maxWaitingBytes    = 64 << 20
	// How long the committer tries a database that does not respond before callers get an error: within the 5 s that a
	// request can wait.
	patience = 3 * time.Second
	// How often the routes of one request can change before they were used.
	maxReroutes = 100
)

// Item is one emission of a request.
type Item struct {
	Emission event.Emission
	BodyHash [32]byte      // SHA-256 of the request body without its idempotency key, compared under that key
	Whole    [32]byte      // SHA-256 of the whole body, which earlier versions stored
	Only     *id.UUID      // the only endpoint, whatever it subscribes to: a test event
	Trace    trace.Context // of the event; the zero value is none
	// Of the event; zero draws an id. If the id was stored before, the stored event does not change.
	ID id.UUID
}

// Keyed is an item whose repeats are recognized by its idempotency key and its body.
func Keyed(e event.Emission, body []byte) Item {
	return Item{Emission: e, BodyHash: e.BodyHash(body), Whole: sha256.Sum256(body)}
}

// Result is the outcome of an item. Err is a *fault.Error; its codes are tenant_suspended, unknown_event_type,
// schema_mismatch, payload_too_large, events_per_second_limit, events_per_month_limit, idempotency_conflict, not_found,
// busy and database_unavailable.
type Result struct {
	ID         id.UUID
	DeliveryID id.UUID // of a test event
	Deliveries int
	Duplicate  bool              // the first response under the same idempotency key
	Warnings   []schema.Mismatch // mismatches with a schema that only warns
	Err        error
}

// Batch is the content of a commit, for the worker in the same process.
type Batch struct {
	Events    []*queue.NewEvent // the worker need not read their payloads and queue rows again
	Endpoints []id.UUID         // with new rows, each once
	Mark      int64             // what BeforeCommit returned before their transaction began
}

// Config holds what a committer needs.
type Config struct {
	DB  *db.DB
	Log *slog.Logger
	// OnCommit passes a commit to the worker of this process. It returns the endpoints that other processes are
	// notified of. Nil: all endpoints.
	OnCommit func(Batch) []id.UUID
	// Tracer makes a span of each emission that is sampled. Nil: none.
	Tracer oteltrace.Tracer
	// Objects keeps the data of events that are larger than event.DefaultMaxPayload. Nil: there are none.
	Objects Objects
	// BeforeCommit is called before each transaction; OnCommit gets what it returns. Nil: 0.
	BeforeCommit func() int64
}

// Objects keeps objects under names with slashes, durably.
type Objects interface {
	Put(ctx context.Context, name string, body []byte) error
}

// Committer stores events. Create one with New and call Run; Emit is safe for concurrent use.
type Committer struct {
	db       *db.DB
	log      *slog.Logger
	onCommit func(Batch) []id.UUID
	before   func() int64
	tracer   oteltrace.Tracer // nil: off
	routes   *routes
	quotas   *quotas
	objects  Objects
	queue    chan *request
	waiting  atomic.Int64 // events
	bytes    atomic.Int64
	announce *announcer
	mu       sync.RWMutex // held for reading while a request is queued, for writing to close
	closed   bool
}

// request is one call of Emit that waits for the committer.
type request struct {
	tenant id.UUID
	items  []*item
	// What the committer has to store of them: all, and later those that it gave back and that were routed again.
	waiting []*item
	bytes   int64 // of what waits
	since   time.Time
	again   bool // an earlier try possibly committed what waits
	stale   bool // the routes of some of what waits changed
	// The committer sends once for each time that the request is queued, and never waits: true if it gives back what
	// waits, false if the request is finished.
	done chan bool
	// How many of the items, from the first on, the tenant's quotas granted, if it has any.
	granted int
	charged bool
}

// item is one event of a request; the caller owns the result once its request is done.
type item struct {
	queue.NewEvent
	only    *id.UUID
	whole   []byte         // large data, whose reference is in its place; nil: the data is whole
	schema  *schema.Schema // the one that checked the item
	given   bool           // the id was given, so the event can be stored already
	version int64          // of the routes that were used
	from    *request
	stale   bool // it is given back
	result  *Result
}

// New creates a committer. It stores nothing before Run.
func New(c Config) *Committer {
	return &Committer{
		db:       c.DB,
		log:      c.Log,
		onCommit: c.OnCommit,
		before:   c.BeforeCommit,
		tracer:   c.Tracer,
		objects:  c.Objects,
		routes:   newRoutes(c.DB),
		quotas:   newQuotas(c.DB),
		queue:    make(chan *request, 8192),
		announce: newAnnouncer(c.DB, c.Log),
	}
}

var (
	errBusy = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "busy",
		RetryAfter: 1,
		Detail:     "The server is overloaded: too many events are waiting to be stored. Nothing in this request was stored. Send it again in a second.",
	}
	errClosing = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "busy",
		RetryAfter: 1,
		Detail:     "This server is shutting down. Nothing in this request was stored. Send it again.",
	}
)

// Emit stores the items of one tenant and returns a result for each, in order, after they are durable. Each item can
// fail by itself. If the context ends first, the items can still be stored: an idempotency key makes a repeat safe.
func (c *Committer) Emit(ctx context.Context, tenant id.UUID, items []Item) []Result {
	if c.tracer == nil {
		return c.emit(ctx, tenant, items)
	}
	spans := c.startSpans(ctx, tenant, items)
	results := c.emit(ctx, tenant, items)
	endSpans(spans, results)
	return results
}

func (c *Committer) emit(ctx context.Context, tenant id.UUID, items []Item) []Result {
	results := make([]Result, len(items))
	r := &request{tenant: tenant, done: make(chan bool, 1)}
	route, err := c.routes.of(ctx, tenant)
	if err != nil {
		return fail(results, err)
	}
	fresh := false
	for i := range items {
		it := newItem(tenant, &items[i], &results[i])
		if c.objects != nil {
			it.refer()
		}
		err := route.fanOut(ctx, it)
		if ctx.Err() != nil {
			return fail(make([]Result, len(items)), errEnded(ctx))
		}
		if err != nil && !fresh {
			// StoreEvents checks accepted items against the database's version of the routes. Nothing checks a
			// rejection, so the routes are read again first.
			if route, err = c.routes.refresh(ctx, tenant); err != nil {
				return fail(make([]Result, len(items)), err)
			}
			fresh = true
			err = route.fanOut(ctx, it)
		}
		if err == nil && it.whole != nil {
			err = c.storeWhole(ctx, it)
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		it.from = r
		r.items = append(r.items, it)
		r.bytes += int64(len(it.Data))
	}
	c.admit(ctx, route.limits, r)
	return c.await(ctx, r, results)
}

// await queues a request until the committer has stored it. What the committer gives back is routed again.
func (c *Committer) await(ctx context.Context, r *request, results []Result) []Result {
	r.waiting = r.items
	for try := 0; len(r.waiting) > 0; try++ {
		if err := c.enqueue(r); err != nil {
			failItems(r.waiting, err)
			break
		}
		select {
		case stale := <-r.done:
			if !stale {
				return results
			}
			if try == maxReroutes {
				failItems(r.waiting, db.ErrRoutesChanged)
				r.waiting = nil
				break
			}
			c.reroute(ctx, r)
		case <-ctx.Done():
			// The committer still writes to the results and settles the request, so the caller gets new results.
			go func() {
				if stale := <-r.done; stale {
					failItems(r.waiting, errEnded(ctx))
					c.settle(r)
				}
			}()
			return fail(make([]Result, len(results)), errEnded(ctx))
		}
	}
	c.settle(r)
	return results
}

// reroute routes what the committer gave back by newer routes. Items that can no longer be emitted fail.
func (c *Committer) reroute(ctx context.Context, r *request) {
	oldest := r.waiting[0].version
	for _, it := range r.waiting {
		oldest = min(oldest, it.version)
	}
	route, err := c.routes.newer(ctx, r.tenant, oldest)
	if err != nil {
		failItems(r.waiting, err)
		r.waiting, r.bytes = nil, 0
		return
	}
	kept := r.waiting[:0:0]
	r.bytes, r.stale = 0, false
	for _, it := range r.waiting {
		it.stale = false
		if it.version != route.version {
			if err := route.fanOut(ctx, it); err != nil {
				it.result.Err = err
				continue
			}
		}
		kept = append(kept, it)
		r.bytes += int64(len(it.Data))
	}
	r.waiting = kept
}

// errEnded is the error of a request whose time ended.
func errEnded(ctx context.Context) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "timeout",
		RetryAfter: 1,
		Cause:      ctx.Err(),
		Detail:     "The request ended before its events were stored. They could still be stored. Send it again with the same Idempotency-Key.",
	}
}

func newItem(tenant id.UUID, from *Item, result *Result) *item {
	m := &from.Emission
	eventID := from.ID
	if eventID.IsZero() {
		eventID = db.NewID()
	}
	it := &item{only: from.Only, given: !from.ID.IsZero(), result: result}
	it.Event = sql.Event{
		TenantID:  tenant,
		CreatedAt: eventID.Time(),
		ID:        eventID,
		Type:      m.Type,
		Data:      m.Data,
		Channels:  m.Channels,
	}
	if m.Key != "" {
		it.Key = &m.Key
	}
	if m.EventID != "" {
		it.ExternalID = &m.EventID
	}
	if m.EventIDUnsent {
		it.ExternalIDUnsent = &m.EventIDUnsent
	}
	if m.ContentType != "" {
		it.ContentType = &m.ContentType
	}
	if m.Version != "" {
		it.Version = &m.Version
	}
	if !m.OccurredAt.IsZero() {
		it.OccurredAt = &m.OccurredAt
	}
	if !m.DeliverAt.IsZero() {
		it.DeliverAt = &m.DeliverAt
	}
	if !m.ExpiresAt.IsZero() {
		it.ExpiresAt = &m.ExpiresAt
	}
	if from.Trace.Valid() {
		it.Traceparent = new(from.Trace.Stored())
	}
	it.IdempotencyKey, it.BodyHash, it.WholeHash = m.IdempotencyKey, from.BodyHash, from.Whole
	return it
}

func (c *Committer) enqueue(r *request) error {
	n := int64(len(r.waiting))
	r.since = time.Now()
	if events, bytes := c.waiting.Add(n), c.bytes.Add(r.bytes); events > maxWaitingEvents || bytes > maxWaitingBytes {
		c.forget(r)
		return errBusy
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		c.forget(r)
		return errClosing
	}
	select {
	case c.queue <- r:
		return nil
	default:
		c.forget(r)
		return errBusy
	}
}

// forget subtracts a request from the bounds.
func (c *Committer) forget(r *request) {
	c.waiting.Add(-int64(len(r.waiting)))
	c.bytes.Add(-r.bytes)
}

func fail(results []Result, err error) []Result {
	for i := range results {
		if results[i].Err == nil {
			results[i] = Result{Err: err}
		}
	}
	return results
}
