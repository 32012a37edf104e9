package feeds

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// longLog stores events from a millisecond each, oldest first, and their log with 40 events in a row. The log begins
// before them, and its rows have the first positions.
func (h *house) longLog(events int) {
	h.t.Helper()
	h.exec(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
		SELECT $1, x.at, (left(posthorn.first_id(x.at)::text, 14) || right(gen_random_uuid()::text, 22))::uuid, 'order.completed', '{}', 1000
		FROM (SELECT date_trunc('milliseconds', now()) - g * interval '1 millisecond' AS at FROM generate_series($2::int, 1, -1) g) x`, h.tenant, events)
	h.exec("UPDATE feed_logs SET began_at = now() - interval '7 days', base = base + $1", events)
	h.exec(`INSERT INTO event_log (tenant_id, position, events)
		SELECT tenant_id, part + 1, array_agg(id ORDER BY id) FROM (
			SELECT tenant_id, id, (row_number() OVER (ORDER BY created_at, id) - 1) / 40 AS part FROM events) x GROUP BY tenant_id, part`)
	h.exec("ANALYZE events, event_log")
	h.settle()
}

// rowsRead is how many rows the database reads for a page, in tables and by indexes.
func (h *house) rowsRead(feedID id.UUID, o Options) (page Page, rows int64) {
	h.t.Helper()
	ctx := h.t.Context()
	tx, err := h.db.Pool().Begin(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	const role = `SELECT set_config('role', 'posthorn_tenant', true), set_config('posthorn.tenant', $1, true),
		set_config('search_path', 'posthorn', true), set_config('jit', 'off', true)`
	if _, err := tx.Exec(ctx, role, h.tenant.String()); err != nil {
		h.t.Fatal(err)
	}
	const count = "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_xact_user_tables"
	counted := func() (n int64) {
		if err := tx.QueryRow(ctx, count).Scan(&n); err != nil {
			h.t.Fatal(err)
		}
		return n
	}
	before := counted() // what the connection has not reported yet
	o.Now, o.Limit = time.Now(), feed.DefaultLimit
	if page, err = read(ctx, sql.New(tx), h.ring, h.tenant, feedID, o); err != nil {
		h.t.Fatal(err)
	}
	return page, counted() - before
}

// A page costs the same however long the log is, at its beginning, in its middle, and at its end, behind a filter that
// matches nothing and one that matches all. FEED_EVENTS has a longer log: 20,000,000 takes some minutes.
func TestAPageReadsAsManyRowsOfAnyLog(t *testing.T) {
	t.Parallel()
	long := 60_000
	if n, err := strconv.Atoi(os.Getenv("FEED_EVENTS")); err == nil {
		long = n
	}
	costs := map[string][]int64{}
	for _, events := range []int{3000, long} {
		h := newHouse(t)
		feeds := map[string]id.UUID{
			"nothing matches": h.feed(func(s *endpoint.Settings) { s.EventTypes = []string{"invoice.*"} }),
			"all match":       h.feed(nil),
		}
		h.longLog(events)
		for name, f := range feeds {
			for at, position := range map[string]int{"first": 0, "middle": events / 80, "last": events/40 - 20} {
				began := time.Now()
				p, rows := h.rowsRead(f, Options{From: &feed.Place{Position: int64(position)}})
				t.Logf("%d events, %s, %s page: %d examined, %d rows read in %v", events, name, at, p.Examined, rows, time.Since(began).Round(time.Millisecond))
				if p.Examined < feed.DefaultLimit || p.Examined > feed.MaxScan || rows < int64(p.Examined) {
					t.Errorf("%s, %s: %d rows were read for %d events", name, at, rows, p.Examined)
				}
				costs[name+", "+at] = append(costs[name+", "+at], rows)
			}
		}
	}
	for of, rows := range costs {
		if rows[1] > rows[0]+50 {
			t.Errorf("%s: a page read %d rows, and %d of a log that is %d times as long", of, rows[0], rows[1], long/3000)
		}
	}
}

// A filter that matches nothing must not read the log to its end for one page.
func TestAPageBehindARareFilterReadsABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(func(s *endpoint.Settings) { s.EventTypes = []string{"invoice.*"} })
	h.longLog(20_000)
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
		go func() { woken <- w.wait(ctx, h.tenant, position) }()
	}
	h.emit(at(time.Now()))
	for range waiting {
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	}
	idle, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := w.wait(idle, id.None, 0); !errors.Is(err, context.DeadlineExceeded) {
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
