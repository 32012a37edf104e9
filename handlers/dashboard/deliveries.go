package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) deliveryRoutes() []handlers.Route {
	return append(a.deliveryActions(),
		page("GET", "/deliveries", access.Read, a.listDeliveries),
		page("GET", "/deliveries/live", access.Read, a.refreshDeliveries),
		page("GET", "/deliveries/:delivery_id", access.Read, a.showDelivery),
		page("GET", "/deliveries/:delivery_id/live", access.Read, a.refreshDelivery),
		page("GET", "/deliveries/:delivery_id/body", access.Read, a.downloadBody),
	)
}

var deliveryFilters = handlers.List{
	Name:     "deliveries",
	Statuses: []string{"pending", "retrying", "held", "delivered", "failed", delivery.DeadLetter, "canceled", bulk.AllFailed},
	Filters: []handlers.Filter{
		handlers.BySince, handlers.ByUntil, handlers.ByType, handlers.ByChannel, handlers.ByEndpoint, handlers.ByWait,
		handlers.ByJob,
		handlers.ByArchived,
	},
}

// listDeliveries shows a page of deliveries. A search for an id redirects to its object.
func (a *dashboard) listDeliveries(c *handlers.Call) error {
	ask := readListQuery(c, id.Delivery, "q")
	v := pages.DeliveriesView{
		Root: path(c, ""), Now: a.Now(), Filter: deliveryFilter(ask.filter), Wrong: map[string]string{},
	}
	if v.Filter.Search = ask.extra.Get("q"); v.Filter.Search != "" {
		to, err := a.found(c, v.Filter.Search)
		switch {
		case err == nil && to != "":
			return c.Redirect(to)
		case fault.Is(err, fault.ErrNotFound.Code):
			v.Wrong["q"] = "No object in this tenant has this id. Check that you copied all of it."
		case err != nil:
			return err
		default:
			v.Wrong["q"] = "That isn't an id. Paste a complete id with its prefix, or use the search for anything else."
		}
	}
	p, err := c.Page(deliveryFilters)
	if err != nil {
		wrong, err := wrongQuery(err)
		if err != nil {
			return err
		}
		for name, detail := range wrong {
			v.Wrong[name] = detail
		}
	}
	status := http.StatusOK
	if len(v.Wrong) > 0 {
		status = http.StatusBadRequest
	}
	err = c.Tx(func(q *db.Tx) error {
		var err error
		if v.Endpoints, v.Types, err = a.filterChoices(c, q); err != nil {
			return err
		}
		// The endpoint's tabs stay where another part of the filter is invalid.
		of := p.Endpoint
		if of.IsZero() {
			of = endpointOf(v.Filter)
		}
		if v.Of, err = a.headOf(c, q, of); err != nil || status != http.StatusOK {
			return err
		}
		return a.fillDeliveries(c, q, p, ask, &v)
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Deliveries", "deliveries")
	return c.Render(status, pages.Deliveries(v))
}

// headOf is the head of the one endpoint of a list; nil if the list has several endpoints, or the endpoint was deleted.
func (a *dashboard) headOf(c *handlers.Call, q *db.Tx, endpointID id.UUID) (*pages.EndpointHead, error) {
	if endpointID.IsZero() {
		return nil, nil //nolint:nilnil // a list of several endpoints has no head
	}
	e, err := endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
	if db.IsNoRows(err) || fault.Is(err, fault.ErrNotFound.Code) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, err
	}
	h := a.head(c, e, "deliveries")
	return &h, nil
}

// endpointOf is the endpoint that a filter names; zero: none, or not by a valid id.
func endpointOf(f pages.DeliveryFilter) id.UUID {
	endpointID, err := id.Endpoint.Parse(f.Endpoint)
	if err != nil {
		return id.UUID{}
	}
	return endpointID
}

func deliveryFilter(q url.Values) pages.DeliveryFilter {
	return pages.DeliveryFilter{
		Status: q.Get("status"), Type: q.Get("type"), Endpoint: q.Get("endpoint"), Channel: q.Get("channel"),
		Since: q.Get("since"), Until: q.Get("until"), Wait: q.Get("wait"), Job: q.Get("job"), Archived: q.Get("archived") == "true",
	}
}

// deliveryList is the query of a page.
func deliveryList(p handlers.Page) deliveries.ListOptions {
	l := deliveries.ListOptions{
		EventType: p.Type, Channel: p.Channel, Since: p.Since, Until: p.Until,
		Archived: p.Archived, Wait: p.Wait,
	}
	if !p.Endpoint.IsZero() {
		l.Endpoint = &p.Endpoint
	}
	if s, ok := delivery.ParseStatus(p.Status); ok {
		l.Status = &s
	} else if p.Status == bulk.AllFailed {
		s := deliveries.AllFailed
		l.Status = &s
	} else if p.Status == delivery.DeadLetter {
		s := deliveries.DeadLetters
		l.Status = &s
	}
	if !p.Job.IsZero() {
		l.Job = &p.Job
	}
	return l
}

func (a *dashboard) fillDeliveries(c *handlers.Call, q *db.Tx, p handlers.Page, ask listQuery,
	v *pages.DeliveriesView,
) error {
	list := v.Root + "/deliveries"
	l := deliveryList(p)
	l.Most, l.After = rows, ask.after
	if !ask.before.IsZero() {
		l.Ascending, l.After = true, ask.before
	}
	found, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, l)
	if err != nil {
		return err
	}
	more := found.Next != nil
	if l.Ascending {
		slices.Reverse(found.Rows)
		if !more { // the start of the list: shown as such, with a full page
			ask.before, l.Ascending, l.After = id.UUID{}, false, id.UUID{}
			if found, err = deliveries.List(c.Ctx(), q, c.Actor.Tenant, l); err != nil {
				return err
			}
			more = found.Next != nil
		}
	}
	switch {
	case l.Ascending:
		v.Older = ask.at(list, "after", id.Delivery.Format(ask.before))
		if n := len(found.Rows); n > 0 {
			v.Newer, v.Older = ask.at(list, "before", id.Delivery.Format(found.Rows[0].ID)),
				ask.at(list, "after", id.Delivery.Format(found.Rows[n-1].ID))
		}
	case more:
		v.Older = ask.at(list, "after", id.Delivery.Format(*found.Next))
		v.Short = len(found.Rows) < rows
	}
	if !l.Ascending && !ask.after.IsZero() {
		v.Newer = list
		if len(found.Rows) > 0 {
			v.Newer = ask.at(list, "before", id.Delivery.Format(found.Rows[0].ID))
		}
	}
	if v.Older == "" && !waits(p) {
		if v.Stored, err = a.storedDays(c, q, p); err != nil {
			return err
		}
		v.Stored.Noun, v.Stored.Here = pages.StoredDeliveries, ask.here(list, id.Delivery)
	}
	v.List, err = a.deliveryRows(c, q, found.Rows, ask)
	return err
}

// waits reports whether a list is of deliveries that wait: none of these is in storage.
func waits(p handlers.Page) bool {
	s, ok := delivery.ParseStatus(p.Status)
	return p.Wait != "" || ok && !s.Terminal()
}

// deliveryRows is the part of the page that is refreshed. Its rows stay the same when others are added.
func (a *dashboard) deliveryRows(c *handlers.Call, q *db.Tx, found []deliveries.State,
	ask listQuery,
) (pages.DeliveryListView, error) {
	v := pages.DeliveryListView{
		Root: path(c, ""), Acts: c.Actor.May(access.ActOnDeliveries), Plain: deliveryFilter(ask.filter),
	}
	v.Here = ask.at(v.Root+"/deliveries", "", "")
	ids := make([]id.UUID, len(found))
	texts := make([]string, len(found))
	for i, d := range found {
		ids[i], texts[i] = d.EndpointID, id.Delivery.Format(d.ID)
	}
	live := url.Values{"rows": {strings.Join(texts, ",")}, "top": {id.Delivery.Format(db.NewID())}}
	if len(texts) > 0 {
		live.Set("top", texts[0])
	}
	for name, values := range ask.filter {
		live[name] = values
	}
	v.Live = v.Root + "/deliveries/live?" + live.Encode()
	labels, err := a.labels(c, q, ids)
	if err != nil {
		return v, err
	}
	for _, d := range found {
		v.Rows = append(v.Rows, deliveryRow(d, labels))
	}
	return v, nil
}

func deliveryRow(d deliveries.State, labels map[id.UUID]pages.EndpointLabel) pages.DeliveryRow {
	r := pages.DeliveryRow{
		ID: id.Delivery.Format(d.ID), EventID: id.Event.Format(d.EventID), Type: d.EventType, Status: d.Shown,
		Reason:   d.Reason,
		Attempts: int(d.Attempts), LastStatus: int(d.LastStatus), LastFailure: d.LastFailure, Created: d.CreatedAt,
		Next: orZero(d.NextAt), Wait: d.WaitReason(),
		Archived: d.ArchivedAt != nil, Replay: d.ReplayOf != nil, Endpoint: labels[d.EndpointID], Dead: d.DeadLetter,
	}
	if d.ReplayedBy != nil {
		r.ReplayedBy, r.Replayed = id.Delivery.Format(*d.ReplayedBy), d.ReplayedBy.Time()
	}
	if r.Endpoint.ID == "" {
		r.Endpoint = pages.EndpointLabel{
			ID:          id.Endpoint.Format(d.EndpointID),
			Description: id.Endpoint.Format(d.EndpointID), Gone: true,
		}
	}
	return r
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// maxNews is up to how many new deliveries are counted.
const maxNews = 20

// refreshDeliveries shows the current state of the rows on a page, and how many are newer. Without a page to refresh
// it redirects to the list.
func (a *dashboard) refreshDeliveries(c *handlers.Call) error {
	ask := readListQuery(c, id.Delivery, "rows", "top")
	p, err := c.Page(deliveryFilters)
	if err != nil {
		return err
	}
	var ids []id.UUID
	for text := range strings.SplitSeq(ask.extra.Get("rows"), ",") {
		if deliveryID, err := id.Delivery.Parse(text); err == nil && len(ids) < rows {
			ids = append(ids, deliveryID)
		}
	}
	top, err := id.Delivery.Parse(ask.extra.Get("top"))
	if err != nil {
		return c.Redirect(ask.at(path(c, "/deliveries"), "", ""))
	}
	var v pages.DeliveryListView
	err = c.Tx(func(q *db.Tx) error {
		l := deliveryList(p)
		l.Ascending, l.After, l.Most = true, top, maxNews
		newer, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, l)
		if err != nil {
			return err
		}
		held, err := deliveries.ReadMany(c.Ctx(), q, c.Actor.Tenant, ids)
		if err != nil {
			return err
		}
		v, err = a.deliveryRows(c, q, held, ask)
		v.News, v.Many = len(newer.Rows), newer.Next != nil
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.DeliveryList(v))
}
