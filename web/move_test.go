package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/move"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

const secondHomeKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// newMovingHomes runs two homes with workers and separate master keys, on a server with logical replication.
func newMovingHomes(t *testing.T) (one, two *someHome) {
	t.Helper()
	var urls, admins [2]string
	for i := range urls {
		urls[i], admins[i] = schematest.CloneLogical(t)
	}
	homes := newHomesOn(t, Parts{Web: true, Worker: true}, urls[:], "eu1", "eu2")
	homes[0].admin, homes[1].admin = admins[0], admins[1]
	return homes[0], homes[1]
}

// moveEnviron is the environment of a move between two homes.
func moveEnviron(from, to *someHome) []string {
	environ := append(slices.Clone(from.environ), "POSTHORN_DATABASE_URL="+from.admin, toDatabaseVariable+"="+to.admin)
	for _, pair := range to.environ {
		if name, value, _ := strings.Cut(pair, "="); name == "POSTHORN_MASTER_KEY" {
			environ = append(environ, toMasterKeyVariable+"="+value)
		}
	}
	return environ
}

// counts is how often each event has come to a receiver.
type counts struct {
	*httptest.Server
	mu     sync.Mutex
	seen   map[string]int
	secret string // of the endpoint at /hook
}

func newCounts(t *testing.T) *counts {
	t.Helper()
	c := &counts{seen: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path == "/hook" {
			c.seen[r.Header.Get("webhook-id")]++
			if verifier, wrong := standardwebhooks.NewWebhook(c.secret); c.secret != "" && (err != nil || wrong != nil ||
				verifier.Verify(body, r.Header) != nil || r.Header.Get("X-Secret") != "s3cret") {
				t.Errorf("event %s: its signature or its header is not the endpoint's", r.Header.Get("webhook-id"))
			}
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counts) of(event string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[event]
}

// do makes a request that must succeed and reads its response.
func (h *someHome) do(t *testing.T, method, path string, body, into any) {
	t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	got := ask(t, method, h.URL()+"/api/v1"+path, h.key, text)
	if got.status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(got.body), into); err != nil {
			t.Fatal(err)
		}
	}
}

func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !yes(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in time: ", what)
		}
	}
}

func (h *someHome) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	tx, err := h.pools[0].Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE posthorn_console"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// A tenant moves with all it has, while it emits: nothing is lost, nothing comes twice, and each key, id, secret,
// member and total is as before, at the address that its programs have and at that of its new home.
func TestATenantMovesWhileItWorks(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	to := newCounts(t)
	tenant, err := id.Tenant.Parse(one.tenant)
	if err != nil {
		t.Fatal(err)
	}
	var endpoint, paused struct{ ID, Secret string }
	one.do(t, "POST", "/endpoints", map[string]any{"url": to.URL + "/hook", "verification": "simple", "custom_headers": map[string]string{"X-Secret": "s3cret"}}, &endpoint)
	one.do(t, "POST", "/endpoints", map[string]any{"url": to.URL + "/paused", "verification": "simple", "event_types": []string{"order.paused"}}, &paused)
	for _, ep := range []string{endpoint.ID, paused.ID} {
		until(t, "an endpoint is active", func() bool {
			var now struct{ Status string }
			one.do(t, "GET", "/endpoints/"+ep, nil, &now)
			return now.Status == "active"
		})
	}
	to.mu.Lock()
	to.secret = endpoint.Secret
	to.mu.Unlock()
	one.pause(t, paused.ID)
	for i := range 5 {
		one.do(t, "POST", "/events", map[string]any{"type": "order.paused", "data": i}, nil)
	}
	if err := one.pools[0].Console(t.Context(), func(q *db.Tx) error {
		person, err := accounts.AddPerson(t.Context(), q, "ada@example.com", "Ada", "none")
		if err == nil {
			_, err = accounts.AddMember(t.Context(), q, tenant, person, access.Owner)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// Other tenants stay where they are.
	var stays struct {
		Tenant string `json:"tenant_id"`
	}
	succeed(t, one.environ, &stays, "tenant", "create", "--name", "Stays", "--json")

	stop, done := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var events []string
	refused := map[int]int{}
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, fmt.Sprintf(`{"type":"order.completed","data":{"n":%d}}`, n), "Idempotency-Key", fmt.Sprint("k", n))
			var event struct{ ID string }
			mu.Lock()
			if got.status == http.StatusAccepted && json.Unmarshal([]byte(got.body), &event) == nil {
				events = append(events, event.ID)
			} else {
				refused[got.status]++
				if got.status != http.StatusServiceUnavailable {
					t.Errorf("an event was answered %d %s", got.status, got.body)
				}
				n-- // sent again with the same key
			}
			mu.Unlock()
		}
	}()
	accepted := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(events)
	}
	began := time.Now()
	until(t, "events flow", func() bool { return accepted() > 200 })
	flowed := time.Since(began)
	var moved struct {
		Rows     int64 `json:"rows"`
		ClosedMS int64 `json:"closed_ms"`
	}
	one.exec(t, "INSERT INTO late_days (tenant_id, day, until) VALUES ($1, current_date, now() + interval '7 days')", tenant)
	succeed(t, moveEnviron(one, two), &moved, "tenant", "move", one.tenant, "--to", "eu2", "--json")
	if n := two.count(t, "SELECT count(*) FROM late_days WHERE tenant_id = $1", tenant); n != 1 {
		t.Errorf("%d days that are shown for longer moved, want 1", n)
	}
	before := accepted()
	until(t, "events flow again", func() bool { return accepted() > before+100 })
	close(stop)
	<-done
	if n := one.count(t, "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) + (SELECT count(*) FROM pg_publication)"); n != 0 {
		t.Errorf("%d slots and publications are left", n)
	}
	closed := time.Duration(moved.ClosedMS) * time.Millisecond
	t.Logf("200 events in %v; %d events, %d rows copied, closed for %v, refusals %v", flowed, len(events), moved.Rows, closed, refused)
	// Seconds, and more on a machine that is slow at that time.
	if closed > 4*time.Second+3*flowed {
		t.Errorf("200 events took %v, and the tenant was closed for %v", flowed, closed)
	}
	until(t, "all is delivered", func() bool {
		return two.count(t, "SELECT count(*) FROM queue q WHERE tenant_id = $1 AND endpoint_id <> $2", tenant, uuidOf(t, id.Endpoint, paused.ID)) == 0
	})
	for _, event := range events {
		if n := to.of(event); n != 1 {
			t.Errorf("event %s came %d times", event, n)
		}
		for _, at := range []*someHome{one, two} {
			if got := ask(t, "GET", at.URL()+"/api/v1/events/"+event, one.key, ""); got.status != http.StatusOK || got.header.Get("Posthorn-Home") != "eu2" {
				t.Fatalf("event %s at %s: %d by %s", event, at.Config.Home, got.status, got.header.Get("Posthorn-Home"))
			}
		}
	}
	// The same key makes the same event in the new home.
	if got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, `{"type":"order.completed","data":{"n":0}}`, "Idempotency-Key", "k0"); !strings.Contains(got.body, events[0]) {
		t.Errorf("the first idempotency key: %s, want %s", got.body, events[0])
	}
	movedTotals(t, two, tenant, len(events)+5)
	// What was held waits in the new home, and goes when it is resumed there, with its order and secret.
	one.do(t, "POST", "/endpoints/"+paused.ID+"/resume", map[string]any{}, nil)
	until(t, "what was held is delivered", func() bool { return two.count(t, "SELECT count(*) FROM queue WHERE tenant_id = $1", tenant) == 0 })
	if n := two.count(t, "SELECT count(*) FROM memberships m JOIN people p ON p.id = m.person_id WHERE m.tenant_id = $1 AND p.email = 'ada@example.com'", tenant); n != 1 {
		t.Errorf("%d members came along", n)
	}
	if n := two.count(t, "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action IN ('endpoint.create', 'tenant.moved')", tenant); n != 3 {
		t.Errorf("%d entries of the audit log came along", n)
	}
	leftBehind(t, one, tenant)
	if got := ask(t, "GET", one.URL()+"/t/"+stays.Tenant, "", "", "Accept", "text/html"); got.header.Get("Posthorn-Home") != "eu1" {
		t.Errorf("the other tenant is in %s", got.header.Get("Posthorn-Home"))
	}
	// Again: there is nothing to do, and a rollback is too late.
	if r := command(t, moveEnviron(one, two), "tenant", "move", one.tenant, "--to", "eu2", "--rollback"); r.code == exitOK || !strings.Contains(r.stderr, "in the other home already") {
		t.Errorf("a rollback after the end: %d %s", r.code, r.stderr)
	}
	succeed(t, moveEnviron(one, two), &moved, "tenant", "move", one.tenant, "--to", "eu2", "--json")
}

func uuidOf(t *testing.T, kind id.Kind, text string) id.UUID {
	t.Helper()
	u, err := kind.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// movedTotals holds the totals of a tenant against its rows.
func movedTotals(t *testing.T, h *someHome, tenant id.UUID, events int) {
	t.Helper()
	until(t, "what arrived is on record", func() bool {
		return h.count(t, "SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status = 2", tenant) == events
	})
	until(t, "the ledger is folded", func() bool {
		return h.count(t, "SELECT count(*) FROM ledger WHERE $1::uuid = ANY (book_tenant)", tenant) == 0
	})
	if n := h.count(t, "SELECT count(*) FROM events WHERE tenant_id = $1", tenant); n != events {
		t.Errorf("%d events, want %d", n, events)
	}
	if n := h.count(t, "SELECT coalesce(sum(events), 0)::bigint FROM books WHERE tenant_id = $1", tenant); n != events {
		t.Errorf("the totals count %d events, want %d", n, events)
	}
	if n := h.count(t, "SELECT coalesce(sum(delivered), 0)::bigint FROM books WHERE tenant_id = $1", tenant); n != events {
		t.Errorf("the totals count %d delivered, want %d", n, events)
	}
	if n := h.count(t, "SELECT count(*) FROM attempts WHERE tenant_id = $1 AND NOT late", tenant); n != events {
		t.Errorf("%d attempts, want %d", n, events)
	}
	if n := h.count(t, "SELECT coalesce(sum(n), 0)::bigint FROM endpoint_stats WHERE tenant_id = $1 AND width = 60", tenant); n != events {
		t.Errorf("the roll-ups count %d attempts, want %d", n, events)
	}
}

// leftBehind checks what a tenant leaves in the home that it left.
func leftBehind(t *testing.T, h *someHome, tenant id.UUID) {
	t.Helper()
	for _, table := range []string{"queue", "lanes", "api_keys", "memberships", "tenant_move_marks"} {
		if n := h.count(t, "SELECT count(*) FROM "+table+" WHERE tenant_id = $1", tenant); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	if n := h.count(t, "SELECT count(*) FROM tenants WHERE id = $1 AND state = 'deleted' AND erased_at IS NULL", tenant); n != 1 {
		t.Error("what is left is not to be erased")
	}
	if n := h.count(t, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'move_%'"); n != 0 {
		t.Errorf("%d triggers are left", n)
	}
}

// A move that is broken off in any of its steps leaves a tenant that works after a rollback, and that can move again.
func TestAMoveIsRolledBack(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	to := newCounts(t)
	tenant := uuidOf(t, id.Tenant, one.tenant)
	var endpoint struct{ ID string }
	one.do(t, "POST", "/endpoints", map[string]any{"url": to.URL + "/hook", "verification": "simple"}, &endpoint)
	until(t, "the endpoint is active", func() bool {
		var now struct{ Status string }
		one.do(t, "GET", "/endpoints/"+endpoint.ID, nil, &now)
		return now.Status == "active"
	})
	events := 0
	emit := func() {
		t.Helper()
		var event struct{ ID string }
		until(t, "an event is accepted", func() bool {
			got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, anEvent)
			return got.status == http.StatusAccepted && json.Unmarshal([]byte(got.body), &event) == nil
		})
		events++
		until(t, "it is delivered", func() bool { return to.of(event.ID) == 1 })
	}
	emit()
	m := watchedMove(t, one, two, func(string) {})
	for _, step := range []string{"copied", "waiting for deliveries under way", "closing the tenant for the last changes", "copying the last changes"} {
		ctx, stop := context.WithCancel(t.Context())
		m.Say = func(now string, _ ...any) {
			if now == step {
				stop()
			}
		}
		if _, err := move.Run(ctx, m); err == nil {
			t.Fatalf("a move that was broken off at %q came to its end", step)
		}
		if step == "copying the last changes" {
			if got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, anEvent); got.status != http.StatusServiceUnavailable ||
				!strings.Contains(got.body, "tenant_moving") || got.header.Get("Retry-After") == "" {
				t.Errorf("an event of a closed tenant: %d %s", got.status, got.body)
			}
			if got := ask(t, "POST", one.URL()+"/api/v1/event-types", one.key, `{"name":"a.b"}`); got.status != http.StatusServiceUnavailable {
				t.Errorf("a change of a closed tenant: %d %s", got.status, got.body)
			}
			if got := ask(t, "GET", one.URL()+"/api/v1/events", one.key, ""); got.status != http.StatusOK {
				t.Errorf("a list of a closed tenant: %d %s", got.status, got.body)
			}
		}
		if r := command(t, moveEnviron(one, two), "tenant", "move", one.tenant, "--to", "eu2", "--rollback"); r.code != exitOK {
			t.Fatalf("the rollback: %s", r.stderr)
		}
		for _, table := range []string{"events", "deliveries", "attempts", "tenant_moves", "tenant_move_marks"} {
			if n := two.count(t, "SELECT count(*) FROM "+table+" WHERE tenant_id = $1", tenant); n != 0 {
				t.Errorf("%d rows of %s are left in the other home", n, table)
			}
		}
		if n := one.count(t, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'move\\_%'"); n != 0 {
			t.Errorf("%d triggers are left", n)
		}
		emit()
	}
	succeed(t, moveEnviron(one, two), &struct{}{}, "tenant", "move", one.tenant, "--to", "eu2", "--keep", "--json")
	emit()
	movedTotals(t, two, tenant, events)
	if n := one.count(t, "SELECT count(*) FROM events WHERE tenant_id = $1", tenant); n != events-1 {
		t.Errorf("%d events are kept, want %d", n, events-1)
	}
}

// watchedMove is a move with a callback at the start of each step.
func watchedMove(t *testing.T, from, to *someHome, say func(step string)) move.Move {
	t.Helper()
	environ := map[string]string{}
	for _, pair := range moveEnviron(from, to) {
		name, value, _ := strings.Cut(pair, "=")
		environ[name] = value
	}
	m := move.Move{
		Tenant: uuidOf(t, id.Tenant, from.tenant),
		From:   environ["POSTHORN_DATABASE_URL"],
		To:     environ[toDatabaseVariable],
		Home:   to.Config.Home,
		Say:    func(step string, _ ...any) { say(step) },
	}
	var err error
	if m.FromKeys, err = seal.NewRing(environ["POSTHORN_MASTER_KEY"]); err != nil {
		t.Fatal(err)
	}
	if m.ToKeys, err = seal.NewRing(environ[toMasterKeyVariable]); err != nil {
		t.Fatal(err)
	}
	return m
}

// pause pauses an endpoint, and waits until the worker has let go of its lane: a delivery that it has in hand is sent.
func (h *someHome) pause(t *testing.T, endpoint string) {
	t.Helper()
	h.do(t, "POST", "/endpoints/"+endpoint+"/pause", map[string]any{}, nil)
	until(t, "the worker has let go of a paused endpoint", func() bool {
		return h.count(t, "SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND owner IS NOT NULL", uuidOf(t, id.Endpoint, endpoint)) == 0
	})
}

// exec runs a statement that no part of Posthorn would.
func (h *someHome) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	tx, err := h.pools[0].Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE posthorn_console"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Before a tenant opens in the new home, all its rows are compared: older ones while it works, and the others once it
// is closed. A row that is missing there ends the move, which can then be taken back.
func TestAMoveComparesRowsBeforeTheTenantOpens(t *testing.T) {
	t.Parallel()
	const drop = "DELETE FROM %s WHERE (created_at, id) IN (SELECT created_at, id FROM %[1]s WHERE tenant_id = $1 ORDER BY created_at %s LIMIT 1)"
	for name, c := range map[string]struct{ step, harm, closed string }{
		"a recent event less": {"copying the last changes", fmt.Sprintf(drop, "events", "DESC"), "true"},
		"an older event less": {"comparing both homes", fmt.Sprintf(drop, "events", "ASC"), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := newMovingHomes(t)
			tenant := uuidOf(t, id.Tenant, one.tenant)
			for range 30 {
				one.do(t, "POST", "/events", json.RawMessage(anEvent), nil)
			}
			old := id.New(time.Now().Add(-10*time.Minute), [10]byte{6})
			const insert = "INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.completed', '{}', 1)"
			one.exec(t, insert, tenant, old.Time(), old)
			_, err := move.Run(t.Context(), watchedMove(t, one, two, func(step string) {
				if step == "waiting for deliveries under way" {
					one.do(t, "POST", "/events", json.RawMessage(anEvent), nil) // a recent one
				}
				if step == c.step {
					two.exec(t, c.harm, tenant)
				}
			}))
			if !fault.Is(err, "move_counts") {
				t.Fatalf("%v", err)
			}
			if n := two.count(t, "SELECT count(*) FROM tenants WHERE id = $1", tenant); n != 0 {
				t.Error("the tenant is in the new home")
			}
			if n := one.count(t, "SELECT count(*) FROM tenants WHERE id = $1 AND moving = "+c.closed, tenant); n != 1 {
				t.Error("older rows are not compared while the tenant works")
			}
			succeed(t, moveEnviron(one, two), nil, "tenant", "move", one.tenant, "--to", "eu2", "--rollback")
			one.do(t, "POST", "/events", json.RawMessage(anEvent), nil)
		})
	}
}

// A tenant with many waiting deliveries is closed for seconds: its queue is copied while it is closed.
// A thousand deliveries wait for each batch; POSTHORN_MOVE_BATCHES is how many there are (`make homes` takes 100).
func TestAMoveWithALongQueueIsShort(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	to := newCounts(t)
	for i := range 10 {
		var endpoint struct{ ID string }
		one.do(t, "POST", "/endpoints", map[string]any{"url": fmt.Sprint(to.URL, "/", i), "verification": "simple"}, &endpoint)
		until(t, "the endpoint is active", func() bool {
			var now struct{ Status string }
			one.do(t, "GET", "/endpoints/"+endpoint.ID, nil, &now)
			return now.Status == "active"
		})
		one.pause(t, endpoint.ID)
	}
	tenant := uuidOf(t, id.Tenant, one.tenant)
	events := strings.TrimSuffix(strings.Repeat(anEvent+",", 100), ",")
	began := time.Now()
	batches := 20
	if given := os.Getenv("POSTHORN_MOVE_BATCHES"); given != "" {
		var err error
		if batches, err = strconv.Atoi(given); err != nil || batches < 1 {
			t.Fatalf("POSTHORN_MOVE_BATCHES is %q: write a number", given)
		}
	}
	for range batches {
		if got := ask(t, "POST", one.URL()+"/api/v1/events/batch", one.key, `{"events":[`+events+`]}`); got.status/100 != 2 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	stored := time.Since(began) // what the same machine, as busy as it is, takes to accept them
	waiting := one.count(t, "SELECT count(*) FROM queue WHERE tenant_id = $1", tenant)
	moved, err := move.Run(t.Context(), watchedMove(t, one, two, func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d waiting deliveries: accepted in %v, closed for %v, %d rows", waiting, stored, moved.Closed, moved.Rows)
	if waiting != batches*100*10 || moved.Closed > 4*stored {
		t.Errorf("%d waiting deliveries, accepted in %v, closed for %v", waiting, stored, moved.Closed)
	}
	if n := two.count(t, "SELECT count(*) FROM queue WHERE tenant_id = $1", tenant); n != waiting {
		t.Errorf("%d of %d wait in the new home", n, waiting)
	}
}

func TestAMoveIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	good := moveEnviron(one, two)
	for name, c := range map[string]struct {
		environ []string
		args    []string
		mend    string
	}{
		"no such tenant": {good, []string{id.Tenant.Format(id.UUID{1}), "--to", "eu2"}, "No such object"},
		"no id":          {good, []string{"acme", "--to", "eu2"}, "posthorn tenant list"},
		"another home":   {good, []string{one.tenant, "--to", "us"}, "--to"},
		"no name":        {good, []string{one.tenant, "--to", "EU 2"}, "lowercase"},
		"no database":    {one.environ, []string{one.tenant, "--to", "eu2"}, toDatabaseVariable},
		"no key": {
			append(slices.Clone(good), toMasterKeyVariable+"="),
			[]string{one.tenant, "--to", "eu2"},
			toMasterKeyVariable,
		},
		"to itself": {
			append(slices.Clone(good), toDatabaseVariable+"="+one.admin),
			[]string{one.tenant, "--to", "eu1"},
			"other database",
		},
		"nothing to roll back": {good, []string{one.tenant, "--to", "eu2", "--rollback"}, ""},
	} {
		r := command(t, c.environ, append([]string{"tenant", "move"}, c.args...)...)
		if r.code == exitOK || !strings.Contains(r.stderr, c.mend) || strings.Contains(r.stderr, "Something went wrong") {
			t.Errorf("%s: %d %s", name, r.code, r.stderr)
		}
	}
	// The storage of history belongs to a home: its objects would stay behind.
	one.exec(t, "INSERT INTO history_days (tenant_id, day, state) VALUES ($1, '2031-03-30', 'stored')", uuidOf(t, id.Tenant, one.tenant))
	if r := command(t, good, "tenant", "move", one.tenant, "--to", "eu2"); r.code == exitOK || !strings.Contains(r.stderr, "posthorn history restore --all") {
		t.Errorf("a day is in storage: %d %s", r.code, r.stderr)
	}
	one.exec(t, "UPDATE history_days SET state = 'back'")
	if r := command(t, good, "tenant", "move", one.tenant, "--to", "eu2"); r.code != exitOK {
		t.Errorf("the day is back: %d %s", r.code, r.stderr)
	}
}

// While a tenant moves, its data can't be expunged: the responses of receivers that are copied would stay.
func TestAnExpungeWaitsForAMove(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	var event struct{ ID string }
	one.do(t, "POST", "/events", json.RawMessage(anEvent), &event)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := move.Run(ctx, watchedMove(t, one, two, func(step string) {
		if step == "waiting for deliveries under way" {
			stop()
		}
	})); err == nil {
		t.Fatal("a move that was ended finished")
	}
	expunge := func() answer {
		return ask(t, "POST", one.URL()+"/api/v1/events/"+event.ID+"/expunge", one.key, `{"reason":"test"}`)
	}
	if got := expunge(); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "tenant_moving") {
		t.Errorf("during the move: %d %s", got.status, got.body)
	}
	succeed(t, moveEnviron(one, two), &struct{}{}, "tenant", "move", one.tenant, "--to", "eu2", "--json")
	if got := expunge(); got.status != http.StatusOK {
		t.Errorf("after the move: %d %s", got.status, got.body)
	}
	if n := two.count(t, "SELECT count(*) FROM events WHERE data IS NOT NULL"); n != 0 {
		t.Errorf("%d events have data", n)
	}
}
