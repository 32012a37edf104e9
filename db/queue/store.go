package queue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/filter"
	"posthorn/domain/id"
)

// Queue states, as in the schema: the owner of a lane can send ready rows; the others wait.
const (
	Ready     int16 = 0
	Scheduled int16 = 1 // a retry that is not due
	Blocked   int16 = 2 // behind an older delivery of its key
	Deferred  int16 = 3 // deliver_at; takes its place in the order when due
)

// StrictKey is the single ordering key of an endpoint with strict ordering.
const StrictKey = "*"

// NewEvent is an event to be stored, with its deliveries.
type NewEvent struct {
	sql.Event
	Deliveries     []NewDelivery
	Aside          int    // of them: to listeners of developers, which no response counts
	Logged         bool   // the tenant has feeds, or had
	Guarded        bool   // an endpoint of the tenant catches up
	IdempotencyKey string // empty: none
	BodyHash       [32]byte
	WholeHash      [32]byte // the hash that earlier versions stored for the same body
}

// Counted is how many deliveries the response to the producer names.
func (e *NewEvent) Counted() int { return len(e.Deliveries) - e.Aside }

// NewDelivery is one endpoint that an event goes to.
type NewDelivery struct {
	ID         id.UUID
	EndpointID id.UUID
	OrderKey   string // empty: unordered
	// Seq is the number of its queue row once it is stored and ready. 0: unknown, or the row waits for its time or its
	// key.
	Seq       int64
	ExpiresAt *time.Time // after which it is not sent; nil: never
}

// FirstAnswer is the result of the first request under an idempotency key.
type FirstAnswer struct {
	EventID    id.UUID
	Deliveries int
	SameBody   bool
}

// StoreEvents writes events, their idempotency keys, deliveries, queue rows and ledger entries in one transaction, and
// returns after its commit. routes are the routing versions that the fan-out used: if the database has newer ones, it
// returns ErrRoutesChanged. It does not store events whose key was used before; the answer by index holds the first
// event's result.
//
// again says that an earlier call with the same events had an unknown result: what it stored does not change.
func StoreEvents(ctx context.Context, d *db.DB, events []*NewEvent, routes map[id.UUID]int64, again bool) (map[int]FirstAnswer, error) {
	conn, err := d.Pool().Acquire(ctx)
	if err != nil {
		return nil, db.Translate(err)
	}
	defer conn.Release()
	if !again && !slices.ContainsFunc(events, func(e *NewEvent) bool { return e.IdempotencyKey != "" }) {
		return nil, db.Translate(d.Pipeline(ctx, conn.Conn(), db.RoleIngest, func(b *pgx.Batch) {
			queueAssertRoutes(b, routes)
			queueEvents(b, events, sql.InsertEvents)
			queueGuard(b, events, routes)
			queueFanOut(b, events)
		}))
	}
	answers, err := storeCarefully(ctx, d, conn.Conn(), events, routes, again)
	if again {
		forgetNumbers(events)
	}
	if err != nil && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
	}
	return answers, db.Translate(err)
}

// storeCarefully is StoreEvents in two round trips: the first finds the events to store, the second stores what belongs
// to them.
func storeCarefully(
	ctx context.Context,
	d *db.DB,
	conn *pgx.Conn,
	events []*NewEvent,
	routes map[id.UUID]int64,
	again bool,
) (map[int]FirstAnswer, error) {
	claims, wonBy := claimsOf(events)
	stored := make(map[id.UUID]bool, len(events))
	first, err := d.Begin(ctx, conn, db.SetWriter, db.RoleIngest, "")
	if err != nil {
		return nil, err
	}
	if again {
		first.Queue(leaveATrace)
	}
	queueAssertRoutes(first, routes)
	if len(claims.Keys) > 0 {
		first.Queue(sql.ClaimIdempotencyKeys, db.Args(claims)...).Query(collectIDs(wonBy))
	}
	if err := db.Send(ctx, conn, first); err != nil {
		return nil, err
	}
	answers, err := firstAnswers(ctx, conn, events, wonBy)
	if err != nil {
		return nil, err
	}
	winners := make([]*NewEvent, 0, len(events))
	for i, e := range events {
		if _, lost := answers[i]; !lost {
			winners = append(winners, e)
		}
	}
	if again && len(winners) > 0 {
		b := &pgx.Batch{}
		queueEvents(b, winners, sql.InsertEventsOnce).Query(collectIDs(stored))
		if err := db.Send(ctx, conn, b); err != nil {
			return nil, err
		}
		winners = slices.DeleteFunc(winners, func(e *NewEvent) bool { return !stored[e.ID] })
	}
	second := &pgx.Batch{}
	if len(winners) > 0 {
		if !again {
			queueEvents(second, winners, sql.InsertEvents)
		}
		queueGuard(second, winners, routes)
		queueFanOut(second, winners)
	}
	second.Queue("commit")
	return answers, db.Send(ctx, conn, second)
}

// leaveATrace writes a record into the write-ahead log. What an earlier try committed can still be waiting for its
// synchronous replica, and a killed server makes it visible before that. A transaction that finds all of it and writes
// nothing would not wait for the replica. (A transaction that finds a used idempotency key locks its row, which is a
// write.)
const leaveATrace = "SELECT pg_logical_emit_message(true, 'posthorn', '')"

// claimsOf lists the keys of a batch, each once: of two events with one key the first is stored.
func claimsOf(events []*NewEvent) (sql.ClaimIdempotencyKeysParams, map[id.UUID]bool) {
	type claim struct {
		tenant id.UUID
		key    string
	}
	var p sql.ClaimIdempotencyKeysParams
	asked := map[claim]bool{}
	for _, e := range events {
		if e.IdempotencyKey == "" || asked[claim{e.TenantID, e.IdempotencyKey}] {
			continue
		}
		asked[claim{e.TenantID, e.IdempotencyKey}] = true
		p.Tenants = append(p.Tenants, e.TenantID)
		p.Keys = append(p.Keys, e.IdempotencyKey)
		p.Hashes = append(p.Hashes, e.BodyHash[:])
		p.Events = append(p.Events, e.ID)
		p.Deliveries = append(p.Deliveries, int32(e.Counted()))
	}
	return p, map[id.UUID]bool{}
}

// firstAnswers finds the first results for events with a used key. An event that finds its own id under its key was
// stored by an earlier try of this batch.
func firstAnswers(ctx context.Context, conn *pgx.Conn, events []*NewEvent, won map[id.UUID]bool) (map[int]FirstAnswer, error) {
	answers := map[int]FirstAnswer{}
	var tenants []id.UUID
	var keys []string
	for _, e := range events {
		if e.IdempotencyKey != "" && !won[e.ID] {
			tenants = append(tenants, e.TenantID)
			keys = append(keys, e.IdempotencyKey)
		}
	}
	if len(keys) == 0 {
		return answers, nil
	}
	rows, err := sql.New(conn).IdempotencyAnswers(ctx, tenants, keys)
	if err != nil {
		return nil, err
	}
	type claim struct {
		tenant id.UUID
		key    string
	}
	first := make(map[claim]sql.IdempotencyAnswersRow, len(rows))
	for _, r := range rows {
		first[claim{r.TenantID, r.Key}] = r
	}
	for i, e := range events {
		r, ok := first[claim{e.TenantID, e.IdempotencyKey}]
		if !ok || won[e.ID] || r.EventID == e.ID {
			continue
		}
		answers[i] = FirstAnswer{EventID: r.EventID, Deliveries: int(r.Deliveries), SameBody: e.hashedAs(r.BodyHash)}
	}
	return answers, nil
}

// hashedAs reports whether a stored hash is the hash of the event's body.
func (e *NewEvent) hashedAs(stored []byte) bool {
	return string(stored) == string(e.BodyHash[:]) || string(stored) == string(e.WholeHash[:])
}

func collectIDs(into map[id.UUID]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var uuid id.UUID
			if err := rows.Scan(&uuid); err != nil {
				return err
			}
			into[uuid] = true
		}
		return rows.Err()
	}
}

func queueAssertRoutes(b *pgx.Batch, routes map[id.UUID]int64) {
	tenants, versions := make([]id.UUID, 0, len(routes)), make([]int64, 0, len(routes))
	for t, v := range routes {
		tenants = append(tenants, t)
		versions = append(versions, v)
	}
	b.Queue(sql.AssertRoutes, tenants, versions)
}

func queueEvents(b *pgx.Batch, events []*NewEvent, statement string) *pgx.QueuedQuery {
	n := len(events)
	p := eventColumns{
		Tenants:         make([]id.UUID, n),
		Created:         make([]time.Time, n),
		Ids:             make([]id.UUID, n),
		Types:           make([]string, n),
		Datas:           make([][]byte, n),
		Keys:            make([]string, n),
		Channels:        make([]string, n),
		Versions:        make([]string, n),
		Occurred:        make([]*time.Time, n),
		Deliver:         make([]*time.Time, n),
		RoutingVersions: make([]int64, n),
		ExternalIds:     make([]string, n),
		Traceparents:    make([]string, n),
		ContentTypes:    make([]string, n),
		Unsent:          make([]bool, n),
		Expires:         make([]*time.Time, n),
	}
	for i, e := range events {
		p.Tenants[i], p.Created[i], p.Ids[i], p.Types[i], p.Datas[i] = e.TenantID, e.CreatedAt, e.ID, e.Type, e.Data
		p.RoutingVersions[i] = e.RoutingVersion
		p.Channels[i] = strings.Join(e.Channels, "\x1f")
		if e.Key != nil {
			p.Keys[i] = *e.Key
		}
		if e.Version != nil {
			p.Versions[i] = *e.Version
		}
		if e.ExternalID != nil {
			p.ExternalIds[i] = *e.ExternalID
		}
		if e.Traceparent != nil {
			p.Traceparents[i] = *e.Traceparent
		}
		if e.ContentType != nil {
			p.ContentTypes[i] = *e.ContentType
		}
		p.Unsent[i] = e.ExternalIDUnsent != nil
		p.Occurred[i], p.Deliver[i], p.Expires[i] = e.OccurredAt, e.DeliverAt, e.ExpiresAt
	}
	return b.Queue(statement, db.Args(p)...)
}

// queueGuard compares the versions of routes again, for tenants of which an endpoint catches up: from then on the
// routes stay until the commit.
func queueGuard(b *pgx.Batch, events []*NewEvent, routes map[id.UUID]int64) {
	guarded := map[id.UUID]int64{}
	for _, e := range events {
		if e.Guarded {
			guarded[e.TenantID] = routes[e.TenantID]
		}
	}
	if len(guarded) > 0 {
		b.Queue(sql.ShareLogs, slices.Collect(maps.Keys(guarded)))
		queueAssertRoutes(b, guarded)
	}
}

// queueLog enters events in the logs of their tenants, in their order, a row for each tenant.
func queueLog(b *pgx.Batch, events []*NewEvent) {
	logged := make([]*NewEvent, 0, len(events))
	for _, e := range events {
		if e.Logged {
			logged = append(logged, e)
		}
	}
	if len(logged) == 0 {
		return
	}
	slices.SortStableFunc(logged, func(x, y *NewEvent) int { return x.TenantID.Compare(y.TenantID) })
	p := sql.InsertLogParams{Events: make([]id.UUID, len(logged))}
	for i, e := range logged {
		p.Events[i] = e.ID
		if i == 0 || e.TenantID != logged[i-1].TenantID {
			p.Tenants = append(p.Tenants, e.TenantID)
			p.Firsts = append(p.Firsts, int32(i+1))
			p.Lasts = append(p.Lasts, 0)
		}
		p.Lasts[len(p.Lasts)-1] = int32(i + 1)
	}
	b.Queue(sql.InsertLog, db.Args(p)...)
}

func queueFanOut(b *pgx.Batch, events []*NewEvent) {
	queueLog(b, events)
	n := 0
	for _, e := range events {
		n += len(e.Deliveries)
	}
	totals := ledger.Totals{}
	for _, e := range events {
		if !filter.Own(e.Type) { // a notice to the tenant itself uses up no quota
			totals.At(e.TenantID, e.CreatedAt).Events++
		}
	}
	defer totals.Queue(b)
	if n == 0 {
		return
	}
	d := sql.InsertDeliveriesParams{
		Tenants:   make([]id.UUID, 0, n),
		Created:   make([]time.Time, 0, n),
		Ids:       make([]id.UUID, 0, n),
		Events:    make([]id.UUID, 0, n),
		Endpoints: make([]id.UUID, 0, n),
		Types:     make([]string, 0, n),
	}
	p := queueColumns{States: make([]int16, 0, n), OrderKeys: make([]string, 0, n), Due: make([]*time.Time, 0, n), Expires: make([]*time.Time, 0, n)}
	for _, e := range events {
		for i := range e.Deliveries {
			v := &e.Deliveries[i]
			created := v.ID.Time()
			d.Tenants = append(d.Tenants, e.TenantID)
			d.Created = append(d.Created, created)
			d.Ids = append(d.Ids, v.ID)
			d.Events = append(d.Events, e.ID)
			d.Endpoints = append(d.Endpoints, v.EndpointID)
			d.Types = append(d.Types, e.Type)
			p.States = append(p.States, firstState(e, v))
			p.OrderKeys = append(p.OrderKeys, v.OrderKey)
			p.Due = append(p.Due, e.DeliverAt)
			p.Expires = append(p.Expires, v.ExpiresAt)
			totals.At(e.TenantID, created).Accepted++
		}
	}
	b.Queue(sql.InsertDeliveries, db.Args(d)...)
	p.Tenants, p.Deliveries, p.Events, p.Endpoints = d.Tenants, d.Ids, d.Events, d.Endpoints
	b.Queue(sql.InsertQueue, db.Args(p)...).Query(func(rows pgx.Rows) error { return noteNumbers(events, rows) })
}

// noteNumbers records the numbers of ready queue rows in their deliveries. Rows return in the order of their insertion.
// If that order ever differs, the numbers are left out, and the worker reads the rows.
func noteNumbers(events []*NewEvent, rows pgx.Rows) error {
	for _, e := range events {
		for i := range e.Deliveries {
			d := &e.Deliveries[i]
			if !rows.Next() {
				return rows.Err()
			}
			var seq int64
			var delivery id.UUID
			if err := rows.Scan(&seq, &delivery); err != nil {
				return err
			}
			if delivery == d.ID && firstState(e, d) == Ready {
				d.Seq = seq
			}
		}
	}
	return rows.Err()
}

// forgetNumbers clears the numbers of events that an earlier try possibly stored, since a worker can have read and sent
// them already. A read finds their rows.
func forgetNumbers(events []*NewEvent) {
	for _, e := range events {
		for i := range e.Deliveries {
			e.Deliveries[i].Seq = 0
		}
	}
}

func firstState(e *NewEvent, d *NewDelivery) int16 {
	switch {
	case e.DeliverAt != nil:
		return Deferred
	case d.OrderKey != "":
		return Blocked
	}
	return Ready
}
