package feeds

import (
	"context"
	"math"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
)

// How many endpoints are listed in a statement, deliveries of one created in a transaction, and deliveries of one that
// can wait until more are created.
const (
	startsPage = 100
	startChunk = feed.MaxLimit
	startAhead = 1000
)

// StartAt makes a new endpoint begin in the past, in the transaction that creates it: until it has caught up, a job
// creates its deliveries from the log, in the order of acceptance. It returns when that began; zero: the endpoint
// begins with new events.
func StartAt(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, start feed.Start, now time.Time) (time.Time, error) {
	if !start.Oldest && start.At.IsZero() {
		return time.Time{}, nil
	}
	return now, putStart(ctx, q, tenant, endpointID, start)
}

func putStart(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, start feed.Start) error {
	if err := q.BeginLog(ctx, tenant); err != nil {
		return err
	}
	l, err := openLog(ctx, q, tenant)
	if err != nil {
		return err
	}
	place, err := l.place(ctx, start)
	if err != nil {
		return err
	}
	return q.PutStart(ctx, sql.PutStartParams{TenantID: tenant, EndpointID: endpointID, Cursor: place.String()})
}

// Rewound says from where an endpoint gets everything again.
type Rewound struct {
	Tenant, Endpoint id.UUID
	Start            feed.Start
	Now              time.Time
}

// Rewind makes an endpoint get everything again since a start, in the order of acceptance, and live events behind it.
// What waits for it already is sent before. With a start of now, a backlog that is not created yet is left out.
func Rewind(ctx context.Context, q *sql.Queries, ed endpoints.Editor, r Rewound) (show.Endpoint, error) {
	if err := r.Start.Past(r.Now); err != nil {
		return show.Endpoint{}, err
	}
	if _, err := q.LockTenant(ctx, r.Tenant); err != nil { // as in catchUp
		return show.Endpoint{}, err
	}
	if _, err := q.LockEndpoint(ctx, r.Tenant, r.Endpoint); err != nil {
		return show.Endpoint{}, err
	}
	e, err := endpoints.Read(ctx, q, ed.Keys, r.Tenant, r.Endpoint)
	switch {
	case err != nil:
		return e, err
	case e.Settings.Kind.Pulls():
		return e, endpoint.ErrFeed
	case e.Settings.Kind == endpoint.Listen:
		return e, endpoint.ErrListener
	}
	ends := !r.Start.Oldest && r.Start.At.IsZero()
	if ends {
		catching, err := q.IsStarting(ctx, r.Tenant, r.Endpoint)
		if err != nil || !catching {
			return e, err
		}
	}
	// From the next version of the routes on, live events are left to the backlog. If this begins the log, they are in
	// it.
	if _, err := q.BumpRouting(ctx, r.Tenant); err != nil {
		return e, err
	}
	if err := putStart(ctx, q, r.Tenant, r.Endpoint, r.Start); err != nil {
		return e, err
	}
	e.StartingAt = r.Now
	return e, db.Audit(ctx, q, ed.By, db.Audited{
		Tenant:  &r.Tenant,
		Action:  "endpoint.rewind",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(r.Endpoint),
		Details: map[string]any{"start": r.Start.String()},
	})
}

// CatchUp creates deliveries of endpoints that begin in the past, as long as there is something to do.
func CatchUp(ctx context.Context, d *db.DB) error {
	for {
		worked, err := catchUpAll(ctx, d)
		if err != nil || !worked {
			return err
		}
	}
}

func catchUpAll(ctx context.Context, d *db.DB) (worked bool, err error) {
	var last sql.StartsRow
	for {
		var page []sql.StartsRow
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			page, err = q.Starts(ctx, sql.StartsParams{TenantID: last.TenantID, EndpointID: last.EndpointID, Limit: startsPage})
			return err
		})
		if err != nil || len(page) == 0 {
			return worked, err
		}
		for _, s := range page {
			more := false
			err := d.Tenant(ctx, s.TenantID, func(q *sql.Queries) (err error) {
				more, err = catchUp(ctx, q, s.TenantID, s.EndpointID)
				return err
			})
			if err != nil && !db.IsNotFound(err) {
				return worked, err
			}
			worked = worked || more && err == nil
		}
		last = page[len(page)-1]
	}
}

// catchUp creates the next deliveries of an endpoint. more says that there is something left to do at once.
func catchUp(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (more bool, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return false, err
	}
	s, err := q.LockStart(ctx, tenant, endpointID)
	if db.IsNoRows(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if db.IsNoRows(err) { // deleted
		return false, q.DeleteStart(ctx, tenant, endpointID)
	} else if err != nil {
		return false, err
	}
	waiting, err := q.CountWaiting(ctx, sql.CountWaitingParams{TenantID: tenant, EndpointID: endpointID, Limit: startAhead})
	if err != nil || waiting >= startAhead {
		return false, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return false, err
	}
	place, err := feed.ParsePlace(s.Cursor)
	if err != nil {
		return false, err
	}
	l, err := openLog(ctx, q, tenant)
	if err != nil {
		return false, err
	}
	c := catching{endpoint: e, log: l, place: place}
	caughtUp, err := c.step(ctx)
	if err != nil {
		return false, err
	}
	if caughtUp && s.Settled != nil && *s.Settled <= l.Watermark {
		return c.finish(ctx, s.Settled)
	}
	if s.Settled == nil {
		settled, err := q.NumberInLog(ctx, tenant)
		if err != nil {
			return false, err
		}
		s.Settled = &settled
	}
	return !caughtUp, c.move(ctx, s.Settled)
}

// catching is an endpoint that catches up.
type catching struct {
	endpoint sql.Endpoint
	log      *tenantLog
	place    feed.Place
}

// step creates the deliveries of a page of the log.
func (c *catching) step(ctx context.Context) (caughtUp bool, err error) {
	r := reader{
		log:      c.log,
		endpoint: c.endpoint,
		route:    routing.Compile(ruleOf(c.endpoint)),
		now:      time.Now(),
		limit:    startChunk,
		plain:    true,
		page:     Page{Next: c.place},
	}
	if err := r.read(ctx); err != nil {
		return false, err
	}
	backlog := make([]deliveries.Backlog, len(r.page.Events))
	for i, e := range r.page.Events {
		backlog[i] = deliveries.Backlog{Event: e.Event, Type: e.Type, Key: e.Key, Deliver: e.DeliverAt}
	}
	c.place = r.page.Next
	e := c.endpoint
	return r.page.CaughtUp, deliveries.QueueBacklog(ctx, c.log.q, deliveries.CatchesUp{Tenant: e.TenantID, Endpoint: e.ID, Ordering: e.Ordering}, backlog, r.now)
}

// finish makes live events go to the endpoint, if it has the last of the log: no transaction of the tenant is open that
// could add to it, so nothing that comes later is queued before.
func (c *catching) finish(ctx context.Context, settled *int64) (more bool, err error) {
	e := c.endpoint
	if _, err := c.log.q.HoldLog(ctx, e.TenantID); err != nil {
		return false, err
	}
	c.log.Watermark = math.MaxInt64
	caughtUp, err := c.step(ctx)
	if err != nil {
		return false, err
	}
	if !caughtUp {
		return true, c.move(ctx, settled)
	}
	if err := c.log.q.DeleteStart(ctx, e.TenantID, e.ID); err != nil {
		return false, err
	}
	_, err = c.log.q.BumpRouting(ctx, e.TenantID)
	return false, err
}

// move notes how far the endpoint has caught up.
func (c *catching) move(ctx context.Context, settled *int64) error {
	return c.log.q.MoveStart(ctx, sql.MoveStartParams{
		Cursor:     c.place.String(),
		Settled:    settled,
		TenantID:   c.endpoint.TenantID,
		EndpointID: c.endpoint.ID,
	})
}

// End is the end of a tenant's log: what is accepted from now on is behind it. The log begins if there is none.
func End(ctx context.Context, q *sql.Queries, tenant id.UUID) (feed.Place, error) {
	l, err := ensureLog(ctx, q, tenant)
	if err != nil {
		return feed.Place{}, err
	}
	return l.place(ctx, feed.Start{})
}

// StartAfter is StartAt behind a place, but not before a moment; zero: any. truncated says that events between the
// place and the start are left out.
func StartAfter(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, place feed.Place, floor time.Time) (truncated bool, err error) {
	l, err := ensureLog(ctx, q, tenant)
	if err != nil {
		return false, err
	}
	place, truncated, err = l.notBefore(ctx, place, floor)
	if err != nil {
		return false, err
	}
	return truncated, q.PutStart(ctx, sql.PutStartParams{TenantID: tenant, EndpointID: endpointID, Cursor: place.String()})
}

// ensureLog is openLog for a tenant whose log has possibly not begun.
func ensureLog(ctx context.Context, q *sql.Queries, tenant id.UUID) (*tenantLog, error) {
	l, err := openLog(ctx, q, tenant)
	if !db.IsNotFound(err) && !db.IsNoRows(err) {
		return l, err
	}
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return nil, err
	}
	if _, err := q.BumpRouting(ctx, tenant); err != nil { // what is stored by the routes of before is not logged
		return nil, err
	}
	if err := q.BeginLog(ctx, tenant); err != nil {
		return nil, err
	}
	return openLog(ctx, q, tenant)
}

// notBefore moves a place on to a moment, and says whether events behind it are left out, by that or by retention. A
// place that the log does not know any more is moved to its end.
func (l *tenantLog) notBefore(ctx context.Context, p feed.Place, floor time.Time) (moved feed.Place, truncated bool, err error) {
	truncated, err = l.check(ctx, p)
	if fault.Is(err, feed.ErrCursorLost.Code) {
		p, err = l.place(ctx, feed.Start{})
		return p, true, err
	}
	if err != nil || floor.IsZero() {
		return p, truncated, err
	}
	first, err := l.place(ctx, feed.Start{At: floor})
	if err != nil || p.Compare(first) >= 0 {
		return p, truncated, err
	}
	skipped, _, err := l.after(ctx, p)
	truncated = truncated || len(skipped) > 0 && skipped[0].Compare(first) < 0
	return first, truncated, err
}
