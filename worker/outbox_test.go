package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// emitSQL emits as a product does.
func (h *house) emitSQL(tenant id.UUID, typ, data, more string) (event string) {
	h.t.Helper()
	h.query(fmt.Sprintf("SELECT posthorn.emit('%s', '%s', '%s'%s)", id.Tenant.Format(tenant), typ, data, more), []any{&event})
	return event
}

// storeOutbox stores a page of rows with time for all of them.
func storeOutbox(ctx context.Context, c *emit.Committer, rows []sql.Outbox) []error {
	errs, _ := (&relay{committer: c, patience: time.Minute}).store(ctx, rows)
	return errs
}

func TestWhatIsEmittedInSQLIsDeliveredOnceAndInOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Ordering = "key" })
	h.worker(false)
	h.worker(false) // the relay is one, however many workers there are
	var want []string
	for i := range 60 {
		want = append(want, h.emitSQL(tenant, "order.paid", fmt.Sprintf(`{"n":%d}`, i), ", key => 'k'"))
	}
	eventually(t, 20*time.Second, "all arrive", func() bool { return len(r.seen()) >= len(want) })
	for i, a := range r.seen() {
		if a.id != want[i] || a.data.N != i {
			t.Fatalf("arrival %d is %s with %d, want %s", i, a.id, a.data.N, want[i])
		}
	}
	if n := h.count("SELECT count(*) FROM outbox"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestAnEventEmittedInSQLKeepsItsProducersID(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.exec("UPDATE tenants SET external_id = 'org-1' WHERE id = $1", tenant)
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, nil)
	h.worker(false)
	var event string
	h.query(`SELECT posthorn.emit('org-1', 'order.paid', '{"n":1}', event_id => 'order-1:paid', idempotency_key => 'k')`, []any{&event})
	eventually(t, 20*time.Second, "it arrives", func() bool { return len(r.seen()) > 0 })
	if a := r.seen()[0]; a.id != "order-1:paid" {
		t.Errorf("it arrives as %s", a.id)
	}
	if n := h.count("SELECT count(*) FROM events WHERE external_id = 'order-1:paid'"); n != 1 {
		t.Errorf("%d events are stored under it", n)
	}
	var again, other string
	h.query(`SELECT posthorn.emit('org-1', 'order.paid', '{"n":1}', event_id => 'order-1:paid', idempotency_key => 'k')`, []any{&again})
	h.query(`SELECT posthorn.emit('org-1', 'order.paid', '{"n":1}', event_id => 'order-2:paid', idempotency_key => 'k')`, []any{&other})
	if again != event || other == event {
		t.Errorf("the same again is %s, with another id %s; the first was %s", again, other, event)
	}
	eventually(t, 20*time.Second, "another id under the key is rejected, with its id", func() bool {
		return h.count("SELECT count(*) FROM outbox_rejected WHERE code = 'idempotency_conflict' AND external_id = 'order-2:paid'") == 1
	})
}

func TestAnIdempotencyKeyInSQLNamesTheStoredEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.worker(false)
	emit := func(data string) string {
		return h.emitSQL(tenant, "order.paid", data, ", key => 'k', deliver_at => now() - interval '1 hour', occurred_at => '2026-01-31T12:00:00Z', idempotency_key => 'once'")
	}
	first := emit(`{"n":1}`)
	eventually(t, 20*time.Second, "it is stored", func() bool { return h.count("SELECT count(*) FROM outbox") == 0 })
	if again := emit(`{"n":1}`); again != first {
		t.Errorf("the same once more: %s, want %s", again, first)
	}
	other := emit(`{"n":2}`)
	eventually(t, 20*time.Second, "another event is rejected under the id that was given", func() bool {
		eventID, err := id.Event.Parse(other)
		return err == nil && h.count("SELECT count(*) FROM outbox_rejected WHERE code = 'idempotency_conflict' AND id = '"+eventID.String()+"'") == 1
	})
}

// The relay's process ends between storing events and deleting their rows: they are stored once.
func TestARelayThatDiesBetweenItsStepsDoublesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, "https://example.com", nil)
	h.endpoint(tenant, "https://example.com", nil)
	for i := range 20 {
		more := ""
		if i%2 == 0 {
			more = fmt.Sprintf(", idempotency_key => 'key-%d'", i)
		}
		h.emitSQL(tenant, "order.paid", `{}`, more)
	}
	died, cancel := context.WithCancel(t.Context())
	_, err := queue.RelayOutbox(died, h.db, 100, nil, func(rows []sql.Outbox) []error {
		errs := storeOutbox(t.Context(), h.commit, rows)
		cancel()
		return errs
	})
	if err == nil {
		t.Fatal("the relay did not die")
	}
	if n := h.count("SELECT count(*) FROM outbox"); n != 20 {
		t.Fatalf("%d rows are left, want 20", n)
	}
	n, err := queue.RelayOutbox(
		t.Context(),
		h.db,
		100,
		nil,
		func(rows []sql.Outbox) []error { return storeOutbox(t.Context(), h.commit, rows) },
	)
	if err != nil || n != 20 {
		t.Fatal(n, err)
	}
	for table, want := range map[string]int{"outbox": 0, "outbox_rejected": 0, "events": 20, "deliveries": 40, "queue": 40} {
		if n := h.count("SELECT count(*) FROM " + table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
}

func TestWhatCannotBecomeAnEventIsKeptWithItsReason(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.exec("UPDATE tenants SET strict_types = true, routing_version = routing_version + 1 WHERE id = $1", tenant)
	h.exec("INSERT INTO event_types (tenant_id, name) VALUES ($1, 'order.paid')", tenant)
	h.emitSQL(tenant, "order.paid", `{"a":1}`, "")
	h.emitSQL(tenant, "order.other", `{"a":2}`, "")
	h.emitSQL(tenant, "order.paid", `{"half":"\ud83d"}`, "") // PostgreSQL takes it, receivers could not read it
	h.emitSQL(tenant, "order.paid", `{"a":3}`, ", idempotency_key => 'k'")
	h.emitSQL(tenant, "order.paid", `{"a":4}`, ", idempotency_key => 'k'")
	h.worker(true)
	eventually(t, 20*time.Second, "the outbox is empty", func() bool { return h.count("SELECT count(*) FROM outbox") == 0 })
	if n := h.count("SELECT count(*) FROM events"); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
	for code, data := range map[string]string{"unknown_event_type": `{"a":2}`, "idempotency_conflict": `{"a":4}`} {
		if n := h.count("SELECT count(*) FROM outbox_rejected WHERE code = $1 AND data = convert_to($2, 'UTF8') AND detail <> ''", code, data); n != 1 {
			t.Errorf("%d rows are rejected as %s", n, code)
		}
	}
	if n := h.count("SELECT count(*) FROM outbox_rejected"); n != 3 {
		t.Errorf("%d rows are rejected, want 3", n)
	}
}

func TestWhatFailsForNowWaitsAndIsGivenUpAtLast(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.emitSQL(tenant, "order.paid", `{}`, "")
	fail := func(err error) {
		t.Helper()
		h.exec("UPDATE outbox SET due_at = 'epoch'")
		if _, err := queue.RelayOutbox(t.Context(), h.db, 10, nil, func([]sql.Outbox) []error { return []error{err} }); err != nil {
			t.Fatal(err)
		}
	}
	fail(fault.New(fault.Unavailable, "busy", "later"))
	if n := h.count("SELECT count(*) FROM outbox WHERE tries = 1 AND due_at > now()"); n != 1 {
		t.Error("it does not wait")
	}
	if n, err := queue.RelayOutbox(t.Context(), h.db, 10, nil, func([]sql.Outbox) []error { return nil }); n != 0 ||
		err != nil {
		t.Error("it is taken before it is due", n, err)
	}
	for range 20 {
		fail(errors.New("something new"))
	}
	if n := h.count("SELECT count(*) FROM outbox_rejected WHERE code = 'internal'"); n != 1 || h.count("SELECT count(*) FROM outbox") != 0 {
		t.Errorf("%d rows are given up", n)
	}
}

// Many transactions emit concurrently, while relays start and stop.
func TestNothingIsLostOrDoubledWhileRelaysComeAndGo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, "https://example.com", nil)
	const writers, each = 4, 50
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range each {
				h.emitSQL(tenant, "order.paid", fmt.Sprintf(`{"n":%d}`, i), "")
			}
		})
	}
	store := func(rows []sql.Outbox) []error {
		errs := storeOutbox(context.Background(), h.commit, rows)
		return errs
	}
	deadline := time.Now().Add(30 * time.Second)
	for round := 0; h.count("SELECT count(*) FROM events") < writers*each || h.count("SELECT count(*) FROM outbox") > 0; round++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d events", h.count("SELECT count(*) FROM events"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var relays sync.WaitGroup
		for k := range 2 {
			relays.Go(func() {
				_, _ = queue.RelayOutbox(ctx, h.db, 7, nil, func(rows []sql.Outbox) []error {
					errs := store(rows)
					if (round+k)%3 == 0 {
						cancel()
					}
					return errs
				})
			})
		}
		relays.Wait()
		cancel()
	}
	all.Wait()
	for h.count("SELECT count(*) FROM outbox") > 0 {
		if _, err := queue.RelayOutbox(t.Context(), h.db, 500, nil, store); err != nil {
			t.Fatal(err)
		}
	}
	if events, deliveries := h.count("SELECT count(*) FROM events"), h.count("SELECT count(*) FROM deliveries"); events != writers*each || deliveries != events {
		t.Errorf("%d events and %d deliveries, want %d", events, deliveries, writers*each)
	}
}

// The product's own transaction has committed them: they count, and no quota rejects them.
func TestWhatIsEmittedInSQLIsCountedAndRejectedByNoQuota(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, nil)
	var limit int
	h.query("UPDATE tenants SET settings = '{\"limits\": {\"events_per_month\": 1}}' WHERE id = $1 RETURNING (settings->'limits'->>'events_per_month')::int", []any{&limit}, tenant)
	h.worker(false)
	for n := range 5 {
		h.emitSQL(tenant, "order.paid", fmt.Sprintf(`{"n":%d}`, n), "")
	}
	eventually(t, 20*time.Second, "all arrive", func() bool { return len(r.seen()) >= 5 })
	eventually(t, 20*time.Second, "all are counted", func() bool {
		return h.count("SELECT coalesce(sum(events), 0)::int FROM books") == 5
	})
	if n := h.count("SELECT count(*) FROM outbox_rejected"); limit != 1 || n != 0 {
		t.Errorf("%d events are rejected by a limit of %d", n, limit)
	}
}

// One tenant's rows take so long that in each round only some of them get their turn. Another tenant's rows behind them
// are stored at once, and the slow tenant's rows all are, in their order.
func TestNoticesOfATenantGoOnlyToEndpointsThatNameThemAndUseUpNoQuota(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.exec(`UPDATE tenants SET settings = '{"limits": {"events_per_month": 1}}', strict_types = true WHERE id = $1`, tenant)
	all, channel := newReceiver(t, nil), newReceiver(t, nil)
	h.endpoint(tenant, all.URL, nil)
	h.endpoint(tenant, channel.URL, func(s *endpoint.Settings) { s.EventTypes = []string{"posthorn.key.*"} })
	h.worker(false)
	const n = 3
	for range n {
		h.exec(`DO $$ BEGIN
			SET LOCAL ROLE posthorn_worker;
			PERFORM posthorn.emit('` + id.Tenant.Format(tenant) + `', 'posthorn.key.created', '{"n":1}');
		END $$`)
	}
	eventually(t, 20*time.Second, "the channel has them", func() bool { return len(channel.seen()) >= n })
	eventually(t, 20*time.Second, "nothing waits", func() bool {
		return h.count("SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM queue)") == 0
	})
	if a, c := len(all.seen()), len(channel.seen()); a != 0 || c != n {
		t.Errorf("* got %d, the channel %d of %d", a, c, n)
	}
	var used int
	h.query(fmt.Sprintf(`SELECT coalesce((SELECT sum(x) FROM ledger l, unnest(l.events) x), 0) + coalesce((SELECT sum(events) FROM books WHERE tenant_id = '%s'), 0)`, tenant), []any{&used})
	if used != 0 {
		t.Errorf("the quota counts %d", used)
	}
}

func TestATenantWhoseRowsTakeLongDoesNotStallTheOutbox(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	slow, other := h.tenant(), h.tenant()
	const rows = relayMost + 100 // the other tenant's row is not on the first page
	for range rows {
		h.emitSQL(slow, "order.paid", `{}`, "")
	}
	h.emitSQL(other, "order.paid", `{}`, "")
	r := &relay{db: h.db, committer: h.commit, patience: time.Nanosecond} // one row of a slow tenant gets its turn
	stored := func(tenant id.UUID) int { return h.count("SELECT count(*) FROM events WHERE tenant_id = $1", tenant) }
	for range 3 {
		if _, err := r.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := stored(slow), stored(other); a == 0 || a > 2 || b != 1 {
		t.Fatalf("after three rounds %d events of the slow tenant are stored and %d of the other, want 1 or 2 and 1", a, b)
	}
	r.patience = relayPatience
	for h.count("SELECT count(*) FROM outbox") > 0 {
		if _, err := r.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(slow); n != rows || len(r.slow) > 0 || h.count("SELECT count(*) FROM outbox_rejected") > 0 {
		t.Errorf("%d events of the slow tenant are stored; slow are %v", n, r.slow)
	}
	if n := h.count(`SELECT count(*) FROM outbox WHERE tries > 0`); n != 0 {
		t.Errorf("%d rows were put back behind others", n)
	}
}

// TestWhatIsEmittedInSQLExpires: as what the API accepts, and what it would reject is an error with a hint.
func TestWhatIsEmittedInSQLExpires(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.worker(false)
	for i, c := range []struct{ more, want string }{
		{", expires_in => 600", "posthorn.created_at(id) + interval '600 seconds'"},
		{", expires_in => 600, deliver_at => '%s'", "deliver_at + interval '600 seconds'"},
		{", expires_at => '%s'", "deliver_at"},
	} {
		key := fmt.Sprintf(", idempotency_key => 'k%d'", i)
		soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		more := c.more
		if strings.Contains(more, "%s") {
			more = fmt.Sprintf(more, soon.Format(time.RFC3339))
		}
		first := h.emitSQL(tenant, "order.paid", `{"n":1}`, more+key)
		ev, err := id.Event.Parse(first)
		if err != nil {
			t.Fatal(err)
		}
		again := func() string {
			return h.emitSQL(tenant, "order.paid", `{"n":1}`, more+key)
		}
		if got := again(); got != first {
			t.Errorf("%s: the same again is %s, not %s", more, got, first)
		}
		eventually(t, 20*time.Second, "it is stored", func() bool { return h.count("SELECT count(*) FROM events WHERE id = '"+ev.String()+"'") == 1 })
		if c.want == "deliver_at" {
			c.want = "'" + soon.Format(time.RFC3339) + "'"
		}
		if n := h.count("SELECT count(*) FROM events WHERE id = '" + ev.String() + "' AND expires_at = " + c.want); n != 1 {
			t.Errorf("%s: it does not expire at %s", more, c.want)
		}
		if got := again(); got != first {
			t.Errorf("%s: the same again, once it is stored, is %s, not %s", more, got, first)
		}
		if got := h.emitSQL(tenant, "order.paid", `{"n":1}`, ", expires_in => 601"+key); got == first {
			t.Errorf("%s: another expiry is the same event", more)
		}
	}
	for more, want := range map[string]string{
		"expires_in => 0":       "expires_in is out of range",
		"expires_in => 2592001": "expires_in is out of range",
		"expires_in => 60, expires_at => now() + interval '1 hour'":                            "expires_in and expires_at are both given",
		"expires_at => now() + interval '31 days'":                                             "expires_at is out of range",
		"expires_at => 'infinity'":                                                             "expires_at is out of range",
		"expires_at => '-infinity'":                                                            "expires_at is out of range",
		"expires_at => now() + interval '1 hour', deliver_at => now() + interval '61 minutes'": "expires_at is not later than deliver_at",
	} {
		_, err := h.sql.Exec(t.Context(), "SELECT posthorn.emit('"+id.Tenant.Format(tenant)+"', 'order.paid', '{}', "+more+")")
		var server *pgconn.PgError
		if !errors.As(err, &server) || server.Code != "22023" || !strings.Contains(server.Message, want) || server.Hint == "" {
			t.Errorf("%s: %v", more, err)
		}
	}
}
