// Package links serves the data of an event to whoever has the signed link of one of its deliveries, without an API key.
package links

import (
	"context"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB   *db.DB
	Keys *seal.Ring
	Now  func() time.Time
	// Elsewhere reports whether another home has signed a link of a tenant that moved here; nil: there are no homes.
	Elsewhere func(ctx context.Context, token string) (signed bool, err error)
}

type server struct {
	Deps
	buckets *handlers.Buckets[id.UUID] // by delivery
}

// rate is how often one link can be opened. A receiver opens it once for each attempt.
var rate = handlers.Rate{PerSecond: 5, Burst: 50}

// Routes is the route table.
func Routes(d Deps) []handlers.Route {
	if d.Now == nil {
		d.Now = time.Now
	}
	s := &server{d, handlers.NewBuckets[id.UUID](rate, d.Now)}
	return []handlers.Route{{
		Method:  http.MethodGet,
		Path:    delivery.LinkPath + ":token",
		Access:  handlers.Access{Public: true},
		Handler: s.open,
	}}
}

// open responds with the data of the event. What has no valid signature costs no look into the database.
func (s *server) open(c *handlers.Call) error {
	l, err := s.read(c, c.Param("token"))
	if err != nil {
		return err
	}
	if !s.buckets.Take(l.Delivery) {
		return delivery.ErrLinkBusy
	}
	var found deliveries.Linked
	err = s.DB.Tenant(c.Ctx(), l.Tenant, func(q *db.Tx) (err error) {
		found, err = deliveries.OpenLink(c.Ctx(), q, l)
		return err
	})
	if err != nil {
		return err
	}
	protect(c.Writer.Header())
	c.Data(http.StatusOK, found.ContentType, found.Data)
	return nil
}

func (s *server) read(c *handlers.Call, token string) (l delivery.Link, err error) {
	text, signed := s.Keys.OpenToken(delivery.LinkPurpose, token)
	if !signed && s.Elsewhere != nil {
		if text, signed = seal.ReadToken(token); signed {
			signed, err = s.Elsewhere(c.Ctx(), token)
		}
	}
	if err != nil {
		return l, err
	}
	l, ok := delivery.ParseLink(text)
	if !signed || !ok {
		return l, delivery.ErrLinkUnknown
	}
	return l, nil
}

// protect keeps a browser from showing data as a page of this server: the producer chose its content type.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Content-Disposition", "attachment")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}
