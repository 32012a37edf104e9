package emit

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// announcer notifies other processes which endpoints have new rows. What gathers while one notification is sent goes
// into the next. A lost one costs a second, not a delivery.
type announcer struct {
	db   *db.DB
	log  *slog.Logger
	mu   sync.Mutex
	ids  map[id.UUID]struct{}
	wake chan struct{}
}

func newAnnouncer(d *db.DB, log *slog.Logger) *announcer {
	return &announcer{db: d, log: log, ids: map[id.UUID]struct{}{}, wake: make(chan struct{}, 1)}
}

func (a *announcer) add(endpoints []id.UUID) {
	if len(endpoints) == 0 {
		return
	}
	a.mu.Lock()
	for _, e := range endpoints {
		a.ids[e] = struct{}{}
	}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *announcer) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.ids
	a.ids = map[id.UUID]struct{}{}
	if len(ids) == 0 {
		return ""
	}
	return db.WakePayload(slices.Collect(maps.Keys(ids)), false)
}

func (a *announcer) run(ctx context.Context) {
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
		payload := a.take()
		if payload == "" {
			continue
		}
		send, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := a.db.Ingest(send, func(q *sql.Queries) error { return q.NotifyWake(send, payload) })
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Warn("workers were not told of new rows; they will find them", "error", err)
		}
	}
}
