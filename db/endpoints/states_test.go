package endpoints_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// everyLane inserts an endpoint with its lane for every combination of the facts that determine a condition and a wait.
const everyLane = `
WITH combos AS (
	SELECT row_number() OVER () AS n, * FROM unnest($1::uuid[]) AS tenant(tenant), unnest(ARRAY['active', 'unverified', 'paused', 'disabled']) AS status(status),
		unnest(ARRAY['http', 'listen', 'silent', 'left']) AS kind(kind), unnest(ARRAY['http://one.example/', 'http://Paused.example:8443/x']) AS url(url),
		unnest(ARRAY['none', 'closed', 'open', 'counted', 'torn']) AS breaker(breaker), unnest(ARRAY['none', 'live', 'dead']) AS owner(owner),
		unnest(ARRAY[0, 1, 2]) AS limited(limited), unnest(ARRAY[NULL, 5]) AS rate(rate), unnest(ARRAY[NULL, -1, 1]) AS pause(pause)
), keyed AS (
	SELECT *, (left(posthorn.first_id(now())::text, 24) || lpad(to_hex(n), 12, '0'))::uuid AS id FROM combos
), e AS (
	INSERT INTO endpoints (tenant_id, id, kind, url, event_types, status, status_reason, status_at, rate_limit, created_at)
	SELECT tenant, id, CASE kind WHEN 'http' THEN kind ELSE 'listen' END, url, '{*}', status, CASE kind WHEN 'left' THEN 'disconnected' ELSE '' END,
		now() - interval '1 hour', rate, now() FROM keyed
), i AS (
	INSERT INTO listeners (tenant_id, endpoint_id, contact_at)
	SELECT tenant, id, now() - CASE kind WHEN 'listen' THEN interval '10 seconds' ELSE interval '2 minutes' END FROM keyed WHERE kind IN ('listen', 'silent')
), h AS (
	INSERT INTO endpoint_health (tenant_id, endpoint_id, breaker_state, opened_at, next_probe_at, consecutive_failures, last_failure_at)
	SELECT tenant, id, (breaker IN ('open', 'torn'))::int, CASE WHEN breaker IN ('open', 'torn') THEN now() END, CASE WHEN breaker = 'open' THEN now() + interval '1 hour' END,
		CASE breaker WHEN 'counted' THEN 10 ELSE 9 END, now() FROM keyed WHERE breaker <> 'none'
)
INSERT INTO lanes (endpoint_id, tenant_id, held, owner, limited_by, not_before)
SELECT id, tenant, status <> 'active', CASE owner WHEN 'live' THEN $2::uuid WHEN 'dead' THEN $3::uuid END, limited, now() + make_interval(mins => pause) FROM keyed`

type laneState struct {
	endpoint, tenant id.UUID
	condition, waits string
	listens          bool
	ready, due       bool
	notBefore        *time.Time
}

// statesWorld is a database with an active tenant and a suspended one.
type statesWorld struct {
	t                 *testing.T
	db                *db.DB
	url               string
	active, suspended id.UUID
	live              id.UUID
}

func newStatesWorld(t *testing.T) *statesWorld {
	t.Helper()
	w := &statesWorld{t: t, url: schematest.Clone(t), live: db.NewID()}
	d, err := db.Open(t.Context(), w.url, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	w.db = d
	for _, u := range []*id.UUID{&w.active, &w.suspended} {
		row, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "t"}, db.Author{Kind: "command"})
		if err != nil {
			t.Fatal(err)
		}
		*u = row.ID
	}
	dead := db.NewID()
	w.as("console", func(c pgx.Tx) error {
		if _, err := c.Exec(t.Context(), "UPDATE tenants SET state = 'suspended', state_at = now() WHERE id = $1", w.suspended.String()); err != nil {
			return err
		}
		_, err := c.Exec(t.Context(), `INSERT INTO dispatch_pauses (id, scope, host, reason, actor_kind, created_at)
			VALUES (gen_random_uuid(), 'host', 'paused.example', 'test', 'operator', now())`)
		return err
	})
	w.as("worker", func(c pgx.Tx) error {
		_, err := c.Exec(t.Context(), "INSERT INTO workers (id, name, dead, beat_at) VALUES ($1, 'live', false, now()), ($2, 'dead', true, now())", w.live.String(), dead.String())
		return err
	})
	conn, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	w.asAdmin(conn, func() error {
		_, err := conn.Exec(t.Context(), everyLane, []string{w.active.String(), w.suspended.String()}, w.live.String(), dead.String())
		return err
	})
	return w
}

// asAdmin runs a statement that no role of the product can run: as the worker, with the right to insert endpoints.
func (w *statesWorld) asAdmin(conn *pgx.Conn, do func() error) {
	w.t.Helper()
	for _, text := range []string{"GRANT INSERT ON posthorn.endpoints TO posthorn_worker", "SET ROLE posthorn_worker", "SET search_path = posthorn"} {
		if _, err := conn.Exec(w.t.Context(), text); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := do(); err != nil {
		w.t.Fatal(err)
	}
}

// as runs a function in a transaction of a role.
func (w *statesWorld) as(role string, do func(pgx.Tx) error) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = pgx.BeginFunc(w.t.Context(), conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.t.Context(), "SET LOCAL ROLE posthorn_"+role); err != nil {
			return err
		}
		if _, err := tx.Exec(w.t.Context(), "SELECT set_config('search_path', 'posthorn', true), set_config('posthorn.tenant', $1, true)", w.active.String()); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// states is the result of the database's function for lanes, to a role, of one tenant or all.
func (w *statesWorld) states(role string, of *id.UUID) (found []laneState) {
	w.t.Helper()
	var tenant *string
	if of != nil {
		tenant = new(of.String())
	}
	w.as(role, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), `SELECT endpoint_id, tenant_id, condition, waits, listens, ready, due, not_before
			FROM posthorn.lane_states($1, $2)`, tenant, incidents.Silent.Seconds())
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s laneState, err error) {
			return s, row.Scan((*[16]byte)(&s.endpoint), (*[16]byte)(&s.tenant), &s.condition, &s.waits, &s.listens,
				&s.ready, &s.due, &s.notBefore)
		})
		return err
	})
	return found
}

// TestOneTenantsStatesCostNoLookAtOthers: a page about one tenant must not read the lanes and endpoints of thousands,
// also where the plan was made before the tenant was known.
func TestOneTenantsStatesCostNoLookAtOthers(t *testing.T) {
	t.Parallel()
	w := &statesWorld{t: t, url: schematest.Clone(t), active: db.NewID()}
	w.as("console", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `WITH t AS (
				INSERT INTO tenants (id, name, retention_days, created_at)
				SELECT CASE i WHEN 0 THEN $1 ELSE gen_random_uuid() END, 'Tenant ' || i, 30, now() FROM generate_series(0, 8000) i RETURNING id
			), e AS (
				INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at)
				SELECT id, gen_random_uuid(), 'http://one.example/', '{*}', 'active', now(), now() FROM t RETURNING tenant_id, id
			)
			INSERT INTO lanes (endpoint_id, tenant_id) SELECT id, tenant_id FROM e`, w.active.String())
		return err
	})
	owner, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	if _, err := owner.Exec(t.Context(), "ANALYZE posthorn.tenants, posthorn.endpoints, posthorn.lanes"); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"tenant", "worker"} { // the console looks for pauses of all tenants, once in a query
		w.as(role, func(tx pgx.Tx) error {
			for _, statement := range []string{
				"SET LOCAL plan_cache_mode = force_generic_plan",
				"PREPARE states (uuid) AS SELECT condition FROM posthorn.lane_states($1, 60)",
			} {
				if _, err := tx.Exec(t.Context(), statement); err != nil {
					return err
				}
			}
			// What the functions read is not in the plan, and counted in its blocks.
			var plan []struct {
				Plan struct {
					Hit  int `json:"Shared Hit Blocks"`
					Read int `json:"Shared Read Blocks"`
				}
			}
			for range 2 { // the first reads the catalog too
				if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE states ('"+w.active.String()+"')").Scan(&plan); err != nil {
					return err
				}
			}
			if blocks := plan[0].Plan.Hit + plan[0].Plan.Read; blocks > 100 {
				t.Errorf("as %s, the states of a tenant with one endpoint among 8,000 others cost %d blocks", role, blocks)
			}
			return nil
		})
	}
}

// lanes is the result of domain/condition for the same lanes.
func (w *statesWorld) lanes(of []laneState) (lanes map[id.UUID]endpoints.WaitingLane) {
	w.t.Helper()
	ids := make([]id.UUID, len(of))
	for i, s := range of {
		ids[i] = s.endpoint
	}
	err := w.db.Console(w.t.Context(), func(q *sql.Queries) (err error) {
		lanes, err = endpoints.WaitingLanes(w.t.Context(), q, nil, ids)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return lanes
}

// agree compares the states of lanes in SQL with those of domain/condition.
func (w *statesWorld) agree(what string, states []laneState) {
	w.t.Helper()
	differ, lanes := 0, w.lanes(states)
	for _, s := range states {
		l := lanes[s.endpoint]
		wait := condition.WaitOf(condition.Row{State: condition.RowReady}, l.Lane, l.At).Reason
		// A lane is due when nothing but the platform keeps its ready deliveries.
		due := l.Ready(l.At) && (wait == condition.Next || wait == condition.NoWorker)
		want := fmt.Sprint(l.Condition.State, wait, l.Listens, l.Ready(l.At), due)
		if got := fmt.Sprint(s.condition, s.waits, s.listens, s.ready, s.due); got != want {
			if differ++; differ <= 10 {
				w.t.Errorf("%s: SQL says %s, domain/condition %s of %+v", what, got, want, l.Lane)
			}
		}
	}
	if differ > 10 {
		w.t.Errorf("%s: %d of %d lanes differ", what, differ, len(states))
	}
}

// Queries that count many endpoints and deliveries compute states in SQL. They agree with domain/condition for all
// combinations of facts.
func TestStatesInSQLAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	w := newStatesWorld(t)
	all := w.states("console", nil)
	seen := map[string]bool{}
	for _, s := range all {
		seen[s.condition], seen[s.waits] = true, true
	}
	for _, s := range condition.States() {
		if !seen[string(s)] {
			t.Errorf("no lane is %s: the combinations lack a fact", s)
		}
	}
	w.agree("console", all)
	own := w.states("tenant", &w.active)
	if len(own) != len(all)/2 {
		t.Errorf("a tenant sees %d lanes, want its own %d", len(own), len(all)/2)
	}
	w.agree("tenant", own)
	w.agree("worker, one tenant", w.states("worker", &w.suspended))
	w.rowsAgree(all, seen)
	w.inFlightAgrees(all, seen)
	for _, r := range condition.Reasons() {
		if !seen[string(r)] {
			t.Errorf("no delivery waits for %s: the combinations lack a fact", r)
		}
	}
	w.as("worker", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE workers SET beat_at = now() - interval '1 hour' WHERE NOT dead")
		return err
	})
	w.agree("no live worker", w.states("console", nil))
	w.as("console", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO dispatch_pauses (id, scope, host, reason, actor_kind, created_at) VALUES (gen_random_uuid(), 'platform', '', 'test', 'operator', now())`)
		return err
	})
	w.agree("everything paused", w.states("console", nil))
}

// rowsAgree compares why rows of the queue wait, for one lane of each kind.
func (w *statesWorld) rowsAgree(all []laneState, seen map[string]bool) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ask := func(state int16, due time.Time, asked bool, s laneState) (waits string) {
		w.t.Helper()
		row := conn.QueryRow(w.t.Context(), "SELECT posthorn.row_waits($1, $2, $3, $4, $5, $6)", state, due, asked, s.condition, s.waits, s.notBefore)
		if err := row.Scan(&waits); err != nil {
			w.t.Fatal(err)
		}
		return waits
	}
	w.asAdmin(conn, func() error { return nil })
	lanes, kinds := w.lanes(all), map[string]laneState{}
	for _, s := range all {
		kinds[fmt.Sprint(s.condition, s.waits, s.notBefore == nil, s.notBefore != nil &&
			s.notBefore.After(time.Now()))] = s
	}
	for _, s := range kinds {
		l := lanes[s.endpoint]
		for _, state := range []int16{
			condition.RowReady, condition.RowRetry, condition.RowBlocked,
			condition.RowDeferred,
		} {
			for _, due := range []time.Duration{-time.Minute, 30 * time.Second, time.Hour, delivery.UntilEdit} {
				for _, asked := range []bool{false, true} {
					at := l.At.Add(due)
					r := condition.Row{State: state, Due: at, Asked: asked}
					if state == condition.RowBlocked {
						r.Behind = db.NewID()
					}
					want := string(condition.WaitOf(r, l.Lane, l.At).Reason)
					got := ask(state, at, asked, s)
					if seen[got] = true; got != want {
						w.t.Errorf("row %+v: SQL says %s, domain/condition %s of %+v", r, got, want, l.Lane)
					}
				}
			}
		}
	}
}

// inFlightAgrees compares what the count of waiting deliveries by reason says of two whose requests the lane's owner
// noted: one of them has ended since, and its next attempt is due later.
func (w *statesWorld) inFlightAgrees(all []laneState, seen map[string]bool) {
	w.t.Helper()
	s := all[slices.IndexFunc(all, func(s laneState) bool { return s.tenant == w.active && s.waits == string(condition.Next) })]
	due := map[id.UUID]time.Duration{db.NewID(): -time.Minute, db.NewID(): time.Hour}
	w.as("console", func(tx pgx.Tx) error {
		for delivery, after := range due {
			if _, err := tx.Exec(w.t.Context(), `WITH l AS (
					UPDATE lanes SET owner = $3, limited_by = 0, in_flight = in_flight || jsonb_build_object($2::uuid::text, now()) WHERE endpoint_id = $1)
				INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, attempts, state, due_at)
				SELECT tenant_id, $2::uuid, $2::uuid, id, 1, $4, now() + make_interval(secs => $5) FROM endpoints WHERE id = $1`,
				s.endpoint.String(), delivery.String(), w.live.String(), condition.RowRetry, after.Seconds()); err != nil {
				return err
			}
		}
		return nil
	})
	want, got := map[string]int64{}, map[string]int64{}
	lane := w.lanes([]laneState{s})[s.endpoint]
	for delivery, after := range due {
		row := condition.Row{State: condition.RowRetry, Due: lane.At.Add(after), Sent: lane.InFlight[delivery.String()]}
		want[string(condition.WaitOf(row, lane.Lane, lane.At).Reason)]++
	}
	err := w.db.Worker(w.t.Context(), func(q *sql.Queries) error {
		rows, err := q.PendingByAge(w.t.Context(), incidents.Silent.Seconds())
		for _, r := range rows {
			got[r.Reason] += r.N
			seen[r.Reason] = true
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("SQL counts %v, domain/condition says %v", got, want)
	}
}
