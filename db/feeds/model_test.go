package feeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// model is a random history of commits and readers.
type model struct {
	*house
	random  *rand.Rand
	feed    id.UUID
	open    []*commit
	readers []*modelReader
	dropped int // events of the log that retention dropped
	moves   int
}

// modelReader is a consumer that dies and comes back.
type modelReader struct {
	name   string
	from   *feed.Place // in its memory; nil: it has just started
	seen   []id.UUID   // acknowledged, in order, since it began or was rewound
	fresh  []id.UUID   // read and not acknowledged
	jumped bool        // it was told that it was truncated
}

func (m *model) step(n int) {
	switch action := m.random.IntN(10); {
	case action < 3 && len(m.open) < 6:
		events := make([]id.UUID, 1+m.random.IntN(4))
		for i := range events {
			// Processes have different clocks, and the outbox gives ids that are hours old.
			events[i] = at(time.Now().Add(-time.Duration(m.random.IntN(7200)) * time.Second))
		}
		m.open = append(m.open, m.begin(events...))
	case action < 5 && len(m.open) > 0:
		i := m.random.IntN(len(m.open))
		m.end(m.open[i], m.random.IntN(5) > 0)
		m.open = slices.Delete(m.open, i, i+1)
	case action == 5:
		m.readers[m.random.IntN(len(m.readers))].from = nil // killed: what it read and did not acknowledge comes again
	case action == 6 && n%7 == 0:
		r := m.readers[m.random.IntN(len(m.readers))]
		m.in(func(q *sql.Queries) error {
			_, err := m.consumers(m.feed).Rewind(m.t.Context(), q, r.name, feed.Start{Oldest: true}, nil)
			return err
		})
		r.seen, r.from, r.jumped = nil, nil, m.dropped > 0
	case action == 6 && n%11 == 0:
		m.drop()
	case action == 6 && n%13 == 0:
		m.move()
	default:
		m.read(m.readers[m.random.IntN(len(m.readers))])
	}
}

// drop drops the oldest rows of the log with their events, as retention does.
func (m *model) drop() {
	var events int
	if err := m.sql.QueryRow(context.Background(), `WITH old AS (
			SELECT position, events FROM event_log WHERE tenant_id = $1 AND position < (SELECT base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM feed_logs)
			ORDER BY position LIMIT 3
		), gone AS (DELETE FROM event_log r USING old o WHERE r.position = o.position RETURNING r.position),
		noted AS (UPDATE feed_logs SET dropped = greatest(dropped, (SELECT max(position) FROM gone))),
		ended AS (DELETE FROM events e USING old o WHERE e.id = ANY(o.events))
		SELECT coalesce(sum(cardinality(events)), 0)::int FROM old`, m.tenant).Scan(&events); err != nil {
		m.t.Fatal(err)
	}
	m.dropped += events
}

// move moves the tenant to a database system whose transactions have much smaller numbers. Nothing is stored meanwhile,
// and the first who opens the log there goes on above the last position.
func (m *model) move() {
	for _, c := range m.open {
		m.end(c, true)
	}
	m.open = nil
	m.exec("UPDATE feed_logs SET system = 1, base = base - 1000000000")
	m.in(func(q *sql.Queries) error {
		_, err := openLog(m.t.Context(), q, m.tenant)
		return err
	})
	m.moves++
}

func (m *model) read(r *modelReader) {
	if r.from == nil {
		r.fresh = nil
	}
	p := m.house.read(m.feed, Options{From: r.from, Consumer: r.name, Limit: 1 + m.random.IntN(5)})
	r.jumped = r.jumped || p.Truncated
	for _, e := range p.Events {
		r.fresh = append(r.fresh, e.Event)
	}
	next := p.Next
	r.from = &next
	if m.random.IntN(3) > 0 {
		m.ack(m.feed, r.name, next)
		r.seen = append(r.seen, r.fresh...)
		r.fresh = nil
	}
}

// log is every event of the log in its order.
func (m *model) log() (events []id.UUID) {
	rows, err := m.sql.Query(context.Background(), "SELECT unnest(events) FROM (SELECT events FROM event_log ORDER BY position) x")
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one id.UUID
		if err := rows.Scan(&one); err != nil {
			m.t.Fatal(err)
		}
		events = append(events, one)
	}
	return events
}

// TestNoReaderMissesOrRepeatsAnEvent runs transactions that commit in any order, with ids in any order, beside readers
// that die, are rewound, lose days, and move to another database system. Whatever a reader has acknowledged is a part
// of the one order of the log, without a gap, unless it was told so.
func TestNoReaderMissesOrRepeatsAnEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := &model{house: newHouse(t), random: rand.New(rand.NewPCG(seed, 1))}
			m.feed = m.house.feed(nil)
			for i := range 3 {
				r := &modelReader{name: fmt.Sprintf("reader-%d", i)}
				m.consumer(m.feed, r.name, feed.Start{Oldest: true})
				m.readers = append(m.readers, r)
			}
			for n := range 400 {
				m.step(n)
			}
			if m.moves == 0 {
				m.move()
			}
			for _, c := range m.open {
				m.end(c, true)
			}
			m.settle()
			order := m.log()
			for _, r := range m.readers {
				r.from = nil
				for {
					before := len(r.seen)
					p := m.house.read(m.feed, Options{Consumer: r.name})
					r.jumped = r.jumped || p.Truncated
					for _, e := range p.Events {
						r.seen = append(r.seen, e.Event)
					}
					m.ack(m.feed, r.name, p.Next)
					if p.CaughtUp && len(r.seen) == before {
						break
					}
				}
				m.check(r, order)
			}
		})
	}
}

// check compares what a reader acknowledged with the log. What retention has dropped since is at the log's beginning.
func (m *model) check(r *modelReader, order []id.UUID) {
	m.t.Helper()
	if len(order) == 0 {
		return
	}
	first := slices.Index(r.seen, order[0])
	if first < 0 || !slices.Equal(r.seen[first:], order) {
		m.t.Errorf("%s acknowledged %d events that end with another order than the log's %d", r.name, len(r.seen), len(order))
	}
	if total := first + len(order); !r.jumped && total != len(order)+m.dropped {
		m.t.Errorf("%s has %d events of %d and was told of no gap", r.name, total, len(order)+m.dropped)
	}
	seen := map[id.UUID]bool{}
	for _, one := range r.seen {
		if seen[one] {
			m.t.Errorf("%s got an event twice", r.name)
		}
		seen[one] = true
	}
}

// A cursor by time or by id passes over an event that commits late (workos-authkit#75, Zammad-MCP#338).
func TestAnEventThatCommitsLateIsRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	h.consumer(f, "a", feed.Start{Oldest: true})
	late, early := at(time.Now().Add(-time.Hour)), at(time.Now())
	open := h.begin(late)
	h.emit(early)
	if p := h.read(f, Options{Consumer: "a"}); len(p.Events) != 0 {
		t.Fatalf("an event was read before one that has an earlier place: %+v", p.Events)
	}
	h.end(open, true)
	h.settle()
	p := h.read(f, Options{Consumer: "a"})
	if len(p.Events) != 2 || p.Events[0].Event != late || p.Events[1].Event != early {
		t.Fatalf("read %d events: %+v", len(p.Events), p.Events)
	}
}

func TestACursorOfAnotherHistoryIsRejected(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	h.emit(at(time.Now()), at(time.Now()))
	h.settle()
	next := h.read(f, Options{Start: feed.Start{Oldest: true}}).Next
	// The database was restored to a moment before, and other events took the place.
	h.exec("UPDATE event_log SET events = ARRAY[gen_random_uuid(), gen_random_uuid()]")
	if _, err := h.try(f, Options{From: &next}); !errors.Is(err, feed.ErrCursorLost) {
		t.Errorf("another event in the cursor's place: %v", err)
	}
	if _, err := h.try(f, Options{From: &feed.Place{Position: next.Position, Index: 9}}); !errors.Is(err, feed.ErrCursorLost) {
		t.Errorf("a place behind the events of its row: %v", err)
	}
	// An acknowledgment of a place alone keeps what is there.
	h.consumer(f, "a", feed.Start{Oldest: true})
	h.ack(f, "a", feed.Place{Position: next.Position, Index: next.Index})
	h.exec("UPDATE event_log SET events = ARRAY[gen_random_uuid(), gen_random_uuid()]")
	if _, err := h.try(f, Options{Consumer: "a"}); !errors.Is(err, feed.ErrCursorLost) {
		t.Errorf("another event in the place that was acknowledged: %v", err)
	}
	h.exec("DELETE FROM event_log")
	if _, err := h.try(f, Options{From: &next}); !errors.Is(err, feed.ErrCursorLost) {
		t.Errorf("nothing in the cursor's place: %v", err)
	}
}

func TestALogGoesOnInAnotherDatabaseSystem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	h.consumer(f, "a", feed.Start{Oldest: true})
	first, second := at(time.Now()), at(time.Now())
	h.emit(first)
	h.settle()
	h.ack(f, "a", h.read(f, Options{Consumer: "a"}).Next)
	// The log as a dump has it that is restored where transactions have much smaller numbers.
	h.exec("UPDATE event_log SET position = position + 1000000000")
	h.exec("UPDATE feed_logs SET base = 0, system = 1, settled = settled + 1000000000")
	h.exec("UPDATE feed_consumers SET cursor = regexp_replace(cursor, '^b-[0-9a-f]{16}', 'b-' || (SELECT lpad(to_hex(position), 16, '0') FROM event_log))")
	if p := h.read(f, Options{Consumer: "a"}); len(p.Events) != 0 {
		t.Fatalf("what was acknowledged comes again: %+v", p.Events)
	}
	h.emit(second)
	h.settle()
	if p := h.read(f, Options{Consumer: "a"}); len(p.Events) != 1 || p.Events[0].Event != second {
		t.Fatalf("after the restore: %+v", p.Events)
	}
}

func TestHistoryFromBeforeTheLogComesFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	now := time.Now()
	var want []id.UUID
	for i := range 5 {
		one := at(now.Add(time.Duration(i-10) * time.Minute))
		want = append(want, one)
		h.exec("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.completed', '{}', 1)", h.tenant, one.Time(), one)
	}
	f := h.feed(nil)
	late := at(now.Add(-time.Hour))
	h.emit(late)
	want = append(want, late)
	h.settle()
	var got []id.UUID
	h.consumer(f, "a", feed.Start{Oldest: true})
	h.consumer(f, "b", feed.Start{At: now.Add(-8*time.Minute - time.Second)})
	for range 10 {
		p := h.read(f, Options{Consumer: "a", Limit: 2})
		for _, e := range p.Events {
			got = append(got, e.Event)
		}
		h.ack(f, "a", p.Next)
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if p := h.read(f, Options{Consumer: "b"}); len(p.Events) != 4 || p.Events[0].Event != want[2] {
		t.Errorf("from a time: %d events", len(p.Events))
	}
	h.consumer(f, "c", feed.Start{})
	if p := h.read(f, Options{Consumer: "c"}); len(p.Events) != 0 {
		t.Errorf("from now: %d events", len(p.Events))
	}
}
