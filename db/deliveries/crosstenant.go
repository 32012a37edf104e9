package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// CrossTenant asks for a page of the deliveries of all tenants, newest first. Zero values of filters select all.
type CrossTenant struct {
	Tenant       *id.UUID
	Endpoint     *id.UUID
	Host         string // of the endpoint's URL
	Status       *delivery.Status
	EventType    string
	Since, Until time.Time
	After        id.UUID // the page starts beyond this id; zero at the start of the list
	Most         int
}

// CrossTenantPage is a page of such a list, with the names of its endpoints.
type CrossTenantPage struct {
	Rows   []State
	Labels map[id.UUID]sql.LabelEndpointsRow
	Next   *id.UUID // After of the next page; nil at the end
}

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

// ListCrossTenant reads a page of the deliveries of all tenants. It changes the planner settings of its transaction, so
// call it last.
func ListCrossTenant(ctx context.Context, q *sql.Queries, l CrossTenant) (page CrossTenantPage, err error) {
	switch {
	case l.Endpoint != nil, l.Host != "":
		page, err = listOfEndpoints(ctx, q, l)
	case l.Tenant != nil:
		var p Page
		p, err = List(ctx, q, *l.Tenant, l.of(nil))
		page.Rows, page.Next = p.Rows, p.Next
	default:
		page, err = listOfAll(ctx, q, l)
	}
	if err != nil {
		return page, err
	}
	ids := make([]id.UUID, len(page.Rows))
	for i, d := range page.Rows {
		ids[i] = d.EndpointID
	}
	page.Labels, err = labelsOf(ctx, q, ids)
	return page, err
}

func labelsOf(ctx context.Context, q *sql.Queries, endpoints []id.UUID) (map[id.UUID]sql.LabelEndpointsRow, error) {
	rows, err := q.LabelEndpoints(ctx, endpoints)
	labels := make(map[id.UUID]sql.LabelEndpointsRow, len(rows))
	for _, r := range rows {
		labels[r.ID] = r
	}
	return labels, err
}

// of lists the deliveries of one tenant, or of one of its endpoints.
func (l CrossTenant) of(endpoint *id.UUID) ListOptions {
	return ListOptions{
		Status: l.Status, EventType: l.EventType, Endpoint: endpoint, Since: l.Since, Until: l.Until,
		After: l.After, Most: l.Most,
	}
}

// listOfEndpoints merges the lists of a few endpoints. If one list was not read to its end, the merged page is complete
// only down to its last row.
func listOfEndpoints(ctx context.Context, q *sql.Queries, l CrossTenant) (page CrossTenantPage, err error) {
	var found []sql.EndpointsOfHostRow
	if l.Endpoint != nil {
		labels, err := labelsOf(ctx, q, []id.UUID{*l.Endpoint})
		if e, ok := labels[*l.Endpoint]; ok {
			found = []sql.EndpointsOfHostRow{{TenantID: e.TenantID, ID: e.ID}}
		}
		if err != nil {
			return page, err
		}
	} else if found, err = q.EndpointsOfHost(ctx, sql.EndpointsOfHostParams{
		TenantID: l.Tenant, Host: l.Host, Most: crossTenantHosts,
	}); err != nil {
		return page, err
	}
	var whole id.UUID // nothing is missing above and at this id
	for _, e := range found {
		if l.Tenant != nil && e.TenantID != *l.Tenant {
			continue
		}
		p, err := List(ctx, q, e.TenantID, l.of(&e.ID))
		if err != nil {
			return page, err
		}
		page.Rows = append(page.Rows, p.Rows...)
		if p.Next != nil && p.Next.Compare(whole) > 0 {
			whole = *p.Next
		}
	}
	page.cut(whole, l.Most)
	return page, nil
}

// cut sorts a page, and removes the rows below the id down to which it is complete, and the rows beyond the maximum.
func (p *CrossTenantPage) cut(whole id.UUID, most int) {
	slices.SortFunc(p.Rows, func(a, b State) int { return b.ID.Compare(a.ID) })
	p.Rows = slices.DeleteFunc(p.Rows, func(d State) bool { return d.ID.Compare(whole) < 0 })
	if !whole.IsZero() {
		p.Next = &whole
	}
	if len(p.Rows) > most {
		p.Rows = p.Rows[:most]
		p.Next = &p.Rows[most-1].ID
	}
}

// listOfAll reads all tenants, one time range after the other, until the page is full or enough rows were looked at.
func listOfAll(ctx context.Context, q *sql.Queries, l CrossTenant) (page CrossTenantPage, err error) {
	floor, err := q.OldestShown(ctx)
	if err != nil {
		return page, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return page, err
	}
	list := l.of(nil)
	parts := list.window(floor).ranges()
	ask := sql.ScanAllDeliveriesParams{Source: "deliveries", Status: -1, EventType: l.EventType, Scan: crossTenantScan}
	switch {
	case l.Status != nil:
		from(&ask, *l.Status)
		if ask.Source != "deliveries" {
			parts.length = crossTenantFew
		}
	case l.EventType == "":
		ask.Scan = int32(l.Most + 1) // each row matches
	}
	for {
		part := parts.next()
		ask.Low, ask.High, ask.LowAt, ask.HighAt, ask.Most = part.low, part.high, part.low.Time(), part.high.Time(),
			int32(l.Most+1-len(page.Rows))
		found, err := q.ScanAllDeliveries(ctx, ask)
		if err != nil {
			return page, err
		}
		rows, err := readCrossTenant(ctx, q, found, &list)
		if err != nil {
			return page, err
		}
		page.Rows = append(page.Rows, rows...)
		switch n := len(found.Ids); {
		case len(page.Rows) > l.Most:
			page.cut(id.UUID{}, l.Most)
			return page, nil
		case n == int(ask.Most): // some rows have changed since they were read
			page.Next = &found.Ids[n-1]
			return page, nil
		case !found.Reached.IsZero():
			page.Next = &found.Reached
			return page, nil
		case part == parts.window:
			page.Next = nil
			return page, nil
		}
		page.Next = &part.low
		if !parts.after(part, found.Looked) {
			return page, nil
		}
	}
}

// from names the table that knows a status.
func from(p *sql.ScanAllDeliveriesParams, s delivery.Status) {
	switch s {
	case delivery.Pending, delivery.Retrying, delivery.Held:
		p.Source, p.Held, p.Tried = "queue", s == delivery.Held, s == delivery.Retrying
	case delivery.Failed, DeadLetters:
		p.Source, p.Open = "dead_letters", s == DeadLetters
	case delivery.Canceled:
		p.Source = "cancellations"
	default:
		p.Status = int32(s)
	}
}

// readCrossTenant reads the rows of the found ids, in their order, one day's partition at a time, and leaves out those
// that do not match.
func readCrossTenant(ctx context.Context, q *sql.Queries, found sql.ScanAllDeliveriesRow, l *ListOptions) ([]State,
	error,
) {
	read := make(map[id.UUID]State, len(found.Ids))
	at := 0
	for _, day := range splitByDay(found.Ids) {
		rows, err := q.ReadAllDeliveries(ctx, sql.ReadAllDeliveriesParams{
			Tenants: found.Tenants[at : at+len(day.ids)], Ids: day.ids, Created: day.created, First: day.first,
			Last: day.last,
		})
		if err != nil {
			return nil, err
		}
		at += len(day.ids)
		for _, r := range rows {
			s := stateOf(r.Delivery, r.Held, queued{r.Queued, r.Seq, r.QueueState, r.NextAt, r.Asked, r.OrderKey})
			s.replays(r.Dead, r.ReplayedBy)
			read[r.Delivery.ID] = s
		}
	}
	out := make([]State, 0, len(found.Ids))
	for _, deliveryID := range found.Ids {
		if d, ok := read[deliveryID]; ok {
			out = append(out, d)
		}
	}
	if err := explainWaits(ctx, q, nil, out); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(d State) bool { return !l.takes(d) }), nil
}

// CrossTenantEvents narrows a list of the events of all tenants.
type CrossTenantEvents struct {
	Tenant id.UUID // zero: all of them
	Type   string
}

// ListCrossTenantEvents reads a page of the events of all tenants, newest first. It changes the planner settings of its
// transaction.
func ListCrossTenantEvents(
	ctx context.Context, q *sql.Queries, f CrossTenantEvents, r show.Range,
) (page show.Page[show.Event], err error) {
	floor, err := q.OldestShown(ctx)
	if err != nil {
		return page, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return page, err
	}
	list := ListOptions{Since: r.Since, Until: r.Until, After: r.AfterID()}
	parts := list.window(floor).ranges()
	scan := r.Limit + 1
	if f.Type != "" {
		scan = crossTenantScan
	}
	for {
		part := parts.next()
		rows, err := q.ScanAllEvents(ctx, sql.ScanAllEventsParams{
			TenantID: idOrNull(f.Tenant),
			Type:     f.Type,
			Low:      part.low,
			High:     part.high,
			LowAt:    part.low.Time(),
			HighAt:   part.high.Time(),
			Scan:     int32(scan),
			Most:     int32(scan + 1),
		})
		if err != nil {
			return page, err
		}
		var looked int64
		for _, row := range rows {
			if row.ID.IsZero() {
				looked = row.Place
				continue
			}
			if row.Matches && len(page.Rows) == r.Limit {
				page.Next = page.Rows[r.Limit-1].ID[:]
				return page, nil
			}
			if row.Matches {
				page.Rows = append(page.Rows, show.Event{
					ID:        row.ID,
					TenantID:  row.TenantID,
					Tenant:    row.TenantName,
					Type:      row.Type,
					Channels:  row.Channels,
					CreatedAt: row.ID.Time(),
					DeliverAt: db.OrZero(row.DeliverAt),
				})
			}
			// If a tenant has more events than were read, the page ends at the last one that was read.
			if row.Place == int64(scan) {
				page.Next = row.ID[:]
				return page, nil
			}
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

// DeliveriesOf returns the newest deliveries of one event, with the names of their endpoints. It changes the planner
// settings of its transaction.
func DeliveriesOf(ctx context.Context, q *sql.Queries, tenant, event id.UUID, most int) (page CrossTenantPage,
	err error,
) {
	p, err := List(ctx, q, tenant, ListOptions{Event: &event, Most: most})
	if err != nil {
		return page, err
	}
	page.Rows, page.Next = p.Rows, p.Next
	ids := make([]id.UUID, len(p.Rows))
	for i, d := range p.Rows {
		ids[i] = d.EndpointID
	}
	page.Labels, err = labelsOf(ctx, q, ids)
	return page, err
}
