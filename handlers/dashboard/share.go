package dashboard

import (
	"cmp"
	"net/http"
	"strconv"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/queue"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// SharedRoutes is the route table of what such a link shows, without signing in.
func SharedRoutes(d Deps, addresses *handlers.Addresses) []handlers.Route {
	s := &shared{dashboard: &dashboard{Deps: d}, addresses: addresses}
	return []handlers.Route{{
		Method:  http.MethodGet,
		Path:    delivery.SharePath + ":" + handlers.TenantParam,
		Access:  handlers.Access{Public: true},
		Handler: s.show,
	}}
}

type shared struct {
	*dashboard
	addresses *handlers.Addresses
}

// show shows one delivery to somebody who has its link. Its requests come without signatures.
func (s *shared) show(c *handlers.Call) error {
	c.VisitorOf(account.PortalAccess{}) // nobody's brand, until the link is known
	if err := s.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	tenant, token := c.PathID(handlers.TenantParam), c.Query("token")
	v := pages.SharedView{Self: delivery.ShareURL(tenant, token)}
	var sent deliveries.Sent
	var link show.DeliveryShare
	var name string
	err := s.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) (err error) {
		if link, name, err = deliveries.OpenShare(c.Ctx(), q, tenant, token, c.Actor.Address); err != nil {
			return err
		}
		if v.Delivery, err = deliveries.Read(c.Ctx(), q, tenant, link.DeliveryID); err != nil {
			return err
		}
		if v.Attempts, err = deliveries.Attempts(c.Ctx(), q, v.Delivery, attemptsShown); err != nil {
			return err
		}
		v.Delivery = v.Delivery.Diagnosed(v.Attempts)
		sent, err = deliveries.ReadSent(c.Ctx(), q, s.Keys, queue.Links{BaseURL: s.BaseURL}, v.Delivery) // a signed link can outlive this one
		return err
	})
	if db.IsMissing(err) || fault.Is(err, fault.ErrNotFound.Code) {
		err = delivery.ErrShareGone
	}
	if err != nil {
		return err
	}
	if len(v.Attempts) > 0 {
		detail := attemptDetail(v.Delivery, chosenAttempt(v.Attempts, c.Query("attempt")), true)
		fillRequest(&detail, sent.Request(detail.Attempt), v.Delivery)
		v.Chosen = &detail
	}
	v.ExpiresAt = link.ExpiresAt
	if link.Brand == "" {
		link.Brand = name
	}
	c.VisitorOf(account.PortalAccess{ID: id.None, Brand: link.Brand, Accent: link.Accent})
	v.Shell = c.Shell(v.EventType, "")
	h := c.Writer.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	return c.Render(http.StatusOK, pages.Shared(v))
}

// fillShares adds a delivery's links to its page, for those who can share it.
func (a *dashboard) fillShares(c *handlers.Call, q *db.Tx, v *pages.DeliveryView, payloads bool) (err error) {
	if v.Shares = payloads && c.Actor.May(access.ActOnDeliveries); v.Shares {
		v.Links, err = deliveries.Shares(c.Ctx(), q, c.Actor.Tenant, v.ID)
	}
	return err
}

// shareDelivery creates a link to a delivery. The page shows its URL once.
func (a *dashboard) shareDelivery(c *handlers.Call) error {
	deliveryID := c.PathID("delivery_id")
	form, err := c.Form()
	if err != nil {
		return err
	}
	seconds, _ := strconv.Atoi(form.Get("expires_in")) // an invalid number is out of the range
	if wrong := delivery.ShareFaults(seconds); len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	n := deliveries.NewShare{Tenant: c.Actor.Tenant, Delivery: deliveryID, Seconds: seconds, By: c.Author()}
	if p := c.Actor.Portal; p != nil {
		n.Brand, n.Accent = p.Brand, p.Accent
	}
	token := ""
	err = c.Tx(func(q *db.Tx) error {
		if payloads, err := a.readsPayloads(c, q); err != nil || !payloads {
			return cmp.Or(err, error(errPayloads))
		}
		_, token, err = deliveries.CreateShare(c.Ctx(), q, n)
		return err
	})
	if e := fault.As(err); e != nil && e.Kind == fault.Conflict {
		return a.showStale(c, e)
	}
	if err != nil {
		return err
	}
	back := path(c, "/deliveries/") + id.Delivery.Format(deliveryID)
	link := a.BaseURL + delivery.ShareURL(c.Actor.Tenant, token)
	if err := c.KeepOnce(back, link); err != nil {
		return err
	}
	return c.Redirect(back)
}

func (a *dashboard) revokeShare(c *handlers.Call) error {
	deliveryID, shareID := c.PathID("delivery_id"), c.PathID("share_id")
	err := c.Tx(func(q *db.Tx) error {
		return deliveries.RevokeShare(c.Ctx(), q, c.Actor.Tenant, deliveryID, shareID, c.Author())
	})
	if err != nil {
		return err
	}
	return c.Done(path(c, "/deliveries/")+id.Delivery.Format(deliveryID), "Link revoked. It opens nothing anymore.")
}
