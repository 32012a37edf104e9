package dashboard

import (
	"context"
	"net/http"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Pages that are open hear of changes by a stream of server-sent events, and then request their live parts as they do
// without it every few seconds. What has changed is not in the stream, so it carries nothing of the tenant's.
const (
	lookEvery = 2 * time.Second
	// lookRest is how many times as long as a look took the next one waits, at least.
	lookRest = 20

	streamsOfSession = 6
	streamsOfTenant  = 200
	streamsInAll     = 2000
)

// changes says to the streams of this process what has changed. There is one look for each tenant whose pages are open.
type changes struct {
	look func(context.Context, id.UUID) (string, error)

	mu       sync.Mutex
	tenants  map[id.UUID]*watched
	sessions map[id.UUID]int
	open     int
}

// watched is a tenant with open streams.
type watched struct {
	streams map[chan struct{}]bool
	last    string // empty: not looked at yet
	stop    context.CancelFunc
}

func newChanges(d *db.DB, now func() time.Time) *changes {
	return &changes{
		look: func(ctx context.Context, tenant id.UUID) (pulse string, err error) {
			err = d.Tenant(ctx, tenant, func(q *db.Tx) error {
				pulse, err = ledger.Pulse(ctx, q, tenant, now())
				return err
			})
			return pulse, err
		},
		tenants:  map[id.UUID]*watched{},
		sessions: map[id.UUID]int{},
	}
}

// join opens a stream of changes, which begins with one. ok is false at the bounds; the page then asks every few
// seconds. leave closes the stream.
func (h *changes) join(tenant, session id.UUID) (changed <-chan struct{}, leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tenants[tenant]
	if h.open >= streamsInAll || h.sessions[session] >= streamsOfSession || w != nil && len(w.streams) >= streamsOfTenant {
		return nil, nil, false
	}
	stream := make(chan struct{}, 1)
	if w == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w = &watched{streams: map[chan struct{}]bool{}, stop: cancel}
		h.tenants[tenant] = w
		go h.watch(ctx, tenant, w)
	} else if w.last != "" {
		stream <- struct{}{}
	}
	w.streams[stream] = true
	h.sessions[session]++
	h.open++
	return stream, func() { h.leave(tenant, session, stream) }, true
}

func (h *changes) leave(tenant, session id.UUID, stream chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tenants[tenant]
	delete(w.streams, stream)
	if len(w.streams) == 0 {
		w.stop()
		delete(h.tenants, tenant)
	}
	if h.sessions[session]--; h.sessions[session] == 0 {
		delete(h.sessions, session)
	}
	h.open--
}

// watch looks for changes of a tenant until its last stream is closed. A look that fails is repeated.
func (h *changes) watch(ctx context.Context, tenant id.UUID, w *watched) {
	for {
		began := time.Now()
		if pulse, err := h.look(ctx, tenant); err == nil {
			h.tell(w, pulse)
		}
		rest := time.NewTimer(max(lookEvery, lookRest*time.Since(began)))
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

func (h *changes) tell(w *watched, pulse string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if pulse == w.last {
		return
	}
	w.last = pulse
	for stream := range w.streams {
		select {
		case stream <- struct{}{}:
		default: // has not heard of the change before
		}
	}
}

// streamChanges tells an open page when something has changed, until the session ends or this process stops.
func (a *dashboard) streamChanges(c *handlers.Call) error {
	changed, leave, ok := a.changes.join(c.Actor.Tenant, c.Actor.Session.ID)
	if !ok {
		c.Writer.WriteHeader(http.StatusNoContent) // after which a browser doesn't connect again by itself
		c.Writer.WriteHeaderNow()
		return nil
	}
	defer leave()
	s, err := c.BeginStream()
	if err != nil {
		return nil // the browser has disconnected: nobody would read the error
	}
	beat := time.NewTicker(a.Beat)
	defer beat.Stop()
	for name := "open"; s.Event(0, name, struct{}{}) == nil; {
		select {
		case <-c.Ctx().Done():
			return nil
		case <-a.Closing:
			return nil
		case <-changed:
			name = "change"
		case <-beat.C:
			if c.Still() != nil {
				return nil
			}
			name = "beat"
		}
	}
	return nil
}
