package feeds

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// A filter that matches nothing must not read the log to its end for one page.
func TestAPageBehindARareFilterReadsABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(func(s *endpoint.Settings) { s.EventTypes = []string{"invoice.*"} })
	h.exec(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
		SELECT $1, date_trunc('milliseconds', now()) - g * interval '1 millisecond', gen_random_uuid(), 'order.completed', '{}', 1000 FROM generate_series(1, 20000) g`, h.tenant)
	h.exec("UPDATE feed_logs SET began_at = now() - interval '1 day'") // no event is older than the log
	// Ids of the events' moments.
	h.exec(`UPDATE events SET id = (left(posthorn.first_id(created_at)::text, 14) || right(id::text, 22))::uuid`)
	h.exec(`INSERT INTO event_log (tenant_id, position, events)
		SELECT tenant_id, row_number() OVER (), array_agg FROM (SELECT tenant_id, array_agg(id) FROM (
			SELECT tenant_id, id, row_number() OVER () / 40 AS part FROM events) x GROUP BY tenant_id, part) y`)
	h.settle()
	h.consumer(f, "a", feed.Start{Oldest: true})
	pages, last := 0, feed.Place{Position: feed.Older}
	for {
		p := h.read(f, Options{Consumer: "a"})
		if len(p.Events) != 0 || p.Examined > feed.MaxScan {
			t.Fatalf("a page of %d events examined %d", len(p.Events), p.Examined)
		}
		if p.CaughtUp {
			break
		}
		if p.Next.Compare(last) <= 0 {
			t.Fatalf("a page ends at %s, no further than %s", p.Next, last)
		}
		pages, last = pages+1, p.Next
	}
	if pages != 20 {
		t.Errorf("%d pages", pages)
	}
	// The consumer acknowledged nothing, and does not lag behind events that are not its own.
	h.in(func(q *sql.Queries) error {
		list, err := h.consumers(f).List(t.Context(), q)
		if err == nil && (len(list) != 1 || list[0].Lag.Events != 0) {
			t.Errorf("%+v", list)
		}
		return err
	})
}

func TestRetentionIsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	h.consumer(f, "a", feed.Start{Oldest: true})
	h.emit(at(time.Now()))
	h.settle()
	h.ack(f, "a", h.read(f, Options{Consumer: "a"}).Next)
	h.emit(at(time.Now()))
	h.emit(at(time.Now()))
	kept := at(time.Now())
	h.emit(kept)
	h.settle()
	h.exec("UPDATE event_log SET at = now() - interval '100 days' WHERE position < (SELECT max(position) FROM event_log)")
	if n := trim(t, h); n != 3 {
		t.Fatalf("%d rows were dropped", n)
	}
	p := h.read(f, Options{Consumer: "a"})
	if !p.Truncated || len(p.Events) != 1 || p.Events[0].Event != kept {
		t.Errorf("truncated %t, %d events", p.Truncated, len(p.Events))
	}
	h.ack(f, "a", p.Next)
	if p := h.read(f, Options{Consumer: "a"}); p.Truncated || len(p.Events) != 0 {
		t.Errorf("truncated again: %t, %d events", p.Truncated, len(p.Events))
	}
	// Nothing is left: a consumer that waits must not be told of it again and again.
	h.emit(at(time.Now()))
	h.settle()
	h.exec("UPDATE event_log SET at = now() - interval '100 days'")
	trim(t, h)
	for _, want := range []bool{true, false, false} {
		if p := h.read(f, Options{Consumer: "a"}); p.Truncated != want || len(p.Events) != 0 {
			t.Errorf("truncated %t, not %t, %d events", p.Truncated, want, len(p.Events))
		}
	}
}

func trim(t *testing.T, h *house) int {
	t.Helper()
	n, err := Trim(t.Context(), h.db)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAFeedHasTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(func(s *endpoint.Settings) { s.EventTypes = []string{"invoice.*"} })
	h.emit(at(time.Now()))
	h.settle()
	oldest := Options{Start: feed.Start{Oldest: true}}
	if p := h.read(f, oldest); len(p.Events) != 0 {
		t.Fatalf("%d events", len(p.Events))
	}
	h.in(func(q *sql.Queries) error {
		_, _, err := endpoints.Change(t.Context(), q, h.ring, h.tenant, f, func(s endpoint.Settings) (endpoint.Settings, error) {
			s.EventTypes = []string{"order.*"}
			return s, nil
		})
		return err
	})
	if p := h.read(f, oldest); len(p.Events) != 1 {
		t.Errorf("%d events after the change", len(p.Events))
	}
	h.in(func(q *sql.Queries) error {
		_, _, err := endpoints.SetState(t.Context(), q, h.ring, h.tenant, f, endpoint.Pause)
		return err
	})
	if _, err := h.try(f, oldest); !errors.Is(err, endpoint.ErrFeedInactive) {
		t.Errorf("a paused feed: %v", err)
	}
}

func TestReadersAreWokenByACommit(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	w := NewWatch(h.db)
	h.emit(at(time.Now()))
	h.settle()
	position := h.read(f, Options{Start: feed.Start{Oldest: true}}).Next.Position
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const waiting = 100
	woken := make(chan error, waiting)
	for range waiting {
		go func() { woken <- w.Wait(ctx, h.tenant, position) }()
	}
	h.emit(at(time.Now()))
	for range waiting {
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	}
	idle, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := w.Wait(idle, id.None, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a tenant without a log: %v", err)
	}
}

func TestPlacesAreOrderedAsTheyAreRead(t *testing.T) {
	t.Parallel()
	one, two := at(time.Unix(1e9, 0)), at(time.Unix(2e9, 0))
	order := []feed.Place{
		{Event: one, Position: feed.Older},
		{Event: two, Position: feed.Older},
		{},
		{Event: two, Position: 7, Index: 1},
		{Event: one, Position: 7, Index: 2},
		{Event: one, Position: 8, Index: 1},
	}
	if !slices.IsSortedFunc(order, feed.Place.Compare) {
		t.Error("not in order")
	}
	for i, p := range order {
		if i > 0 && order[i-1].String() >= p.String() {
			t.Errorf("%s sorts before %s", p, order[i-1])
		}
		if got, err := feed.ParsePlace(p.String()); err != nil || got != p {
			t.Errorf("%s is read as %v, %v", p, got, err)
		}
	}
	for _, text := range []string{
		"", "-", "0", "a", "a-", "b-0", "b-1-1-0", "b-0000000000000001-00000-0 ", "b--000000000000001-00000-0",
		"c-0", "a-evt_x", "a-" + one.String(), "b-ffffffffffffffff-00000-0",
	} {
		if _, err := feed.ParsePlace(text); err == nil {
			t.Errorf("%q is read as a cursor", text)
		}
	}
}
