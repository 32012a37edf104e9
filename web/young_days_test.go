package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/handlers/mailbox"
	"posthorn/tools/schematest"
)

// pageBound is the time for a page or a list on a day with tables that nobody has analyzed.
const pageBound = 250 * time.Millisecond

// youngDay is a server without a worker on a database with some thousand deliveries of today, not analyzed.
type youngDay struct {
	t       *testing.T
	url     string
	program *Program
	key     string
	tenant  id.UUID
	last    map[string]string // path parameters
	cookies []*http.Cookie
	owner   id.UUID // the person who is signed in
}

// No page and no list depends on when autovacuum last saw today's tables: with 5,000 deliveries in a new database
// every one is fast.
func TestPagesAndListsAreFastOnADayWithoutStatistics(t *testing.T) {
	t.Parallel()
	y := newYoungDay(t)
	for range 10 { // a plan that is kept was made when the day was empty
		if _, err := ledger.Status(t.Context(), y.program.pools[0], time.Now().Add(-12*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	y.load(5000)
	y.signIn()
	var n int
	for _, path := range y.paths() {
		status, took := y.best(path)
		switch {
		case status >= http.StatusInternalServerError:
			t.Errorf("%s: %d", path, status)
		case took > raceFactor*pageBound:
			t.Errorf("%s: %v", path, took)
		case status == http.StatusOK:
			n++
		default:
			t.Logf("%s: %d", path, status)
		}
	}
	if n < 90 {
		t.Errorf("only %d pages and lists were measured", n)
	}
	var analyzed int
	y.query("SELECT count(*) FROM pg_class WHERE relname ~ '^(events|deliveries|attempts)_y' AND relkind = 'r' AND reltuples >= 0", &analyzed)
	if analyzed > 0 {
		t.Errorf("%d days have statistics: the test shows nothing", analyzed)
	}
}

// A worker gives a day statistics while the day is young, and again when it has grown.
func TestYoungDaysAreAnalyzed(t *testing.T) {
	t.Parallel()
	y := newYoungDay(t)
	d := y.program.pools[0]
	analyzed := func(least int64) (names []string) {
		t.Helper()
		// The server's statistics have rows some moments after they were written.
		for deadline := time.Now().Add(20 * time.Second); len(names) < 3 &&
			time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			more, err := queue.AnalyzeYoungPartitions(t.Context(), d, least)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, more...)
		}
		return names
	}
	if names, err := queue.AnalyzeYoungPartitions(t.Context(), d, 500); err != nil || len(names) > 0 {
		t.Fatalf("an empty day: %q, %v", names, err)
	}
	y.load(1000)
	if names := analyzed(500); len(names) != 3 {
		t.Errorf("analyzed %q, want today's three tables", names)
	}
	var rows float64
	y.query("SELECT min(reltuples)::float8 FROM pg_class WHERE relname ~ '^(events|deliveries|attempts)_y' AND relkind = 'r' AND reltuples >= 0", &rows)
	if rows < 900 {
		t.Errorf("the statistics tell of %v rows, want 900 or more", rows)
	}
	if names, err := queue.AnalyzeYoungPartitions(t.Context(), d, 500); err != nil || len(names) > 0 {
		t.Errorf("again, although nothing has changed: %q, %v", names, err)
	}
	y.load(1500)
	if names := analyzed(500); len(names) != 3 {
		t.Errorf("after the day has grown to twice its rows: %q", names)
	}
}

func newYoungDay(t *testing.T) *youngDay {
	t.Helper()
	return newYoungDayOf(t, Parts{Web: true})
}

func newYoungDayOf(t *testing.T, parts Parts, more ...string) *youngDay {
	t.Helper()
	url := schematest.Clone(t)
	environ := append(databaseEnvironment(url), more...)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	tenant, err := id.Tenant.Parse(m.TenantID)
	if err != nil {
		t.Fatal(err)
	}
	return &youngDay{
		t:       t,
		url:     url,
		program: program(t, environ, parts),
		key:     m.APIKey,
		tenant:  tenant,
		last:    map[string]string{"tenant_id": m.TenantID},
	}
}

func (y *youngDay) connect(use func(context.Context, *pgx.Conn) error) {
	y.t.Helper()
	c, err := pgx.Connect(y.t.Context(), y.url)
	if err != nil {
		y.t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(y.t.Context(), "SET search_path = posthorn; SET ROLE posthorn_console"); err != nil {
		y.t.Fatal(err)
	}
	if err := use(y.t.Context(), c); err != nil {
		y.t.Fatal(err)
	}
}

func (y *youngDay) query(sql string, into any) {
	y.t.Helper()
	y.connect(func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, sql).Scan(into) })
}

// youngRows writes deliveries with their events and first attempts: of ten, seven are delivered, one failed, one
// waits for a retry and one is ready.
const youngRows = `WITH given AS (
	SELECT u.n, u.id, u.at, $4::uuid[] AS endpoints, 1 + (u.n % cardinality($4::uuid[]))::int AS of FROM unnest($2::uuid[], $3::timestamptz[]) WITH ORDINALITY AS u(id, at, n)
), made AS (
	SELECT id, at, endpoints[of] AS endpoint, (ARRAY[2, 2, 2, 2, 2, 2, 2, 3, 1, 0])[1 + n % 10]::smallint AS status, 'order.t' || n % 7 AS type FROM given
), e AS (
	INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) SELECT $1, at, id, type, '{"n":1}', 1 FROM made
), d AS (
	INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, settled_at)
	SELECT $1, at, id, id, endpoint, type, status, CASE WHEN status = 3 THEN 1 ELSE 0 END, CASE WHEN status = 0 THEN 0 ELSE 1 END,
		CASE status WHEN 2 THEN 200 WHEN 0 THEN 0 ELSE 500 END, CASE WHEN status > 1 THEN at END FROM made
), a AS (
	INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us, total_us, url, format, signature)
	SELECT $1, at + interval '5 milliseconds', id, id, endpoint, 1, CASE status WHEN 2 THEN 200 ELSE 500 END, 0, 0, 0, 0, 1, 1, 1000, 'https://example.com/', 'standard', 'v1,x' FROM made WHERE status > 0
), l AS (
	INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) SELECT $1, id, endpoint, type, 1 FROM made WHERE status = 3
)
INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, due_at, attempts)
SELECT $1, id, id, endpoint, status, CASE WHEN status = 1 THEN now() + interval '1 hour' END, status FROM made WHERE status < 2`

// load writes n deliveries of this hour, to twenty endpoints.
func (y *youngDay) load(n int) {
	y.t.Helper()
	y.connect(func(ctx context.Context, c *pgx.Conn) error {
		endpoints := make([]string, 20)
		for i := range endpoints {
			endpointID := db.NewID()
			endpoints[i], y.last["endpoint_id"] = endpointID.String(), id.Endpoint.Format(endpointID)
			if _, err := c.Exec(ctx, `WITH e AS (
				INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at)
				VALUES ($1, $2, 'https://example.com/', '{*}', 'active', now() - interval '1 hour', now()))
				INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($2, $1, false)`, y.tenant.String(), endpointID.String()); err != nil {
				return err
			}
		}
		ids, at, now := make([]string, n), make([]time.Time, n), time.Now()
		for i := range ids {
			// Those of a batch have one moment.
			deliveryID := id.New(now.Add(time.Duration(i/1000-n/1000)*time.Second), [10]byte{
				0x70, byte(i >> 8), 0x80,
				byte(i), byte(rand.Uint32()),
			})
			ids[i], at[i] = deliveryID.String(), deliveryID.Time()
			y.last["event_id"], y.last["delivery_id"] = id.Event.Format(deliveryID), id.Delivery.Format(deliveryID)
		}
		_, err := c.Exec(ctx, youngRows, y.tenant.String(), ids, at, endpoints)
		return err
	})
}

// signIn begins a session of an owner and one of an operator.
func (y *youngDay) signIn() {
	y.t.Helper()
	d, ctx := y.program.pools[0], y.t.Context()
	names := handlers.NewSessions(d, y.program.URL())
	start := func(kind account.Kind, s accounts.NewSession) {
		y.t.Helper()
		var token string
		if err := d.Account(ctx, func(q *db.Tx) (err error) {
			token, err = accounts.StartSession(ctx, q, s)
			return err
		}); err != nil {
			y.t.Fatal(err)
		}
		y.cookies = append(y.cookies, &http.Cookie{Name: names.Cookie(kind), Value: token})
	}
	var person, operator id.UUID
	if err := d.Console(ctx, func(q *db.Tx) (err error) {
		if person, err = accounts.AddPerson(ctx, q, "owner@example.com", "Owner", "none"); err != nil {
			return err
		}
		if _, err = accounts.AddMember(ctx, q, y.tenant, person, access.Owner); err != nil {
			return err
		}
		operator = db.NewID()
		_, err = q.InsertOperator(ctx, sql.InsertOperatorParams{ID: operator, Email: "operator@example.com", CreatedAt: operator.Time()})
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	y.owner = person
	start(account.Person, accounts.NewSession{Person: &person, Life: time.Hour})
	start(account.Operator, accounts.NewSession{Operator: &operator, Life: time.Hour})
}

// paths are all pages and lists that can be read, with their parameters filled in, and the filters of the long lists.
func (y *youngDay) paths() (paths []string) {
	root, api := "/t/"+y.last["tenant_id"], "/api/v1"
	for _, prefix := range []string{root, api} {
		for _, status := range []string{"pending", "retrying", "held", "delivered", "failed", "canceled", "all_failed"} {
			paths = append(paths, prefix+"/deliveries?status="+status)
		}
		for _, filter := range []string{"type=order.t3", "endpoint=" + y.last["endpoint_id"], "status=failed&endpoint=" + y.last["endpoint_id"]} {
			paths = append(paths, prefix+"/deliveries?"+filter)
		}
		paths = append(paths, prefix+"/events?type=order.t3")
	}
	deps := routed{
		ready:   &readiness{},
		auth:    auth.Deps{Now: time.Now, Local: true},
		mailbox: mailbox.Deps{Development: true},
	}
	for _, r := range table(deps) {
		path := r.Path
		for name, value := range y.last {
			path = strings.ReplaceAll(path, ":"+name, value)
		}
		platform := strings.HasPrefix(r.Path, "/api/v1/tenants")
		public := r.Access.Public && r.Path != "/status"
		if r.Method == http.MethodGet && !strings.ContainsAny(path, ":*") && r.Timeout >= 0 && !platform && !public {
			paths = append(paths, path)
		}
	}
	return paths
}

// request asks for a response of the API with the key, and for a page with the sessions.
func (y *youngDay) request(path string) *http.Request {
	y.t.Helper()
	r, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, y.program.URL()+path, nil)
	if err != nil {
		y.t.Fatal(err)
	}
	if strings.HasPrefix(path, "/api/") {
		r.Header.Set("Authorization", "Bearer "+y.key)
		return r
	}
	r.Header.Set("Accept", "text/html")
	for _, c := range y.cookies {
		r.AddCookie(c)
	}
	return r
}

// best is the fastest of some requests after one that warms what a busy server has warm. It ends with one in time.
func (y *youngDay) best(path string) (status int, took time.Duration) {
	y.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for i := range 20 {
		r := y.request(path)
		began := time.Now()
		res, err := client.Do(r)
		if err != nil {
			y.t.Fatal(err)
		}
		_ = res.Body.Close()
		status = res.StatusCode
		if t := time.Since(began); i == 1 || i > 1 && t < took {
			took = t
		}
		if i > 0 && took <= raceFactor*pageBound || status >= http.StatusInternalServerError {
			break
		}
	}
	return status, took
}
