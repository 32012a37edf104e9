package handlers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/deliveries"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// storedHeader names the day in storage from which a response was read.
const storedHeader = "Posthorn-Stored-Day"

// neverStored is the age of what can't be in storage yet: days stay for two days at least.
const neverStored = 24 * time.Hour

// borrow reads from storage what the path names, if it is of a day in storage and the route reads, replays, or
// expunges it.
func (c *Call) borrow(r Route) error {
	if c.kit.store == nil || c.Actor.Tenant.IsZero() || r.Method != http.MethodGet && !r.Replays && !r.Expunges {
		return nil
	}
	for param, read := range map[string]struct {
		kind id.Kind
		of   func(context.Context, *db.DB, days.Source, id.UUID, id.UUID) (*days.Lent, error)
	}{"event_id": {id.Event, days.OfEvent}, "delivery_id": {id.Delivery, days.OfDelivery}} {
		named, malformed := read.kind.Parse(c.Param(param))
		if malformed != nil || c.kit.now().Sub(named.Time()) < neverStored {
			continue
		}
		lent, err := read.of(c.Ctx(), c.kit.db, c.kit.store, c.Actor.Tenant, named)
		if err != nil {
			return c.unreachable(err)
		}
		if lent != nil {
			c.replays, c.expunges = r.Replays, r.Expunges
			c.lend(lent)
			return nil
		}
	}
	return nil
}

// unreachable logs why the store could not be read, and returns what the caller learns.
func (c *Call) unreachable(err error) error {
	if !errors.Is(err, history.ErrUnreachable) {
		return err
	}
	c.kit.log.Warn("history in storage could not be read", "tenant", id.Tenant.Format(c.Actor.Tenant), "path", c.FullPath(), "error", err)
	return history.ErrUnreachable
}

// lend makes the call's transactions see rows of a day in storage, and says so.
func (c *Call) lend(lent *days.Lent) {
	c.lent = lent
	c.Header(storedHeader, lent.Day.Format(time.DateOnly))
	next := lent.Day.AddDate(0, 0, 1)
	c.Warn(layout.Warning{
		Title: "This day is in storage",
		Text: "The history of " + lent.Day.Format("2 January 2006") + " is read from storage, which takes longer. " +
			"Before you archive, or act on many, bring the day back.",
		Href: "/t/" + id.Tenant.Format(c.Actor.Tenant) + "/deliveries?" + url.Values{
			string(BySince): {lent.Day.Format(time.RFC3339)},
			string(ByUntil): {next.Format(time.RFC3339)},
		}.Encode() + "#storage",
		Label: "Bring the day back",
		Tone:  components.Info,
	})
}

// A list of a day in storage reads as many rows as fit on its page. With a filter that storage doesn't know it reads
// more, of which some match.
const filteredRows = 1000

// storedFilters are the parameters of lists that storage knows: see history.Wanted.
var storedFilters = []string{
	"cursor", "limit", "order", "after", "before",
	string(ByStoredDay), string(BySince), string(ByUntil), string(ByType), string(ByEndpoint), string(ByArchived),
}

// lendList reads from storage the rows of a day with which a page of a list begins. The page then ends with them.
func (c *Call) lendList(p *Page, query url.Values) error {
	if c.kit.store == nil {
		return errNotStored
	}
	wanted := history.Wanted{
		Events:    p.list.Name != Deliveries.Name,
		Ascending: p.Ascending,
		Rows:      p.Limit + 1,
		Type:      p.Type,
		Endpoint:  p.Endpoint,
		Archived:  p.Archived,
	}
	wanted.Low, wanted.High = p.Between(p.StoredDay, time.Time{})
	for name, values := range query {
		if !slices.Contains(storedFilters, name) && values[0] != "" {
			wanted.Rows = filteredRows
		}
	}
	part, err := days.OfList(c.Ctx(), c.kit.db, c.kit.store, c.Actor.Tenant, p.StoredDay, wanted)
	if err != nil {
		return c.unreachable(err)
	}
	if part.Lent == nil {
		return errNotStored
	}
	if p.Since.Before(part.Since) {
		p.Since = part.Since
	}
	if p.Until.IsZero() || p.Until.After(part.Until) {
		p.Until = part.Until
	}
	p.rest = part.Next
	c.lend(part.Lent)
	return nil
}

var errNotStored = fault.InvalidFields([]fault.Field{{
	Name:   string(ByStoredDay),
	Code:   "stored_day_unknown",
	Detail: "No part of this day is in storage. GET /history lists the days that are. Leave stored_day out to list the others.",
}})

// ofStoredDay explains why an event or a delivery that the path names was not found, if it is of a day that the tenant
// has in storage. Any id of such a day gets the same response: nobody learns which ids there are.
func (c *Call) ofStoredDay(err error) error {
	if c.lent != nil || !fault.Is(err, fault.ErrNotFound.Code) || c.Actor.Tenant.IsZero() || c.kit.db == nil {
		return err
	}
	for param, kind := range map[string]id.Kind{"event_id": id.Event, "delivery_id": id.Delivery} {
		named, malformed := kind.Parse(c.Param(param))
		if malformed != nil {
			continue
		}
		explained := err
		if failed := c.Tx(func(q *db.Tx) error {
			explained = deliveries.Missing(c.Ctx(), q, c.Actor.Tenant, named, err)
			return nil
		}); failed == nil {
			return explained
		}
	}
	return err
}

// explainStored makes an error page say of which day its object is, and offers to bring that day back.
func (c *Call) explainStored(day time.Time, r *layout.Refusal) {
	var found []history.Day
	_ = c.Tx(func(q *db.Tx) (err error) { // without its state the page still says what is known
		found, err = days.InStorage(c.Ctx(), q, c.Actor.Tenant, day, day)
		return err
	})
	name, tenant := day.Format("2 January 2006"), "/t/"+id.Tenant.Format(c.Actor.Tenant)
	r.Back, r.BackLabel = tenant+"/deliveries", "Back to the deliveries"
	if c.Param("event_id") != "" {
		r.Back, r.BackLabel = tenant+"/events", "Back to the events"
	}
	switch {
	case len(found) > 0 && found[0].State == history.Returning:
		r.Title, r.Detail = "This day is being brought back", "The history of "+name+" is being brought back from storage. Open this page again in some minutes."
		if found[0].Delayed {
			r.Detail = "The history of " + name + " is being brought back from storage. " + history.Delayed
		}
	case c.Actor.May(access.ActOnDeliveries):
		r.Title, r.Detail = "This day is in storage", "The history of "+name+" is in storage. Bring the day back to open this page."
		here := c.Request.URL.RequestURI()
		if c.Request.Method != http.MethodGet {
			here = c.referer()
		}
		r.Act = &layout.Act{
			Action: tenant + "/history/" + day.Format(time.DateOnly) + "/restore",
			Label:  "Bring back",
			Fields: map[string]string{"next": here},
		}
	default:
		r.Title, r.Detail = "This day is in storage", "The history of "+name+" is in storage. An owner, an admin, or a developer can bring the day back."
	}
}
