package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
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

var deliveryList = handlers.Deliveries.Shown(rows, handlers.BySearch)

// listDeliveries shows a page of deliveries. A search for an id redirects to its object.
func (a *dashboard) listDeliveries(c *handlers.Call) error {
	p, err := c.Page(deliveryList)
	v := pages.DeliveriesView{Root: path(c, ""), Now: a.Now(), Filter: deliveryFilter(p.Given)}
	v.Filter.Search = p.Given.Get("q")
	if v.Wrong, err = handlers.FormErrors(err); err != nil {
		return err
	}
	if v.Wrong == nil && p.Search != "" {
		to, err := a.found(c, p.Search)
		switch {
		case err == nil && to != "":
			return c.Redirect(to)
		case fault.Is(err, fault.ErrNotFound.Code):
			v.Wrong = map[string]string{"q": "No object in this tenant has this id. Check that you copied all of it."}
		case err != nil:
			return err
		default:
			v.Wrong = map[string]string{"q": "That isn't an id. Paste a complete id with its prefix, or use the search for anything else."}
		}
	}
	err = c.Tx(func(q *db.Tx) (err error) {
		if v.Endpoints, v.Types, err = a.filterChoices(c, q); err != nil {
			return err
		}
		// The endpoint's tabs stay where another part of the filter is invalid.
		if v.Of, err = a.headOf(c, q, p.Endpoint); err != nil || v.Wrong != nil {
			return err
		}
		return a.fillDeliveries(c, q, p, &v)
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Deliveries", "deliveries")
	return c.Render(statusOf(v.Wrong), pages.Deliveries(v))
}

// statusOf is the status of a page whose form has errors or has none.
func statusOf(wrong map[string]string) int {
	if len(wrong) > 0 {
		return http.StatusBadRequest
	}
	return http.StatusOK
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

func deliveryFilter(q url.Values) pages.DeliveryFilter {
	return pages.DeliveryFilter{
		Status:   q.Get("status"),
		Type:     q.Get("type"),
		Endpoint: q.Get("endpoint"),
		Channel:  q.Get("channel"),
		Since:    q.Get("since"),
		Until:    q.Get("until"),
		Wait:     q.Get("wait"),
		Job:      q.Get("job"),
		Batch:    q.Get("batch"),
		Archived: q.Get("archived") == "true",
	}
}

func (a *dashboard) fillDeliveries(c *handlers.Call, q *db.Tx, p handlers.Page, v *pages.DeliveriesView) error {
	found, err := handlers.ReadPage(p, func(d show.Delivery) []byte { return d.ID[:] }, func(r show.Range) (deliveries.Page, error) {
		l := p.Deliveries()
		l.Range = r
		return deliveries.List(c.Ctx(), q, c.Actor.Tenant, l)
	})
	if err != nil {
		return err
	}
	v.Newer, v.Older, v.Short = found.Newer, found.Older, found.Short
	v.List = a.deliveryRows(c, p, found.Rows)
	if v.Older == "" && !waits(p) && p.StoredDay.IsZero() {
		v.Stored, err = a.storedDays(c, q, p)
		v.Stored.Noun, v.Stored.Here = pages.StoredDeliveries, p.Here()+pages.StoredAnchor
	}
	return err
}

// waits reports whether a list is of deliveries that wait: none of these is in storage.
func waits(p handlers.Page) bool {
	s, ok := delivery.ParseStatus(p.Status)
	return p.Wait != "" || ok && !s.Terminal()
}

// deliveryRows is the part of the page that is refreshed. Its rows stay the same when others are added.
func (a *dashboard) deliveryRows(c *handlers.Call, p handlers.Page, found []show.Delivery) pages.DeliveryListView {
	v := pages.DeliveryListView{
		Root:  path(c, ""),
		Here:  p.Address(),
		Rows:  found,
		Acts:  c.Actor.May(access.ActOnDeliveries),
		Plain: deliveryFilter(p.Given),
	}
	if !p.StoredDay.IsZero() {
		v.Acts = false // jobs skip days in storage
		return v       // and their rows don't change
	}
	texts := make([]string, len(found))
	for i, d := range found {
		texts[i] = id.Delivery.Format(d.ID)
	}
	live := url.Values{"rows": {strings.Join(texts, ",")}, "top": {id.Delivery.Format(db.NewID())}}
	if len(texts) > 0 {
		live.Set("top", texts[0])
	}
	for name, values := range p.Given {
		if live[name] == nil {
			live[name] = values
		}
	}
	v.Live = v.Root + "/deliveries/live?" + live.Encode()
	return v
}

// maxNews is up to how many new deliveries are counted.
const maxNews = 20

// refreshDeliveries shows the current state of the rows on a page, and how many are newer. Without a page to refresh
// it redirects to the list.
func (a *dashboard) refreshDeliveries(c *handlers.Call) error {
	list := deliveryList
	list.Own = []string{"rows", "top"}
	list.Path = path(c, "/deliveries")
	p, err := c.Page(list)
	if err != nil {
		return err
	}
	var ids []id.UUID
	for text := range strings.SplitSeq(p.Given.Get("rows"), ",") {
		if deliveryID, err := id.Delivery.Parse(text); err == nil && len(ids) < rows {
			ids = append(ids, deliveryID)
		}
	}
	top, err := id.Delivery.Parse(p.Given.Get("top"))
	if err != nil {
		return c.Redirect(p.Address())
	}
	var v pages.DeliveryListView
	err = c.Tx(func(q *db.Tx) error {
		l := p.Deliveries()
		l.Ascending, l.After, l.Limit = true, top[:], maxNews
		newer, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, l)
		if err != nil {
			return err
		}
		found, err := deliveries.ReadMany(c.Ctx(), q, c.Actor.Tenant, ids)
		v = a.deliveryRows(c, p, found)
		v.News, v.Many = len(newer.Rows), newer.Next != nil
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.DeliveryList(v))
}
