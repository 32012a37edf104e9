// Package links serves the data of an event to whoever has the signed link of one of its deliveries, without an API
// key.
package links

import (
	"context"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB    *db.DB
	Keys  *seal.Ring
	Now   func() time.Time
	Large *handlers.LargeData
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
		Timeout: handlers.DataTimeout,
		Handler: s.open,
	}}
}

// open responds with the data of the event. What has no valid signature costs no query.
func (s *server) open(c *handlers.Call) error {
	l, err := s.read(c, c.Param("token"))
	if err != nil {
		return err
	}
	if !s.buckets.Take(l.Delivery) {
		return delivery.ErrLinkBusy
	}
	found, err := s.find(c.Ctx(), l)
	if err != nil {
		return err
	}
	return c.AnswerData(s.Large, found)
}

// find reads the event, within the time of any other request.
func (s *server) find(ctx context.Context, l delivery.Link) (found deliveries.Whole, err error) {
	ctx, cancel := context.WithTimeout(ctx, handlers.DefaultTimeout)
	defer cancel()
	err = s.DB.Tenant(ctx, l.Tenant, func(q *db.Tx) (err error) {
		found, err = deliveries.OpenLink(ctx, q, l)
		return err
	})
	return found, err
}

func (s *server) read(c *handlers.Call, token string) (l delivery.Link, err error) {
	text, signed := s.Keys.OpenToken(delivery.LinkPurpose, token)
	if !signed {
		text, _ = seal.ReadToken(token)
	}
	l, ok := delivery.ParseLink(text)
	if ok && !signed {
		signed, err = accounts.ArrivedEventLink(c.Ctx(), s.DB, s.Keys, l.Tenant, token)
	}
	if err == nil && !(ok && signed) {
		err = delivery.ErrLinkUnknown
	}
	return l, err
}
