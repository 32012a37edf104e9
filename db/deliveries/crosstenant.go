package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// How far a page reads: this many rows of each tenant in a time range and of all in all ranges, and this many endpoints
// of a host. The first range is short, since a busy platform fills a page with it.
const (
	crossTenantScan   = 500
	crossTenantRows   = 10_000
	crossTenantHosts  = 200
	crossTenantFirst  = 15 * time.Minute
	crossTenantFew    = 7 * 24 * time.Hour // the first where a table has few rows of each day
	crossTenantGrowth = 30                 // at most, from one range to the next
)

// ranges divides the window of a list over all tenants into time ranges, newest first, until enough rows were looked
// at.
type ranges struct {
	window
	length time.Duration
	left   int64 // rows
}

func (w window) ranges() ranges { return ranges{w, crossTenantFirst, crossTenantRows} }

// next is the range to read.
func (r *ranges) next() window { return r.slice(r.length, time.Now(), false) }

// after makes the next range the one beyond another, in which so many rows were looked at. It is false if the page has
// looked at enough. A range is as long as the rows that are left allow, by what the last one had.
func (r *ranges) after(part window, looked int64) bool {
	r.beyond(part.low, false)
	r.left -= looked
	growth := min(crossTenantGrowth, float64(r.left)/float64(max(looked, 1)))
	r.length = time.Duration(float64(r.length) * growth)
	return r.left > crossTenantRows/4
}

// ListCrossTenant reads a page of the deliveries of all tenants, newest first. It changes the planner settings of its
// transaction, so call it last.
func ListCrossTenant(ctx context.Context, q *sql.Queries, l ListOptions) (Page, error) {
	switch {
	case !l.Endpoint.IsZero(), l.Host != "":
		return listOfEndpoints(ctx, q, l)
	case !l.Tenant.IsZero():
		return List(ctx, q, l.Tenant, l)
	}
	return listOfAll(ctx, q, l)
}

// listOfEndpoints merges the lists of a few endpoints. If one list was not read to its end, the merged page is complete
// only down to its last row.
func listOfEndpoints(ctx context.Context, q *sql.Queries, l ListOptions) (page Page, err error) {
	found, err := q.EndpointsNamed(ctx, sql.EndpointsNamedParams{
		TenantID:   idOrNil(l.Tenant),
		EndpointID: idOrNil(l.Endpoint),
		Host:       l.Host,
		Limit:      crossTenantHosts,
	})
	if err != nil {
		return page, err
	}
	var whole id.UUID // nothing is missing above and at this id
	for _, e := range found {
		l.Endpoint = e.ID
		p, err := List(ctx, q, e.TenantID, l)
		if err != nil {
			return page, err
		}
		page.Rows = append(page.Rows, p.Rows...)
		if p.Next == nil {
			continue
		}
		if reached := id.UUID(p.Next); reached.Compare(whole) > 0 {
			whole = reached
		}
	}
	slices.SortFunc(page.Rows, func(a, b show.Delivery) int { return b.ID.Compare(a.ID) })
	page.Rows = slices.DeleteFunc(page.Rows, func(d show.Delivery) bool { return d.ID.Compare(whole) < 0 })
	if len(page.Rows) > l.Limit {
		return show.CutByID(page.Rows, l.Limit, deliveryID), nil
	}
	if !whole.IsZero() {
		page.Next = whole[:]
	}
	return page, nil
}

// FindEndpoint returns fault.ErrNotFound unless some tenant has or had an endpoint.
func FindEndpoint(ctx context.Context, q *sql.Queries, endpoint id.UUID) error {
	found, err := q.EndpointsNamed(ctx, sql.EndpointsNamedParams{EndpointID: &endpoint, Limit: 1})
	if err == nil && len(found) == 0 {
		err = fault.ErrNotFound
	}
	return err
}

// listOfAll reads all tenants, one time range after the other, until the page is full or enough rows were looked at.
func listOfAll(ctx context.Context, q *sql.Queries, l ListOptions) (page Page, err error) {
	floor, err := q.OldestShown(ctx)
	if err != nil {
		return page, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return page, err
	}
	parts := l.window(floor).ranges()
	ask := sql.ScanAllDeliveriesParams{EventType: l.EventType, Scan: crossTenantScan}
	if from(&ask, &l); ask.Source != "deliveries" {
		parts.length = crossTenantFew
	} else if l.EventType == "" && l.Status == "" {
		ask.Scan = int32(l.Limit + 1) // each row matches
	}
	for {
		part := parts.next()
		ask.Low, ask.High, ask.LowAt, ask.HighAt = part.low, part.high, part.low.Time(), part.high.Time()
		ask.Limit = int32(l.Limit + 1 - len(page.Rows))
		found, err := q.ScanAllDeliveries(ctx, ask)
		if err != nil {
			return page, err
		}
		rows, err := readAll(ctx, q, found.Tenants, found.Ids)
		if err != nil {
			return page, err
		}
		page.Rows = append(page.Rows, slices.DeleteFunc(rows, func(d show.Delivery) bool {
			return !l.takes(d) || l.Status == delivery.AllFailed && !d.WentWrong()
		})...)
		switch n := len(found.Ids); {
		case len(page.Rows) > l.Limit:
			return show.CutByID(page.Rows, l.Limit, deliveryID), nil
		case n == int(ask.Limit): // some rows have changed since they were read
			page.Next = found.Ids[n-1][:]
			return page, nil
		case !found.Reached.IsZero():
			page.Next = found.Reached[:]
			return page, nil
		case part == parts.window:
			page.Next = nil
			return page, nil
		}
		page.Next = part.low[:]
		if !parts.after(part, found.Looked) {
			return page, nil
		}
	}
}

// from names the table that knows what a list selects.
func from(p *sql.ScanAllDeliveriesParams, l *ListOptions) {
	p.Source, p.Status = "deliveries", int32(anyStatus)
	s, known := delivery.ParseStatus(l.Status)
	switch {
	case l.Status == delivery.OnHold, l.Status == "" && l.Wait != "", known && !s.Terminal():
		p.Source, p.Waiting, p.Held, p.Tried = "queue", !known, s == delivery.Held, s == delivery.Retrying
	case l.Status == delivery.DeadLetter, known && s == delivery.Failed:
		p.Source, p.Open = "dead_letters", l.Status == delivery.DeadLetter
	case known && s.Ended():
		p.Source = "cancellations"
	case known:
		p.Status = int32(s)
	}
}

// CrossTenantEvents narrows a list of the events of all tenants.
type CrossTenantEvents struct {
	Tenant  id.UUID // zero: all of them
	Type    string
	Outcome string // one of show.Outcomes
}

// ListCrossTenantEvents reads a page of the events of all tenants, newest first. It changes the planner settings of its
// transaction.
func ListCrossTenantEvents(ctx context.Context, q *sql.Queries, f CrossTenantEvents, r show.Range) (page show.Page[show.Event], err error) {
	floor, err := q.OldestShown(ctx)
	if err != nil {
		return page, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return page, err
	}
	list := ListOptions{Range: r}
	parts := list.window(floor).ranges()
	scan := r.Limit + 1
	if f.Type != "" || f.Outcome != show.AnyOutcome {
		scan = crossTenantScan
	}
	for {
		part := parts.next()
		rows, err := q.ScanAllEvents(ctx, sql.ScanAllEventsParams{
			TenantID: idOrNil(f.Tenant),
			Type:     f.Type,
			Low:      part.low,
			High:     part.high,
			LowAt:    part.low.Time(),
			HighAt:   part.high.Time(),
			Scan:     int32(scan),
			Limit:    int32(scan + 1),
		})
		if err != nil {
			return page, err
		}
		looked, full, err := f.gather(ctx, q, rows, scan, &page)
		if err != nil || len(page.Rows) > r.Limit {
			return show.CutByID(page.Rows, r.Limit, func(e show.Event) id.UUID { return e.ID }), err
		}
		if full {
			return page, nil
		}
		if part == parts.window {
			return page, nil
		}
		if !parts.after(part, looked) {
			page.Next = part.low[:]
			return page, nil
		}
	}
}

// gather adds the events of one scan that the list selects, with what became of them. full says that a tenant has more
// events than were read: the page ends at the last one that was.
func (f CrossTenantEvents) gather(
	ctx context.Context,
	q *sql.Queries,
	rows []sql.ScanAllEventsRow,
	scan int,
	page *show.Page[show.Event],
) (looked int64, full bool, err error) {
	var found []show.Event
	for _, row := range rows {
		if row.ID.IsZero() {
			looked = row.Place
			continue
		}
		if row.Matches {
			found = append(found, show.Event{
				ID:        row.ID,
				TenantID:  row.TenantID,
				Tenant:    row.TenantName,
				Type:      row.Type,
				Channels:  row.Channels,
				CreatedAt: row.ID.Time(),
				DeliverAt: db.OrZero(row.DeliverAt),
			})
		}
		if row.Place == int64(scan) {
			page.Next, full = row.ID[:], true
			break
		}
	}
	found, err = events.WithOutcomes(ctx, q, found, f.Outcome)
	page.Rows = append(page.Rows, found...)
	return looked, full, err
}
