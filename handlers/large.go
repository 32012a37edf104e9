package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"posthorn/db/deliveries"
	"posthorn/domain/event"
)

// Objects has the data of large events.
type Objects interface {
	Get(ctx context.Context, name string, most int64) ([]byte, error)
}

// DataTimeout is for routes that respond with the data of an event: the store has to respond, too.
const DataTimeout = 30 * time.Second

// maxLoading is how many objects a process has in memory, at most 10 MiB each.
const maxLoading = 8

// LargeData reads the data of large events, for everything that serves it. Nil, or without objects, it reads none.
type LargeData struct {
	objects Objects
	log     *slog.Logger
	loading chan struct{}
}

// NewLargeData returns a reader of objects; nil: no event has its data there.
func NewLargeData(objects Objects, log *slog.Logger) *LargeData {
	return &LargeData{objects, log, make(chan struct{}, maxLoading)}
}

// load reads the data of a large event, and compares it with its digest. The returned function ends its place.
func (l *LargeData) load(ctx context.Context, found *deliveries.Whole) (leave func(), err error) {
	if l == nil || l.objects == nil {
		return nil, event.ErrNotRead
	}
	select {
	case l.loading <- struct{}{}:
		leave = func() { <-l.loading }
	case <-ctx.Done():
		return nil, event.ErrNotRead
	}
	data, err := l.objects.Get(ctx, found.Object, event.MaxLargePayload)
	whole := false
	if err == nil {
		*found, whole = found.Loaded(data)
	}
	if !whole {
		leave()
		l.log.Error("the data of a large event could not be read", "object", found.Object, "error", err)
		return nil, event.ErrNotRead
	}
	return leave, nil
}

// AnswerData responds with the data of an event as it was emitted. A browser never shows it as a page of this server:
// the producer chose its content type.
func (c *Call) AnswerData(large *LargeData, found deliveries.Whole) error {
	if found.Object != "" {
		leave, err := large.load(c.Ctx(), &found)
		if err != nil {
			return err
		}
		defer leave()
	}
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	if h.Get("Content-Disposition") == "" {
		h.Set("Content-Disposition", "attachment")
	}
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	c.Data(http.StatusOK, found.ContentType, found.Data)
	return nil
}
