package move

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// pair is two homes without processes, and a tenant of the first.
type pair struct {
	t      *testing.T
	Move   Move
	apps   [2]string // URLs of the role that owns the tables
	admin  [2]*pgx.Conn
	tenant id.UUID
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t}
	var urls [2]string
	for i, name := range []string{"eu1", "eu2"} {
		app, admin := schematest.CloneLogical(t)
		d, err := db.Open(t.Context(), app, db.Options{Name: "test", MaxConns: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if _, err := accounts.TakeHome(t.Context(), d, name); err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"Stays", "Moves"} {
			if i == 1 {
				break
			}
			made, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: tenant}, db.Author{Kind: "command"})
			if err != nil {
				t.Fatal(err)
			}
			p.tenant = made.ID
		}
		if p.admin[i], err = db.Connect(t.Context(), admin, db.Options{Name: "test"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.admin[i].Close(context.Background()) })
		urls[i], p.apps[i] = admin, app
	}
	p.exec(0, "SELECT posthorn.make_partitions(current_date - 2, current_date + 1)")
	p.exec(0, `INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
		SELECT t.id, now() - g * interval '3 minutes', gen_random_uuid(), 'order.completed', '{}', 1 FROM tenants t, generate_series(1, 500) g`)
	p.exec(0, `INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status)
		SELECT tenant_id, created_at, gen_random_uuid(), id, gen_random_uuid(), type, 2 FROM events`)
	var keys [2]*seal.Ring
	for i, text := range []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk="} {
		var err error
		if keys[i], err = seal.NewRing(text); err != nil {
			t.Fatal(err)
		}
	}
	p.Move = Move{Tenant: p.tenant, From: urls[0], To: urls[1], FromKeys: keys[0], ToKeys: keys[1], Home: "eu2", Say: func(string, ...any) {}}
	return p
}

func (p *pair) exec(i int, statement string, args ...any) {
	p.t.Helper()
	if _, err := p.admin[i].Exec(p.t.Context(), statement, args...); err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

func (p *pair) count(i int, query string, args ...any) (n int) {
	p.t.Helper()
	if err := p.admin[i].QueryRow(p.t.Context(), query, args...).Scan(&n); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// nothingLeft checks that a move leaves nothing behind in the catalogs.
func (p *pair) nothingLeft(when string) {
	p.t.Helper()
	for i := range p.admin {
		for what, query := range map[string]string{
			"slots":         "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()",
			"publications":  "SELECT count(*) FROM pg_publication",
			"subscriptions": "SELECT count(*) FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = current_database()",
			"triggers":      "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'move\\_%'",
			"marks":         "SELECT count(*) FROM tenant_move_marks",
		} {
			if n := p.count(i, query); n != 0 {
				p.t.Errorf("%s: %d %s are left in %s", when, n, what, []string{"eu1", "eu2"}[i])
			}
		}
	}
}

// steps are what a move says.
var steps = []string{
	"waiting for transactions that run now", "copied", "comparing both homes", "waiting for deliveries under way",
	"closing the tenant for the last changes", "copying the last changes", "leading requests to the other home",
}

// A move that ends in any of its steps goes on when it is run again, and no row is lost or doubled. Rows of another
// tenant stay.
func TestAMoveGoesOnAfterEachStep(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, step := range steps {
		ctx, stop := context.WithCancel(t.Context())
		m := p.Move
		m.Say = func(now string, _ ...any) {
			if now == step {
				stop()
			}
		}
		if _, err := Run(ctx, m); !errors.Is(err, context.Canceled) && err == nil {
			t.Fatalf("a move that was ended at %q finished: %v", step, err)
		}
		stop()
		if step == "copied" { // what happens while the tenant moves comes along
			p.exec(0, "INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, now(), gen_random_uuid(), 'order.completed', '{}', 1)", p.tenant)
			p.exec(0, "UPDATE deliveries SET status = 3 WHERE tenant_id = $1", p.tenant)
		}
	}
	if _, err := Run(t.Context(), p.Move); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM events WHERE tenant_id = $1":                                             501,
		"SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status = 3":                          500,
		"SELECT count(*) FROM events WHERE tenant_id <> $1":                                            0,
		"SELECT count(*) FROM tenants WHERE id = $1 AND state = 'active' AND NOT moving":               1,
		"SELECT count(*) FROM api_keys WHERE tenant_id = $1":                                           1,
		"SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.moved'":              1,
		"SELECT count(*) FROM tenant_moves WHERE tenant_id = $1 AND direction = 'in' AND home = 'eu1'": 1,
	} {
		if n := p.count(1, query, p.tenant); n != want {
			t.Errorf("there: %s: %d, want %d", query, n, want)
		}
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM api_keys WHERE tenant_id = $1":                                                               0,
		"SELECT count(*) FROM events WHERE tenant_id <> $1":                                                                500,
		"SELECT count(*) FROM tenants WHERE id = $1 AND state = 'deleted' AND erased_at IS NULL":                           1,
		"SELECT count(*) FROM moved_tenants WHERE tenant_id = $1 AND home = 'eu2' AND cardinality(hashes) = 1":             1,
		"SELECT count(*) FROM tenant_moves WHERE tenant_id = $1 AND direction = 'out' AND home = 'eu2' AND state = 'done'": 1,
	} {
		if n := p.count(0, query, p.tenant); n != want {
			t.Errorf("here: %s: %d, want %d", query, n, want)
		}
	}
	p.nothingLeft("at the end")
	p.moveBack()
}

// moveBack moves the tenant to its first home again, which has erased what it had.
func (p *pair) moveBack() {
	t := p.t
	t.Helper()
	back := p.Move
	back.From, back.To, back.FromKeys, back.ToKeys, back.Home = p.Move.To, p.Move.From, p.Move.ToKeys, p.Move.FromKeys, "eu1"
	if _, err := Run(t.Context(), back); !fault.Is(err, "move_there") {
		t.Errorf("back before the rest is erased: %v", err)
	}
	p.exec(0, "DELETE FROM events WHERE tenant_id = $1", p.tenant)
	p.exec(0, "SELECT posthorn.erase_rest($1, 1000)", p.tenant)
	if n := p.count(0, "SELECT count(*) FROM moved_tenants m JOIN tenant_moves t USING (tenant_id) WHERE m.tenant_id = $1 AND t.link_key IS NOT NULL", p.tenant); n != 1 {
		t.Error("after the rest is erased, the first home does not know where the tenant is")
	}
	p.exec(0, "UPDATE tenants SET erased_at = now() WHERE id = $1", p.tenant)
	// Taken back, the first home still knows where the tenant is.
	ctx, stop := context.WithCancel(t.Context())
	back.Say = func(now string, _ ...any) {
		if now == "copying the last changes" {
			stop()
		}
	}
	if _, err := Run(ctx, back); err == nil {
		t.Error("a move back that was ended finished")
	}
	stop()
	if err := RollBack(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if n := p.count(0, "SELECT count(*) FROM moved_tenants WHERE tenant_id = $1 AND home = 'eu2'", p.tenant); n != 1 {
		t.Error("after a rollback, the first home does not know where the tenant is")
	}
	p.nothingLeft("after the rollback")
	back.Say = func(string, ...any) {}
	if _, err := Run(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if n := p.count(0, "SELECT count(*) FROM events WHERE tenant_id = $1", p.tenant); n != 501 {
		t.Errorf("%d events are back, want 501", n)
	}
	if n := p.count(0, "SELECT count(*) FROM moved_tenants"); n != 0 {
		t.Errorf("the first home passes on requests for %d tenants", n)
	}
	p.nothingLeft("back")
}

// A move that can't replicate says what the servers lack, and changes nothing.
func TestAMoveNamesWhatTheServersLack(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for what, c := range map[string]struct {
		change func(m *Move)
		want   string
	}{
		"wal_level":               {func(m *Move) { m.From = plainServer(t) }, "wal_level = logical"},
		"the role that it leaves": {func(m *Move) { m.From = p.apps[0] }, "REPLICATION BYPASSRLS"},
		"the role that it enters": {func(m *Move) { m.To = p.apps[1] }, "pg_create_subscription"},
	} {
		m := p.Move
		c.change(&m)
		if _, err := Run(t.Context(), m); !fault.Is(err, "move_server") || !strings.Contains(fault.As(err).Detail, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	p.nothingLeft("after a move that did not start")
}

// plainServer is a database named eu1 on a server without logical replication.
func plainServer(t *testing.T) string {
	t.Helper()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{Name: "test", MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := accounts.TakeHome(t.Context(), d, "eu1"); err != nil {
		t.Fatal(err)
	}
	return url
}

// interrupt starts a move, and ends its command when it says a step.
func (p *pair) interrupt(step string, during func()) {
	p.t.Helper()
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	m := p.Move
	m.Say = func(now string, _ ...any) {
		if now == step {
			during()
			stop()
		}
	}
	if moved, err := Run(ctx, m); err == nil || !moved.Started {
		p.t.Fatalf("a move that was ended at %q: %+v, %v", step, moved, err)
	}
}

// sync does what a home's worker does for its alerts, at a time.
func (p *pair) sync(i int, at time.Time) {
	p.t.Helper()
	d, err := db.Open(p.t.Context(), p.apps[i], db.Options{Name: "test", MaxConns: 2})
	if err != nil {
		p.t.Fatal(err)
	}
	defer d.Close()
	if err := endpoints.SyncAlerts(p.t.Context(), d, accounts.Links{BaseURL: "https://hooks.example.com"}, at, 5); err != nil {
		p.t.Error(err)
	}
}

// A move that no command runs is noticed in both homes, and told to the operators once it is missing for an hour. The
// command that runs it again ends that.
func TestAMoveWithoutItsCommandIsToldInBothHomes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	now := time.Now()
	p.exec(0, "INSERT INTO operators (id, email, name, created_at) VALUES (gen_random_uuid(), 'op@example.com', 'Olga', now())")
	stopped := func(i int) int {
		return p.count(i, "SELECT count(*) FROM tenant_moves WHERE state <> 'done' AND stopped_at IS NOT NULL")
	}
	p.interrupt("waiting for deliveries under way", func() {
		for i := range p.admin {
			if p.sync(i, now); stopped(i) != 0 {
				t.Errorf("a move whose command runs is noted as stopped in home %d", i)
			}
		}
	})
	const alerts = "SELECT count(*) FROM platform_alerts WHERE kind = 'move_stopped' AND ended_at IS NULL"
	for i := range p.admin {
		p.sync(i, now)
		p.sync(i, now.Add(59*time.Minute))
		if stopped(i) != 1 || p.count(i, alerts) != 0 {
			t.Errorf("home %d: %d moves are noted, %d are told before an hour", i, stopped(i), p.count(i, alerts))
		}
		p.sync(i, now.Add(time.Hour))
		p.sync(i, now.Add(time.Hour+time.Minute))
		if n := p.count(i, alerts+" AND about_tenant = $1 AND message LIKE '%--rollback%'", p.tenant); n != 1 {
			t.Errorf("home %d: %d alerts", i, n)
		}
	}
	if n := p.count(0, "SELECT count(*) FROM platform_alerts WHERE title LIKE '%Moves to the home eu2%' AND message LIKE '% MB so far%'"); n != 1 {
		t.Error("the alert does not say whose move it is and what the server keeps for it")
	}
	if n := p.count(0, "SELECT count(*) FROM mails WHERE kind = 'operator_alert'"); n != 1 {
		t.Errorf("%d mails, want one a day", n)
	}
	p.interrupt("closing the tenant for the last changes", func() {
		if p.sync(0, now.Add(61*time.Minute)); stopped(0) != 0 {
			t.Error("a move whose command runs again is noted as stopped")
		}
	})
	p.exec(0, "UPDATE tenant_moves SET state = 'closed', closed_at = now()")
	p.sync(0, now.Add(2*time.Hour))
	p.sync(0, now.Add(2*time.Hour+time.Minute))
	if n := p.count(0, alerts+" AND title LIKE '%accepts no events%'"); n != 1 {
		t.Error("a closed tenant is not told within a minute")
	}
	if err := RollBack(t.Context(), p.Move); err != nil {
		t.Fatal(err)
	}
	p.nothingLeft("after the rollback")
	p.sync(0, now.Add(2*time.Hour+10*time.Minute))
	if n := p.count(0, alerts); n != 0 {
		t.Error("the alert does not end with the move")
	}
}

// A rollback that is ended in between leaves the move in sight, and goes on when it is run again.
func TestAMovesRollbackGoesOn(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.interrupt("closing the tenant for the last changes", func() {})
	tx, err := p.admin[0].Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE cancellations IN SHARE MODE"); err != nil { // the triggers can't go
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := RollBack(ctx, p.Move); err == nil {
		t.Fatal("a rollback that waits for a lock has come to its end")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := p.count(0, "SELECT count(*) FROM tenant_moves m JOIN tenants t ON t.id = m.tenant_id WHERE NOT t.moving AND m.state = 'copying'"); n != 1 {
		t.Error("the home does not know of the move that is half rolled back, or its tenant is closed")
	}
	if err := RollBack(t.Context(), p.Move); err != nil {
		t.Fatal(err)
	}
	p.nothingLeft("after the rollback")
	for i := range p.admin {
		if n := p.count(i, "SELECT count(*) FROM tenant_moves"); n != 0 {
			t.Errorf("home %d still knows the move", i)
		}
	}
	if n := p.count(1, "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM deliveries)"); n != 0 {
		t.Errorf("%d copied rows are left", n)
	}
}

// If the database of the other home is lost, a move ends without it, and the log is kept no longer. A tenant that has
// come to the other home stays there.
func TestAMoveToALostHomeIsRolledBackWithoutIt(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	lost := p.Move
	lost.To = ""
	if err := RollBack(t.Context(), lost); !fault.Is(err, fault.ErrNotFound.Code) {
		t.Errorf("no move: %v", err)
	}
	p.interrupt("copying the last changes", func() {})
	if err := RollBack(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	for what, query := range map[string]string{
		"slots":        "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()",
		"publications": "SELECT count(*) FROM pg_publication",
		"triggers":     "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'move\\_%'",
		"moves":        "SELECT count(*) FROM tenant_moves",
		"closed":       "SELECT count(*) FROM tenants WHERE moving",
	} {
		if n := p.count(0, query); n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
	if err := RollBack(t.Context(), p.Move); err != nil { // the other home was not lost
		t.Fatal(err)
	}
	p.nothingLeft("in both homes")
	if _, err := Run(t.Context(), p.Move); err != nil {
		t.Fatal(err)
	}
	if err := RollBack(t.Context(), lost); !fault.Is(err, "move_done") {
		t.Errorf("a tenant that has moved was taken back: %v", err)
	}
}
