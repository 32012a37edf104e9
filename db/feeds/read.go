package feeds

import (
	"context"
	"math"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/signature"
)

// Event is an event in a feed: as it is, and as the request that an endpoint with the feed's settings would get.
type Event struct {
	feed.Place
	Type, Key, Version string
	Channels           []string
	AcceptedAt         time.Time
	OccurredAt         time.Time // of the producer; zero: it gave none
	DeliverAt          time.Time // zero: none
	OwnID              string    // the id that receivers deduplicate by
	Data               []byte
	ContentType        string // of data that is no JSON; empty: JSON
	Traceparent        string
	Headers            []signature.Header
	Body               []byte
}

// Page is a part of a feed.
type Page struct {
	Events    []Event
	Next      feed.Place // the last event that was examined
	CaughtUp  bool       // nothing that can be read now lies behind Next
	Truncated bool       // retention dropped events between the cursor and the first event
	Examined  int
}

// Options say what to read.
type Options struct {
	From     *feed.Place // nil: where the consumer acknowledged, or Start without a consumer
	Consumer string      // empty: none
	Start    feed.Start
	Limit    int
	Now      time.Time // when the events are signed
}

// Read reads a page of a feed: at most feed.MaxScan events are examined. A consumer that does not exist is
// fault.ErrNotFound. Other errors are feed.ErrCursorLost, endpoint.ErrNoFeed, and endpoint.ErrFeedInactive.
func Read(ctx context.Context, d *db.DB, ring *seal.Ring, tenant, endpointID id.UUID, o Options) (Page, error) {
	var p Page
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) (err error) {
		p, err = read(ctx, q, ring, tenant, endpointID, o)
		return err
	})
	return p, err
}

func read(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID, o Options) (Page, error) {
	e, signing, err := endpoints.Signing(ctx, q, ring, tenant, endpointID)
	switch {
	case err != nil:
		return Page{}, err
	case !endpoint.Kind(e.Kind).Pulls():
		return Page{}, endpoint.ErrNoFeed
	case e.Status != string(endpoint.Active):
		return Page{}, endpoint.ErrFeedInactive
	}
	halted, err := q.IsFeedHalted(ctx, sql.IsFeedHaltedParams{EndpointID: endpointID, URL: e.URL, TenantID: tenant})
	if err != nil {
		return Page{}, err
	}
	if halted {
		return Page{}, endpoint.ErrFeedHalted
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return Page{}, err
	}
	l, err := openLog(ctx, q, tenant)
	if err != nil {
		return Page{}, err
	}
	r := reader{log: l, endpoint: e, signing: signing, route: routing.Compile(ruleOf(e)), now: o.Now, limit: o.Limit}
	seen, err := r.from(ctx, o)
	if err != nil {
		return Page{}, err
	}
	if err := r.read(ctx); err != nil {
		return Page{}, err
	}
	return r.page, r.note(ctx, o, seen)
}

// ruleOf is what a feed asks of events, by its settings of now.
func ruleOf(e sql.Endpoint) routing.Rule {
	return routing.Rule{
		EventTypes: e.EventTypes,
		Channels:   e.Channels,
		Filter:     db.TextOf(e.Filter),
		Status:     endpoint.Active,
		Version:    db.TextOf(e.PayloadVersion),
	}
}

// reader reads one page.
type reader struct {
	log      *tenantLog
	endpoint sql.Endpoint
	signing  signature.Signing
	route    routing.Route
	now      time.Time
	limit    int
	bytes    int
	plain    bool // events are not rendered
	started  bool // the cursor names an event
	page     Page
}

// from finds the place at which the page starts. seen is the cursor that the consumer acknowledged.
func (r *reader) from(ctx context.Context, o Options) (seen string, err error) {
	if o.Consumer != "" {
		c, err := r.log.q.GetConsumer(ctx, sql.GetConsumerParams{TenantID: r.log.tenant, EndpointID: r.endpoint.ID, Name: o.Consumer})
		if err != nil {
			return "", err
		}
		seen = c.Cursor
		if c.ReadAt == nil || r.now.Sub(*c.ReadAt) > feed.Ahead {
			touch := sql.TouchConsumerParams{TenantID: r.log.tenant, EndpointID: r.endpoint.ID, Name: o.Consumer}
			if err := r.log.q.TouchConsumer(ctx, touch); err != nil {
				return "", err
			}
		}
	}
	switch {
	case o.From != nil:
		r.page.Next = *o.From
	case seen != "":
		r.page.Next, err = feed.ParsePlace(seen)
	default:
		r.page.Next, err = r.log.place(ctx, o.Start)
	}
	if err != nil {
		return "", err
	}
	r.started = r.page.Next.Index > 0 || !r.page.Next.Event.IsZero()
	r.page.Truncated, err = r.log.check(ctx, r.page.Next)
	return seen, err
}

// read fills the page.
func (r *reader) read(ctx context.Context) error {
	list, end, err := r.log.after(ctx, r.page.Next)
	if err != nil {
		return err
	}
	chunk := firstChunk
	for len(list) > 0 && len(r.page.Events) < r.limit {
		part := list[:min(chunk, len(list))]
		full, err := r.examine(ctx, part)
		if err != nil || full {
			return err
		}
		list = list[len(part):]
		chunk = min(max(maxChunk*chunkBytes/max(r.bytes, chunkBytes), 1), maxChunk)
	}
	r.page.CaughtUp = end && len(list) == 0
	switch next := &r.page.Next; {
	case !r.page.CaughtUp:
	case next.Position == feed.Older && r.log.olderSettled():
		*next = feed.Place{} // no older event can appear: the log's first is next
	case next.Position != feed.Older && next.Position < r.log.Dropped:
		*next = feed.Place{Position: r.log.Dropped + 1} // it is told once that the rest was dropped
	}
	return nil
}

// Events whose data is read in one statement: few at first, since their size is not known.
const (
	firstChunk = 20
	maxChunk   = 100
	chunkBytes = 256 << 10
)

// examine reads some events and takes those that match. full says that the page ends within them.
func (r *reader) examine(ctx context.Context, part []candidate) (full bool, err error) {
	rows, err := r.rows(ctx, part)
	if err != nil {
		return false, err
	}
	r.bytes = 0
	for _, row := range rows {
		r.bytes += len(row.Data)
	}
	for _, c := range part {
		if len(r.page.Events) == r.limit {
			return true, nil
		}
		row, there := rows[c.Event]
		hidden := !there || row.CreatedAt.Before(r.log.floor)
		switch {
		case c.logged:
		case hidden:
			r.page.Truncated = r.page.Truncated || r.started
		case row.Data != nil:
			if r.matches(row) {
				if r.size()+len(row.Data) > feed.MaxBytes && len(r.page.Events) > 0 {
					return true, nil
				}
				r.page.Events = append(r.page.Events, r.event(row, c.Place))
			}
		}
		r.page.Next = c.Place
		r.page.Examined++
	}
	return false, nil
}

func (r *reader) size() (bytes int) {
	for _, e := range r.page.Events {
		bytes += len(e.Data)
	}
	return bytes
}

func (r *reader) rows(ctx context.Context, part []candidate) (map[id.UUID]sql.Event, error) {
	p := sql.EventsByIDParams{TenantID: r.log.tenant, Octets: math.MaxInt32}
	for _, c := range part {
		if c.logged {
			continue
		}
		p.Ids = append(p.Ids, c.Event)
		p.Created = append(p.Created, c.Event.Time())
	}
	if len(p.Ids) == 0 {
		return nil, nil
	}
	p.First, p.Last = slices.MinFunc(p.Created, time.Time.Compare), slices.MaxFunc(p.Created, time.Time.Compare)
	found, err := r.log.q.EventsByID(ctx, p)
	rows := make(map[id.UUID]sql.Event, len(found))
	for _, one := range found {
		rows[one.ID] = sql.Event(one)
	}
	return rows, err
}

func (r *reader) matches(row sql.Event) bool {
	matched, _, _ := r.route.Takes(filter.NewInput(row.Type, row.Data, row.Channels), db.TextOf(row.Version))
	return matched
}

// event renders and signs an event. It has no delivery: the event's own id stands in its place.
func (r *reader) event(row sql.Event, at feed.Place) Event {
	external := id.Event.Format(row.ID)
	m := queue.Message(&row, external, external, id.Endpoint.Format(r.endpoint.ID))
	w := endpoints.Wire(r.endpoint)
	m.TypeField, m.Bare = w.Field(), w.Bare()
	e := Event{
		Place:       at,
		Type:        row.Type,
		Key:         db.TextOf(row.Key),
		Version:     db.TextOf(row.Version),
		Channels:    row.Channels,
		AcceptedAt:  row.CreatedAt,
		OccurredAt:  db.OrZero(row.OccurredAt),
		DeliverAt:   db.OrZero(row.DeliverAt),
		OwnID:       m.EventID,
		Data:        row.Data,
		ContentType: db.TextOf(row.ContentType),
		Traceparent: db.TextOf(row.Traceparent),
	}
	if r.plain {
		return e
	}
	e.Body = signature.AppendBody(nil, r.signing.Format, m)
	fixed := signature.FixedHeaders(m.BodyType(r.signing.Format))[:1]
	e.Headers = r.signing.Headers(fixed, m, e.Body, signature.Send{At: r.now, Attempt: 1})
	return e
}

// note moves a consumer that has acknowledged all that it was given over events that did not match: else it would lag
// behind events that are not its own.
func (r *reader) note(ctx context.Context, o Options, seen string) error {
	if o.Consumer == "" || len(r.page.Events) > 0 || r.page.Next.String() == seen || o.From != nil && o.From.String() != seen {
		return nil
	}
	return r.log.q.MoveConsumerFrom(ctx, sql.MoveConsumerFromParams{
		Cursor:     r.page.Next.String(),
		TenantID:   r.log.tenant,
		EndpointID: r.endpoint.ID,
		Name:       o.Consumer,
		Seen:       seen,
	})
}

// Follow reads a page of the events that a rule matches, as they are, for somebody who has no feed: without From, it
// returns the end of the log and no event. Nothing from before floor is read; zero: anything.
func Follow(ctx context.Context, d *db.DB, tenant id.UUID, rule routing.Rule, o Options, floor time.Time) (Page, error) {
	var p Page
	err := d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		l, err := ensureLog(ctx, q, tenant)
		if err != nil {
			return err
		}
		if o.From == nil {
			p.CaughtUp = true
			p.Next, err = l.place(ctx, feed.Start{})
			return err
		}
		r := reader{log: l, route: routing.Compile(rule), now: o.Now, limit: o.Limit, plain: true}
		if r.page.Next, r.page.Truncated, err = l.notBefore(ctx, *o.From, floor); err != nil {
			return err
		}
		r.started = !r.page.Next.Event.IsZero()
		err = r.read(ctx)
		p = r.page
		return err
	})
	return p, err
}
