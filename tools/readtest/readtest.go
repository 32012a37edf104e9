// Package readtest measures what a tenant's statements read from a history, on a server that the caller brings.
//
// PostgreSQL's minor releases differ in which conditions they let an index serve below row-level security. A statement
// that reads the whole history on one of them is as correct as ever, and seconds late. So what is compared is what a
// statement read, with a small history and with one many times as long: no plan is looked at.
package readtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The history has so many events on each of its days, first and then.
const (
	days   = 6
	few    = 40
	growth = 60
)

// A statement may read half as much again and so much more after the growth: trees get a level deeper, and pages are
// split elsewhere. Reading any day whole takes hundreds of rows.
const slack = 100

// Server is where statements are measured: a database with the newest schema and one tenant.
type Server struct {
	Conn   *pgx.Conn // as the owner of the schema
	Tenant string    // its id
}

// grows are the statements that read more of a longer history, with the reason. The tenant's role could run those of
// other roles among them, and doesn't.
var grows = map[string]string{
	"CountRecentFailures":    "counts up to 100,000",
	"CountDeadLetters":       "counts up to 100,000, for the metrics",
	"PendingByAge":           "counts waiting deliveries up to a bound, for the metrics",
	"ConsoleBacklogs":        "counts the first 200,000 that wait, for the console",
	"ConsoleTenants":         "counts up to 10,001 that wait for each tenant, for the console",
	"TenantHoldings":         "counts up to 10,001 that wait",
	"QueuedEndpoints":        "reads the waiting deliveries of a deleted tenant, which is being emptied",
	"DropOldCancellations":   "deletes rows past the retention",
	"DropOldDeadLetters":     "deletes rows past the retention",
	"KeptDays":               "reads the waiting deliveries of days before the retention, of all tenants, as the worker",
	"HistoryEvents":          "reads a part of a day that leaves the database",
	"HistoryDeliveries":      "reads a part of a day that leaves the database",
	"EventsThere":            "reads a part of a day in storage, which is at most 10,000 events",
	"LockHistoryRows":        "locks a part of a day that leaves the database",
	"NeedsHistory":           "reads the waiting deliveries of a part of a day that leaves the database",
	"SuccessByHour":          "reads a sample of the attempts, for the status page",
	"LatencyByHour":          "reads a sample of the attempts, for the status page",
	"TakeUnannounced":        "reads the dead letters of all tenants that are to be announced, as the worker",
	"ContradictedDeliveries": "reads all of a page of a day for the ledger, as the worker",
}

// Check fails the test for each statement of a folder of generated code that the tenant's role can run and that reads
// more the longer the tenant's history is.
func Check(t testing.TB, s Server, folder string) {
	t.Helper()
	all := statements(t, folder)
	h := newHistory(t, s)
	h.grow(1, few)
	before := h.measure(all)
	h.grow(few+1, few*growth)
	after := h.measure(all)
	idle := 0
	for name, b := range before {
		a := after[name]
		for again := 0; again < 3 && a.reads > b.reads*3/2+slack && grows[name] == ""; again++ {
			// A run that finds the caches of the catalog invalidated, by an autovacuum for instance, reads that too.
			if c, ok := h.run(name, all[name]); ok && c.reads < a.reads {
				a = c
			}
		}
		if a.reads > b.reads*3/2+slack && grows[name] == "" {
			t.Errorf("%s read %d pages and rows, and %d of a history that is %d times as long: "+
				"no index serves a condition of it under the tenant's role", name, b.reads, a.reads, growth)
		}
		if b.rows == 0 && ofHistory.MatchString(all[name].text) {
			idle++
		}
	}
	for name := range grows {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no statement %s: take it off the list", name)
		}
	}
	// A statement that finds nothing may end before it looks: nearly all must find what they are made for.
	if len(before) < 350 || idle > 20 {
		t.Errorf("%d statements were measured, %d about the history found nothing", len(before), idle)
	}
	for _, name := range []string{
		"JobOutcome", "DeliveredEvents", "DeliveriesOfEvents", "DeliveriesOfEvent", "EventsData", "ReadDeliveries", "OutcomesOfEvents", "LastDurations",
	} {
		if before[name].rows == 0 {
			t.Errorf("%s found nothing", name)
		}
	}
}

var ofHistory = regexp.MustCompile(`\b(deliveries|events|attempts) `)

// history is a tenant's events, deliveries and attempts, and the ids of one of each that statements are asked for.
type history struct {
	t      testing.TB
	conn   *pgx.Conn
	tenant string

	today                   string // all that is measured is of the days before
	endpoint, job           string
	event, delivery, moment string
}

func newHistory(t testing.TB, s Server) *history {
	t.Helper()
	h := &history{
		t:        t,
		conn:     s.Conn,
		tenant:   s.Tenant,
		endpoint: "00000000-0000-7000-8000-0000000000e1",
		job:      "00000000-0000-7000-8000-0000000000b1",
	}
	h.exec("SET TimeZone = 'UTC'; SET search_path = posthorn; SET posthorn.tenant = '" + h.tenant + "'")
	if err := h.conn.QueryRow(context.Background(), "SELECT current_date::text").Scan(&h.today); err != nil {
		t.Fatal(err)
	}
	h.exec(fmt.Sprintf("SELECT make_partitions('%[1]s'::date - %[2]d, '%[1]s'::date + 1)", h.today, days+1))
	h.exec("SET ROLE posthorn_tenant")
	h.exec(`INSERT INTO endpoints (tenant_id, id, url, event_types, status, created_at)
		VALUES ($1, $2, 'https://example.com/', '{*}', 'active', now())`, h.tenant, h.endpoint)
	h.exec(`INSERT INTO bulk_jobs (tenant_id, id, kind, asked_kind, created_at)
		VALUES ($1, $2, 'replay', 'person', now())`, h.tenant, h.job)
	h.exec("RESET ROLE")
	return h
}

func (h *history) exec(statement string, args ...any) {
	h.t.Helper()
	if _, err := h.conn.Exec(context.Background(), statement, args...); err != nil {
		h.t.Fatalf("%s: %v", statement, err)
	}
}

// grow stores events from one number to another on each day, all over the day: each has a delivery of its own moment
// with an attempt, and every second one was replayed a minute later.
func (h *history) grow(from, to int) {
	h.t.Helper()
	each := fmt.Sprintf(`(SELECT k, day, (left(first_id(at)::text, 35) || '1')::uuid AS event,
			(left(first_id(at)::text, 35) || '2')::uuid AS delivery,
			(left(first_id(at + interval '1 minute')::text, 35) || '3')::uuid AS replay
		FROM generate_series(%d, %d) AS k, generate_series(1, %d) AS day, LATERAL (
			SELECT '%s'::timestamptz - day * interval '1 day' + k * 7919 %% 8000 * interval '10 seconds' AS at
		) m) s`, from, to, days, h.today)
	insert := func(role, into, columns, values, where string) {
		h.t.Helper()
		h.exec("SET ROLE " + role)
		h.exec(fmt.Sprintf("INSERT INTO %s (tenant_id, %s) SELECT '%s'::uuid, %s FROM %s WHERE %s",
			into, columns, h.tenant, values, each, where))
		h.exec("RESET ROLE")
	}
	endpoint := "'" + h.endpoint + "'::uuid"
	job := "NULL::uuid"
	if h.event == "" { // the job that is asked for made its deliveries on the last day, and no more later
		job = "CASE WHEN day = 1 THEN '" + h.job + "'::uuid END"
	}
	const status = "CASE k % 6 WHEN 0 THEN 0 WHEN 1 THEN 3 WHEN 2 THEN 4 ELSE 2 END"
	insert("posthorn_console", "events", "created_at, id, type, data, routing_version",
		"created_at(event), event, 'order.paid', '{}', 1", "true")
	const ofDelivery = "created_at, id, event_id, endpoint_id, event_type, status"
	insert("posthorn_console", "deliveries", ofDelivery,
		"created_at(delivery), delivery, event, "+endpoint+", 'order.paid', "+status, "true")
	insert("posthorn_console", "deliveries", ofDelivery+", replay_of, job_id",
		"created_at(replay), replay, event, "+endpoint+", 'order.paid', 2, delivery, "+job, "k % 2 = 1")
	insert("posthorn_worker", "replays", "replay_of, delivery_id, job_id", "delivery, replay, "+job, "k % 2 = 1")
	insert("posthorn_worker", "attempts", `created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us,
		read_us, total_us, url, format, signature`,
		"created_at(delivery), delivery, delivery, "+endpoint+", 1, 200, 0, 1, 1, 1, 1, 1, 5, '', '', ''", "k % 6 > 0")
	insert("posthorn_console", "dead_letters", "delivery_id, endpoint_id, event_type, reason",
		"delivery, "+endpoint+", 'order.paid', 1", "k % 6 = 1")
	insert("posthorn_console", "cancellations", "delivery_id, endpoint_id, event_type, attempted",
		"delivery, "+endpoint+", 'order.paid', true", "k % 6 = 2")
	insert("posthorn_console", "queue", "delivery_id, event_id, endpoint_id", "delivery, event, "+endpoint, "k % 6 = 0")
	h.exec("ANALYZE")
	if h.event != "" {
		return
	}
	row := h.conn.QueryRow(context.Background(),
		"SELECT event::text, delivery::text, created_at(event)::text FROM "+each+" WHERE k = 31 AND day = 3")
	if err := row.Scan(&h.event, &h.delivery, &h.moment); err != nil {
		h.t.Fatal(err)
	}
}

// cost is what one run of a statement read, and how many rows it returned or changed.
type cost struct{ reads, rows int }

// measure runs each statement that the tenant's role is allowed to run, and rolls it back.
func (h *history) measure(all map[string]statement) map[string]cost {
	h.t.Helper()
	costs := map[string]cost{}
	for name, s := range all {
		if c, ok := h.run(name, s); ok {
			costs[name] = c
		}
	}
	return costs
}

// run is measure for one statement; false: the role may not run it, or it can't be run with these values.
func (h *history) run(name string, s statement) (c cost, ok bool) {
	h.t.Helper()
	ctx := context.Background()
	h.exec("BEGIN")
	defer h.exec("ROLLBACK")
	h.exec("SET LOCAL ROLE posthorn_tenant")
	h.exec("SET LOCAL statement_timeout = '20s'")
	if _, err := h.conn.Exec(ctx, "PREPARE measured AS "+s.text, pgx.QueryExecModeSimpleProtocol); err != nil {
		return c, h.skipped(name, err)
	}
	defer func() {
		h.exec("ROLLBACK")
		h.exec("DEALLOCATE measured")
		h.exec("BEGIN")
	}()
	var types []string
	row := h.conn.QueryRow(
		ctx,
		"SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'measured'",
		pgx.QueryExecModeSimpleProtocol,
	)
	if err := row.Scan(&types); err != nil {
		h.t.Fatal(err)
	}
	call := "EXECUTE measured"
	if len(types) > 0 {
		values := make([]string, len(types))
		for i, kind := range types {
			values[i] = h.value(s, i, kind)
		}
		call += "(" + strings.Join(values, ", ") + ")"
	}
	// As the lists do (PlanByIndex): what is compared is whether an index can serve the statement.
	h.exec(`SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),
		set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`)
	var text string
	row = h.conn.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "+call, pgx.QueryExecModeSimpleProtocol)
	if err := row.Scan(&text); err != nil {
		return c, h.skipped(name, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		h.t.Fatalf("%s: %v: %s", name, err, text)
	}
	top := plans[0].Plan
	c.reads = top.Hit + top.Read + top.visited()
	c.rows = top.found()
	return c, true
}

// skipped fails the test for an error that isn't about permissions or values.
func (h *history) skipped(name string, err error) bool {
	h.t.Helper()
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code == "57014" || strings.HasPrefix(e.Code, "XX") || e.Code == "42601" {
		h.t.Errorf("%s: %v", name, err)
	}
	return false
}

// node is what a part of a plan did.
type node struct {
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Joined   float64 `json:"Rows Removed by Join Filter"`
	Plans    []node
}

// visited is how many rows all parts looked at.
func (n node) visited() int {
	sum := int(n.Loops * (n.Rows + n.Filtered + n.Joined))
	for _, p := range n.Plans {
		sum += p.visited()
	}
	return sum
}

// found is the most rows that any part passed on.
func (n node) found() int {
	most := int(n.Rows * n.Loops)
	for _, p := range n.Plans {
		if len(p.Plans) > 0 || p.Hit > 0 {
			most = max(most, p.found())
		}
	}
	return most
}
