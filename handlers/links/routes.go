// Package links serves the data of an event to whoever has the signed link of one of its deliveries, without an API
// key.
package links

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB      *db.DB
	Keys    *seal.Ring
	Now     func() time.Time
	Objects Objects // nil: no event has its data in object storage
	Log     *slog.Logger
}

// Objects has the data of large events.
type Objects interface {
	Get(ctx context.Context, name string, most int64) ([]byte, error)
}

// maxLoading is how many objects are in memory, at most 10 MiB each.
const maxLoading = 8

// openWithin is for the store: a receiver waits for what it is told to get.
const openWithin = 30 * time.Second

type server struct {
	Deps
	buckets *handlers.Buckets[id.UUID] // by delivery
	loading chan struct{}
}

// rate is how often one link can be opened. A receiver opens it once for each attempt.
var rate = handlers.Rate{PerSecond: 5, Burst: 50}

// Routes is the route table.
func Routes(d Deps) []handlers.Route {
	if d.Now == nil {
		d.Now = time.Now
	}
	s := &server{d, handlers.NewBuckets[id.UUID](rate, d.Now), make(chan struct{}, maxLoading)}
	return []handlers.Route{{
		Method:  http.MethodGet,
		Path:    delivery.LinkPath + ":token",
		Access:  handlers.Access{Public: true},
		Timeout: openWithin,
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
	if found.Object != "" {
		leave, err := s.load(c.Ctx(), &found)
		if err != nil {
			return err
		}
		defer leave()
	}
	protect(c.Writer.Header())
	c.Data(http.StatusOK, found.ContentType, found.Data)
	return nil
}

// find reads the event, within the time of any other request.
func (s *server) find(ctx context.Context, l delivery.Link) (found deliveries.Linked, err error) {
	ctx, cancel := context.WithTimeout(ctx, handlers.DefaultTimeout)
	defer cancel()
	err = s.DB.Tenant(ctx, l.Tenant, func(q *db.Tx) (err error) {
		found, err = deliveries.OpenLink(ctx, q, l)
		return err
	})
	return found, err
}

// load reads the data of a large event, and compares it with its digest. The returned function ends its place.
func (s *server) load(ctx context.Context, found *deliveries.Linked) (leave func(), err error) {
	if s.Objects == nil {
		return nil, event.ErrNotRead
	}
	select {
	case s.loading <- struct{}{}:
		leave = func() { <-s.loading }
	case <-ctx.Done():
		return nil, event.ErrNotRead
	}
	data, err := s.Objects.Get(ctx, found.Object, event.MaxLargePayload)
	whole := false
	if err == nil {
		*found, whole = found.Loaded(data)
	}
	if !whole {
		leave()
		s.Log.Error("the data of a large event could not be read", "object", found.Object, "error", err)
		return nil, event.ErrNotRead
	}
	return leave, nil
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

// protect keeps a browser from showing data as a page of this server: the producer chose its content type.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Content-Disposition", "attachment")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}
