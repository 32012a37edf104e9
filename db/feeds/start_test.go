package feeds

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// startOf creates an endpoint that begins in the past.
func (h *house) startOf(start feed.Start) id.UUID {
	h.t.Helper()
	hook := h.endpoint(nil)
	h.in(func(q *sql.Queries) error {
		_, err := StartAt(h.t.Context(), q, h.tenant, hook, start, time.Now())
		return err
	})
	return hook
}

// queued are the events of the deliveries to an endpoint, in the order in which a worker sends them.
func (h *house) queued(endpointID id.UUID) (events []id.UUID) {
	h.t.Helper()
	rows, err := h.sql.Query(context.Background(), "SELECT event_id FROM queue WHERE endpoint_id = $1 ORDER BY seq", endpointID)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one id.UUID
		if err := rows.Scan(&one); err != nil {
			h.t.Fatal(err)
		}
		events = append(events, one)
	}
	return events
}

// caughtUp runs the job until the endpoint has caught up.
func (h *house) caughtUp(endpointID id.UUID) {
	h.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		if err := CatchUp(h.t.Context(), h.db); err != nil {
			h.t.Fatal(err)
		}
		var left int
		if err := h.sql.QueryRow(context.Background(), "SELECT count(*) FROM endpoint_starts WHERE endpoint_id = $1", endpointID).Scan(&left); err != nil {
			h.t.Fatal(err)
		}
		if left == 0 {
			return
		}
	}
	h.t.Fatal("the endpoint does not catch up")
}

func TestAnEndpointBeginsInThePastInTheOrderOfAcceptance(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	now := time.Now()
	var want []id.UUID
	for i := range 3 {
		one := at(now.Add(time.Duration(i-10) * time.Minute))
		want = append(want, one)
		h.exec("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.completed', '{}', 1)", h.tenant, one.Time(), one)
	}
	hook := h.startOf(feed.Start{Oldest: true})
	late, early := at(now.Add(-time.Hour)), at(now)
	open := h.begin(late)
	h.emit(early)
	if err := CatchUp(t.Context(), h.db); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := h.sql.QueryRow(t.Context(), "SELECT count(*) FROM endpoint_starts").Scan(&left); err != nil || left != 1 {
		t.Fatalf("the endpoint caught up before a transaction that can add to its backlog: %d, %v", left, err)
	}
	h.end(open, true)
	h.settle()
	h.caughtUp(hook)
	if got := h.queued(hook); !slices.Equal(got, append(want, late, early)) {
		t.Errorf("queued %v, want %v", got, append(want, late, early))
	}
}

// rewind rewinds an endpoint.
func (h *house) rewind(endpointID id.UUID, start feed.Start) (made show.Endpoint) {
	h.t.Helper()
	h.in(func(q *sql.Queries) (err error) {
		ed := endpoints.Editor{Keys: h.ring, By: db.Author{Kind: "command"}}
		made, err = Rewind(h.t.Context(), q, ed, Rewound{Tenant: h.tenant, Endpoint: endpointID, Start: start, Now: time.Now()})
		return err
	})
	return made
}

// committer routes events and fans them out, as the API does.
func (h *house) committer() (context.Context, *emit.Committer) {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := emit.New(emit.Config{DB: h.db, Log: slog.New(slog.DiscardHandler)})
	go func() { done <- c.Run(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	return ctx, c
}

// emitter emits one event at a time.
func (h *house) emitter() (emitOne func() id.UUID) {
	h.t.Helper()
	ctx, c := h.committer()
	return func() id.UUID {
		h.t.Helper()
		item := emit.Item{Emission: event.Emission{Type: "order.completed", Data: []byte("{}"), Key: "k"}}
		r := c.Emit(ctx, h.tenant, []emit.Item{item})[0]
		if r.Err != nil {
			h.t.Fatal(r.Err)
		}
		return r.ID
	}
}

func TestARewoundEndpointGetsEverythingAgainAndLiveEventsBehindIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	hook := h.endpoint(func(s *endpoint.Settings) { s.Ordering = "key" })
	emitOne := h.emitter()
	var events []id.UUID
	for range 3 {
		events = append(events, emitOne())
	}
	if got := h.queued(hook); !slices.Equal(got, events) {
		t.Fatalf("queued %v, want %v", got, events)
	}
	h.exec("DELETE FROM queue") // they were delivered
	if made := h.rewind(hook, feed.Start{Oldest: true}); made.StartingAt.IsZero() {
		t.Error("it does not catch up")
	}
	events = append(events, emitOne())
	if got := h.queued(hook); len(got) != 0 {
		t.Fatalf("a live event is ahead of the backlog: %v", got)
	}
	h.settle()
	h.caughtUp(hook)
	events = append(events, emitOne())
	if got := h.queued(hook); !slices.Equal(got, events) {
		t.Errorf("queued %v, want %v", got, events)
	}
	var chained, keyed int
	if err := h.sql.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE d.replay_of IS NOT NULL), count(q.order_key) FROM queue q JOIN deliveries d ON d.id = q.delivery_id`).Scan(&chained, &keyed); err != nil {
		t.Fatal(err)
	}
	if chained != 3 || keyed != len(events) {
		t.Errorf("%d are replays of what was delivered, and %d have their key", chained, keyed)
	}
	// A second rewind sends the last deliveries again.
	h.exec("DELETE FROM queue")
	h.rewind(hook, feed.Start{At: time.Now().Add(-time.Hour)})
	h.settle()
	h.caughtUp(hook)
	if got := h.queued(hook); !slices.Equal(got, events) {
		t.Errorf("after a second rewind: %v, want %v", got, events)
	}
	var firsts int
	if err := h.sql.QueryRow(t.Context(), "SELECT count(DISTINCT first_id) FROM queue WHERE first_id IN (SELECT d.id FROM deliveries d WHERE d.replay_of IS NULL)").Scan(&firsts); err != nil || firsts != len(events) {
		t.Errorf("%d chains begin with the first delivery, %v", firsts, err)
	}
}

func TestARewindIsReplacedAndEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	hook := h.endpoint(nil)
	emitOne := h.emitter()
	emitOne()
	h.exec("DELETE FROM queue")
	if made := h.rewind(hook, feed.Start{}); !made.StartingAt.IsZero() {
		t.Error("now rewinds an endpoint that does not catch up")
	}
	h.rewind(hook, feed.Start{Oldest: true})
	h.rewind(hook, feed.Start{Oldest: true})
	h.settle()
	h.rewind(hook, feed.Start{})
	h.caughtUp(hook)
	if got := h.queued(hook); len(got) != 0 {
		t.Errorf("the rest of the backlog was sent: %v", got)
	}
	if live := emitOne(); !slices.Equal(h.queued(hook), []id.UUID{live}) {
		t.Errorf("live events: %v", h.queued(hook))
	}
	pulled := h.feed(nil)
	err := h.db.Tenant(t.Context(), h.tenant, func(q *sql.Queries) error {
		_, err := Rewind(t.Context(), q, endpoints.Editor{Keys: h.ring}, Rewound{Tenant: h.tenant, Endpoint: pulled, Start: feed.Start{Oldest: true}, Now: time.Now()})
		return err
	})
	if !errors.Is(err, endpoint.ErrFeed) {
		t.Errorf("a feed: %v", err)
	}
}

func TestABacklogIsQueuedAsFastAsItIsTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	hook := h.startOf(feed.Start{Oldest: true})
	events := make([]id.UUID, startAhead+2*startChunk)
	for i := range events {
		events[i] = at(time.Now())
	}
	h.emit(events...)
	h.settle()
	for range 3 {
		if err := CatchUp(t.Context(), h.db); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.queued(hook); !slices.Equal(got, events[:startAhead]) {
		t.Errorf("%d deliveries wait", len(got))
	}
	h.exec("DELETE FROM queue")
	h.caughtUp(hook)
	if got := h.queued(hook); !slices.Equal(got, events[startAhead:]) {
		t.Errorf("then %d deliveries wait", len(got))
	}
}

// Producers emit while the endpoint changes from its backlog to live events: each of their events is queued once, and a
// producer's own are in their order.
func TestNoEventIsLostOrDoubledWhenAnEndpointHasCaughtUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, c := h.committer()
	hook := h.startOf(feed.Start{Oldest: true})
	const producers, each = 4, 60
	emitted := make([][]id.UUID, producers)
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for range each {
				item := emit.Item{Emission: event.Emission{Type: "order.completed", Data: []byte("{}")}}
				r := c.Emit(ctx, h.tenant, []emit.Item{item})[0]
				if r.Err != nil {
					t.Error(r.Err)
				}
				emitted[p] = append(emitted[p], r.ID)
			}
		})
	}
	h.caughtUp(hook)
	group.Wait()
	after := emit.Item{Emission: event.Emission{Type: "order.completed", Data: []byte("{}")}}
	if r := c.Emit(ctx, h.tenant, []emit.Item{after})[0]; r.Err != nil || r.Deliveries != 1 {
		t.Errorf("a live event has %d deliveries, %v", r.Deliveries, r.Err)
	}
	place := map[id.UUID]int{}
	queued := h.queued(hook)
	for i, one := range queued {
		place[one] = i + 1
	}
	if len(queued) != producers*each+1 || len(place) != len(queued) {
		t.Errorf("%d deliveries of %d events, not %d", len(queued), len(place), producers*each+1)
	}
	for _, own := range emitted {
		if !slices.IsSortedFunc(own, func(a, b id.UUID) int { return place[a] - place[b] }) {
			t.Error("a producer's events are not in order")
		}
	}
}
