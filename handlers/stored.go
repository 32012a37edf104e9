package handlers

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/deliveries"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/views/layout"
)

// ofStoredDay explains why an event or a delivery that the path names was not found, if it is of a day that the tenant
// has in storage. Any id of such a day gets the same response: nobody learns which ids there are.
func (c *Call) ofStoredDay(err error) error {
	if !fault.Is(err, fault.ErrNotFound.Code) || c.Actor.Tenant.IsZero() || c.kit.db == nil {
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
