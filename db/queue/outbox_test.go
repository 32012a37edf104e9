package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// emitter is a product's connection with the rights of the role posthorn_emitter.
func emitter(t *testing.T, owner *pgx.Conn) *pgx.Conn {
	t.Helper()
	if _, err := owner.Exec(t.Context(), "GRANT posthorn_emitter TO CURRENT_USER"); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ConnectConfig(t.Context(), owner.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if _, err := c.Exec(t.Context(), "SET ROLE posthorn_emitter"); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestIdsAreTheSameInSQL(t *testing.T) {
	t.Parallel()
	_, owner, _, _ := schematest.Tenants(t, 2)
	if _, err := owner.Exec(t.Context(), "SET ROLE posthorn_lookup"); err != nil {
		t.Fatal(err)
	}
	var last id.UUID
	for range 50 {
		var made [16]byte
		var outer string
		if err := owner.QueryRow(t.Context(), "SELECT n, posthorn.outer_id('evt', n) FROM posthorn.new_id() n").Scan(&made, &outer); err != nil {
			t.Fatal(err)
		}
		eventID := id.UUID(made)
		if got := id.Event.Format(eventID); got != outer {
			t.Fatalf("%s is %s in SQL and %s in Go", eventID, outer, got)
		}
		if eventID[6]>>4 != 7 || eventID[8]>>6 != 2 || time.Since(eventID.Time()).Abs() > time.Minute ||
			eventID.String() <= last.String() {
			t.Fatalf("%s after %s is no UUIDv7 in order", eventID, last)
		}
		last = eventID
		var back [16]byte
		if err := owner.QueryRow(t.Context(), "SELECT posthorn.inner_id('evt', $1)", outer).Scan(&back); err != nil || id.UUID(back) != eventID {
			t.Fatalf("%s comes back as %x, %v", outer, back, err)
		}
	}
	for _, wrong := range []string{"", "evt_", "ten_" + strings.Repeat("0", 26), "evt_8" + strings.Repeat("0", 25), "evt_" + strings.Repeat("l", 26), "evt_" +
		strings.Repeat("0", 27), "evt_" + strings.Repeat("A", 26)} {
		var none *[16]byte
		if err := owner.QueryRow(t.Context(), "SELECT posthorn.inner_id('evt', $1)", wrong).Scan(&none); err != nil || none != nil {
			t.Errorf("%q gives %x, %v", wrong, none, err)
		}
	}
}

func TestAnEventExistsIfAndOnlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	d, owner, a, _ := schematest.Tenants(t, 2)
	c := emitter(t, owner)
	inTx := func(end string) (event string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if err := c.QueryRow(t.Context(), `SELECT posthorn.emit($1, 'order.paid', '{ "a":1.0, "a":2 }', key => 'k', channels => ARRAY['eu'])`,
			id.Tenant.Format(a)).Scan(&event); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		return event
	}
	inTx("ROLLBACK")
	if _, err := queue.RelayOutbox(t.Context(), d, 10, nil,
		func([]sql.Outbox) []error { t.Error("a transaction that was rolled back emits"); return nil }); err != nil {
		t.Fatal(err)
	}
	event := inTx("COMMIT")
	var seen []sql.Outbox
	n, err := queue.RelayOutbox(t.Context(), d, 10, nil, func(rows []sql.Outbox) []error {
		seen = rows
		return make([]error, len(rows))
	})
	if err != nil || n != 1 || len(seen) != 1 {
		t.Fatal(n, err, seen)
	}
	r := seen[0]
	if id.Event.Format(r.ID) != event || r.TenantID != a || string(r.Data) != `{ "a":1.0, "a":2 }` || *r.Key != "k" || r.Channels[0] != "eu" {
		t.Errorf("%+v, want %s", r, event)
	}
	if n, err := queue.RelayOutbox(t.Context(), d, 10, nil, func([]sql.Outbox) []error { return nil }); n != 0 ||
		err != nil {
		t.Errorf("%d rows are left, %v", n, err)
	}
}

func TestEmitInSQLRejectsWhatTheAPIRejects(t *testing.T) {
	t.Parallel()
	d, owner, a, b := schematest.Tenants(t, 2)
	if _, err := accounts.SetTenantState(t.Context(), d, b, "suspended", "", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	c := emitter(t, owner)
	good := "'" + id.Tenant.Format(a) + "'"
	for call, says := range map[string]string{
		`'ten_x', 'a', '1'`: "no such tenant",
		`'` + id.Tenant.Format(db.NewID()) + `', 'a', '1'`: "no such tenant",
		`NULL, 'a', '1'`: "no such tenant",
		`'` + id.Tenant.Format(b) + `', 'a', '1'`:                         "suspended",
		good + `, 'a b', '1'`:                                             "type is malformed",
		good + `, '-2', '1'`:                                              "type is malformed",
		good + `, 'endpoint.verification', '1'`:                           "type is reserved",
		good + `, 'posthorn.x', '1'`:                                      "type is reserved",
		good + `, 'a.', '1'`:                                              "type is malformed",
		good + `, NULL, '1'`:                                              "type is malformed",
		good + `, repeat('a', 129), '1'`:                                  "type is malformed",
		good + `, 'a', NULL`:                                              "no data",
		good + `, 'a', '{'`:                                               "json",
		good + `, 'a', to_json(repeat('x', 262143))`:                      "262145 bytes",
		good + `, 'a', '1', event_id => ''`:                               "event_id is malformed",
		good + `, 'a', '1', event_id => 'a.b'`:                            "event_id is malformed",
		good + `, 'a', '1', event_id => 'a"b'`:                            "event_id is malformed",
		good + `, 'a', '1', event_id => E'a\\\\b'`:                        "event_id is malformed",
		good + `, 'a', '1', event_id => repeat('k', 257)`:                 "event_id is malformed",
		good + `, 'a', '1', key => ''`:                                    "key is malformed",
		good + `, 'a', '1', key => repeat('k', 129)`:                      "key is malformed",
		good + `, 'a', '1', channels => ARRAY['a b']`:                     "channels are malformed",
		good + `, 'a', '1', channels => ARRAY[NULL]::text[]`:              "channels are malformed",
		good + `, 'a', '1', channels => array_fill('c'::text, ARRAY[11])`: "channels are malformed",
		good + `, 'a', '1', idempotency_key => 'a b'`:                     "idempotency_key is malformed",
		good + `, 'a', '1', version => '1/2'`:                             "version is malformed",
		good + `, 'a', '1', occurred_at => '-infinity'`:                   "occurred_at is out of range",
		good + `, 'a', '1', deliver_at => now() + interval '31 days'`:     "deliver_at is out of range",
	} {
		_, err := c.Exec(t.Context(), "SELECT posthorn.emit("+call+")")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if _, err := c.Exec(t.Context(), "SELECT posthorn.emit("+good+", 'a', 'null', deliver_at => now() + interval '29 days', occurred_at => now())"); err != nil {
		t.Error(err)
	}
}

func TestAKnownIdempotencyKeyInSQLGivesTheFirstId(t *testing.T) {
	t.Parallel()
	_, owner, a, b := schematest.Tenants(t, 4)
	one, another := emitter(t, owner), emitter(t, owner)
	emit := func(c *pgx.Conn, tenant id.UUID, rest string) (event string) {
		t.Helper()
		if err := c.QueryRow(t.Context(), "SELECT posthorn.emit($1, 'a.b', "+rest+")", id.Tenant.Format(tenant)).Scan(&event); err != nil {
			t.Fatal(err)
		}
		return event
	}
	const call = `'{"n":1}', key => 'k', channels => ARRAY['eu'], occurred_at => '2026-01-31T12:00:00.5Z', idempotency_key => 'once'`
	first := emit(one, a, call)
	if again := emit(another, a, call); again != first {
		t.Errorf("while it waits: %s, want %s", again, first)
	}
	for what, other := range map[string]string{
		"another tenant": emit(one, b, call),
		"other data":     emit(one, a, strings.Replace(call, `1`, `2`, 1)),
		"no key":         emit(one, a, `'{"n":1}'`),
	} {
		if other == first {
			t.Errorf("%s: the same event", what)
		}
	}
	// Of two concurrent transactions the second waits for the first.
	if _, err := one.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	const racing = `'1', idempotency_key => 'race'`
	won := emit(one, a, racing)
	second := make(chan string)
	go func() { second <- emit(another, a, racing) }()
	for waits := 0; waits == 0; {
		if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if got := <-second; got != won {
		t.Errorf("at the same time: %s and %s", won, got)
	}
}

func TestAProductsRoleCanOnlyEmit(t *testing.T) {
	t.Parallel()
	_, owner, a, _ := schematest.Tenants(t, 2)
	c := emitter(t, owner)
	for _, statement := range []string{
		"SELECT * FROM posthorn.outbox", "INSERT INTO posthorn.outbox (id) VALUES (gen_random_uuid())", "SELECT * FROM posthorn.tenants",
		"DELETE FROM posthorn.events", "SELECT posthorn.tenant_state('" + a.String() + "')", "SELECT posthorn.unfolded_stats('" + a.String() + "')",
		"SELECT posthorn.inner_id('ten', 'x')",
	} {
		if _, err := c.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if allowed := schematest.Names(t, owner, `SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'posthorn'::regnamespace
		AND has_function_privilege('posthorn_emitter', p.oid, 'EXECUTE')`); len(allowed) != 2 || !strings.HasPrefix(allowed[0], "emit(") || !strings.HasPrefix(allowed[1], "emit(") {
		t.Errorf("it may call %q", allowed)
	}
}
