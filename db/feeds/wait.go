package feeds

import (
	"context"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// Watch tells readers of events that were stored since. One look at the database serves all readers of a process, and
// none runs while nobody waits.
type Watch struct {
	db      *db.DB
	mu      sync.Mutex
	tenants map[id.UUID]*watched
	looking bool
}

// watched is a tenant that somebody waits for.
type watched struct {
	waiting int
	newest  int64
	changed chan struct{} // closed when newest grows
}

// NewWatch returns a watch that does nothing until somebody waits.
func NewWatch(d *db.DB) *Watch { return &Watch{db: d, tenants: map[id.UUID]*watched{}} }

// A look comes this often, and rests at least as many times as long as it lasted: it never has more than a twentieth of
// a connection.
const (
	lookEvery = 250 * time.Millisecond
	lookRest  = 20
	lookLimit = 5 * time.Second
)

// Await waits for an event behind a place of a tenant's log. False: nothing came in time, the context ended, or closing
// was closed; it can be nil.
func (w *Watch) Await(ctx context.Context, tenant id.UUID, behind feed.Place, most time.Duration, closing <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if closing != nil {
		go func() {
			select {
			case <-closing:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if behind.Position != feed.Older {
		return w.wait(ctx, tenant, behind.Position) == nil
	}
	select { // the log has not settled, which takes a moment
	case <-ctx.Done():
		return false
	case <-time.After(lookEvery):
		return true
	}
}

// wait returns when the tenant has an event in a row of its log above a position, or when the context ends.
func (w *Watch) wait(ctx context.Context, tenant id.UUID, position int64) error {
	w.mu.Lock()
	t := w.tenants[tenant]
	if t == nil {
		t = &watched{newest: -1, changed: make(chan struct{})}
		w.tenants[tenant] = t
	}
	t.waiting++
	if !w.looking {
		w.looking = true
		go w.look()
	}
	w.mu.Unlock()
	defer w.leave(tenant, t)
	for {
		w.mu.Lock()
		newest, changed := t.newest, t.changed
		w.mu.Unlock()
		if newest > position {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *Watch) leave(tenant id.UUID, t *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		delete(w.tenants, tenant)
	}
}

// look asks the database until nobody waits. An error is the next look's to overcome: readers wait no longer than they
// asked for.
func (w *Watch) look() {
	for {
		w.mu.Lock()
		tenants := make([]id.UUID, 0, len(w.tenants))
		for t := range w.tenants {
			tenants = append(tenants, t)
		}
		if w.looking = len(tenants) > 0; !w.looking {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		began := time.Now()
		w.ask(tenants)
		time.Sleep(max(lookEvery, lookRest*time.Since(began)))
	}
}

func (w *Watch) ask(tenants []id.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	var rows []sql.NewestOfLogsRow
	err := w.db.Ingest(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.NewestOfLogs(ctx, tenants)
		return err
	})
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range rows {
		if t := w.tenants[r.TenantID]; t != nil && r.Position > t.newest {
			t.newest = r.Position
			close(t.changed)
			t.changed = make(chan struct{})
		}
	}
}
