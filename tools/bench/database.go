package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// database reads and fills Posthorn's database: as the owner for partitions and vacuum, as the console for rows,
// which row-level security hides from every owner.
type database struct {
	url, admin     string // admin can create extensions, where anybody can
	owner, console *pgx.Conn
}

func openDatabase(ctx context.Context, url, admin string) (*database, error) {
	d := &database{url: url, admin: admin}
	var err error
	if d.owner, err = pgx.Connect(ctx, url); err != nil {
		return nil, err
	}
	if d.console, err = d.connectConsole(ctx); err != nil {
		d.close()
		return nil, err
	}
	_, err = d.owner.Exec(ctx, "SET search_path = posthorn")
	return d, err
}

func (d *database) connectConsole(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return nil, err
	}
	if _, err = conn.Exec(ctx, "SET search_path = posthorn; SET ROLE posthorn_console"); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

func (d *database) close() {
	if d == nil {
		return
	}
	for _, conn := range []*pgx.Conn{d.owner, d.console} {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}
}

// postmaster is the process id of the server when it runs on this machine, else 0.
func (d *database) postmaster() int {
	backend := int(d.owner.PgConn().PID())
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/stat", backend)); err != nil {
		return 0
	}
	_, parent := cpuOf(backend, false)
	return parent
}

// inactive counts the endpoints that are not active yet.
func (d *database) inactive(ctx context.Context) (n int, err error) {
	err = d.console.QueryRow(ctx, "SELECT count(*) FROM endpoints WHERE status <> 'active' AND deleted_at IS NULL").Scan(&n)
	return n, err
}

// tenantUUIDs are the tenants with these names, in any order.
func (d *database) tenantUUIDs(ctx context.Context, names []string) (ids []string, err error) {
	rows, err := d.console.Query(ctx, "SELECT id::text FROM tenants WHERE name = ANY($1)", names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// waiting says whether any delivery of these tenants still has a row in the queue. All others are recorded.
func (d *database) waiting(ctx context.Context, tenants []string) (some bool, err error) {
	err = d.console.QueryRow(ctx, "SELECT EXISTS (SELECT FROM queue WHERE tenant_id = ANY($1::uuid[]))", tenants).Scan(&some)
	return some, err
}

// allowEndpoints raises the endpoint quota of every tenant.
func (d *database) allowEndpoints(ctx context.Context, n int) error {
	_, err := d.console.Exec(ctx, "UPDATE platform SET settings = jsonb_build_object('endpoints', jsonb_build_object('max', $1::int))", n)
	return err
}

// queued counts the queue rows of these tenants.
func (d *database) queued(ctx context.Context, tenants []string) (n int, err error) {
	err = d.console.QueryRow(ctx, "SELECT count(*) FROM queue WHERE tenant_id = ANY($1::uuid[])", tenants).Scan(&n)
	return n, err
}

// recorded counts the deliveries that are marked as delivered, of these tenants since a moment.
func (d *database) recorded(ctx context.Context, tenants []string, since time.Time) (n int64, err error) {
	const delivered = 2
	err = d.console.QueryRow(ctx, "SELECT count(*) FROM deliveries WHERE tenant_id = ANY($1::uuid[]) AND created_at >= $2 AND status = $3",
		tenants, since.Truncate(time.Millisecond), delivered).Scan(&n)
	return n, err
}

// wal is how many bytes of write-ahead log the server has written so far.
func (d *database) wal(ctx context.Context) (bytes float64, err error) {
	err = d.owner.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8").Scan(&bytes)
	return bytes, err
}

// history says how much is in the tables now.
func (d *database) history(ctx context.Context) (partitions int, deliveries int64, err error) {
	err = d.owner.QueryRow(ctx, `SELECT count(*), coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'posthorn.deliveries'::regclass`).Scan(&partitions, &deliveries)
	return partitions, deliveries, err
}

// The ids of one day's deliveries and their events, spread over the tenants' endpoints and the day. Ids are UUIDv7 of
// the row's own time, as Posthorn's are.
const dayOfIDs = `
WITH place AS (
	SELECT row_number() OVER () - 1 AS slot, tenant_id, id AS endpoint_id FROM endpoints WHERE tenant_id = ANY($4::uuid[])
), numbered AS (
	SELECT i, p.tenant_id, p.endpoint_id,
		floor(extract(epoch FROM $1::timestamptz) * 1000)::bigint + i * (86400000 / $2::bigint) AS ms,
		md5($3::text || p.endpoint_id || i) AS chance
	FROM generate_series(0, $2::bigint - 1) i
	JOIN place p ON p.slot = i % (SELECT count(*) FROM place)
), made AS MATERIALIZED (
	SELECT tenant_id, endpoint_id, to_timestamp(ms / 1000.0) AS at, lpad(to_hex(ms), 12, '0') || '7' AS head, chance FROM numbered
), ids AS MATERIALIZED (
	SELECT tenant_id, endpoint_id, at,
		(head || substr(chance, 1, 3) || '8' || substr(chance, 4, 15))::uuid AS event_id,
		(head || substr(chance, 1, 3) || '9' || substr(chance, 4, 15))::uuid AS delivery_id,
		(head || substr(chance, 1, 3) || 'a' || substr(chance, 4, 15))::uuid AS attempt_id
	FROM made
), put_events AS (
	INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
	SELECT tenant_id, at, event_id, 'bench.order', convert_to('{"order_id":"' || event_id || '"}', 'UTF8'), 1 FROM ids
)`

// One day of settled deliveries with their events, attempts, roll-ups and books.
const historyDay = dayOfIDs + `, put_stats AS (
	INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
	SELECT tenant_id, endpoint_id, 3600, date_trunc('hour', at), 'bench.order', 0, count(*), 1000 * count(*) FROM ids GROUP BY 1, 2, 4
), put_books AS (
	INSERT INTO books (tenant_id, day, accepted, delivered)
	SELECT tenant_id, $1::date, count(*), count(*) FROM ids GROUP BY 1
), put_attempts AS (
	INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure,
		dns_us, connect_us, tls_us, wait_us, read_us, total_us, url, format, signature)
	SELECT tenant_id, at, attempt_id, delivery_id, endpoint_id, 1, 200, 0, 0, 0, 0, 900, 100, 1000,
		'https://example.com/hooks', 'standard', 'v1,' || encode(sha256(convert_to(delivery_id::text, 'UTF8')), 'base64') FROM ids
)
INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, attempts, last_status, settled_at)
SELECT tenant_id, at, delivery_id, event_id, endpoint_id, 'bench.order', 2, 1, 200, at + interval '1 second' FROM ids`

// One day of deliveries that wait, with their events.
const outageDay = dayOfIDs + `, put_deliveries AS (
	INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type)
	SELECT tenant_id, at, delivery_id, event_id, endpoint_id, 'bench.order' FROM ids
)
INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id)
SELECT tenant_id, delivery_id, event_id, endpoint_id FROM ids ORDER BY at`

// writeHistory fills days before today with finished deliveries. The caller vacuums the tables.
func (d *database) writeHistory(ctx context.Context, tenants []string, days int, deliveries int64, progress func(string)) error {
	// Otherwise retention would drop what the measurement is about.
	if _, err := d.console.Exec(ctx, "UPDATE tenants SET retention_days = 3650"); err != nil {
		return err
	}
	return d.writeDays(ctx, daysOf{historyDay, tenants, days, deliveries, 2}, progress)
}

// writeOutage stores waiting deliveries of so many days for the tenants' endpoints, which receive nothing until
// resume is called.
func (d *database) writeOutage(ctx context.Context, tenants []string, days int, deliveries int64) (resume func() error, err error) {
	const hold = "UPDATE lanes SET held = $2, rev = rev + 1 WHERE tenant_id = ANY($1::uuid[])"
	if _, err := d.console.Exec(ctx, hold, tenants, true); err != nil {
		return nil, err
	}
	resume = func() error {
		_, err := d.console.Exec(ctx, hold, tenants, false)
		return err
	}
	if err := d.writeDays(ctx, daysOf{outageDay, tenants, days, deliveries, 1}, func(string) {}); err != nil {
		return nil, err
	}
	return resume, d.settle(ctx)
}

// daysOf is what to write into the days before today: each day by one statement, so many at a time.
type daysOf struct {
	statement  string
	tenants    []string
	days       int
	deliveries int64 // in all
	atOnce     int
}

// writeDays makes the partitions of the days and fills them.
func (d *database) writeDays(ctx context.Context, what daysOf, progress func(string)) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, -what.days)
	if _, err := d.owner.Exec(ctx, "SELECT posthorn.make_partitions($1::date, $2::date)", first, today); err != nil {
		return err
	}
	var written atomic.Int64
	return eachOf(what.days, what.atOnce, func(day int) error {
		conn, err := d.connectConsole(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		from := first.AddDate(0, 0, day)
		_, err = conn.Exec(ctx, what.statement, from, what.deliveries/int64(what.days), from.Format(time.DateOnly), what.tenants)
		if err != nil {
			return fmt.Errorf("the deliveries of %s: %w", from.Format(time.DateOnly), err)
		}
		if n := written.Add(1); n%10 == 0 {
			progress(fmt.Sprintf("%d of %d days written", n, what.days))
		}
		return nil
	})
}

// settle vacuums and analyzes the tables as a running system does, so that the next measurement shows the load alone.
func (d *database) settle(ctx context.Context) error {
	for _, table := range []string{"events", "deliveries", "attempts", "queue", "lanes", "endpoint_stats", "books"} {
		if _, err := d.owner.Exec(ctx, "VACUUM (ANALYZE) posthorn."+table); err != nil {
			return err
		}
	}
	// Not every role can; without it the next checkpoint is within a measurement, which is no fault.
	_, _ = d.asAdmin(ctx, "CHECKPOINT")
	return nil
}

// asAdmin runs statements on a connection of their own, and returns the first column of the last one's rows.
func (d *database) asAdmin(ctx context.Context, statements ...string) (lines []string, err error) {
	conn, err := pgx.Connect(ctx, d.admin)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			return nil, err
		}
		if lines, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return lines, nil
}

// holdSnapshot opens a transaction that keeps every row version from now on, as a backup does; release ends it.
func (d *database) holdSnapshot(ctx context.Context) (release func(), err error) {
	conn, err := d.connectConsole(ctx)
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(context.Background()) }
	for _, statement := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SELECT count(*) FROM tenants"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// resetStatements resets the statistics of statements.
func (d *database) resetStatements(ctx context.Context) error {
	_, err := d.asAdmin(
		ctx,
		"CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public",
		"SELECT public.pg_stat_statements_reset()::text",
	)
	return err
}

// statements are the slowest by total time since the last reset, one a line.
func (d *database) statements(ctx context.Context) ([]string, error) {
	return d.asAdmin(ctx, `SELECT format('%8s ms total, %8s calls, %9s ms mean, %8s rows: %s', round(total_exec_time), calls,
			round(mean_exec_time::numeric, 3), rows, left(regexp_replace(query, '\s+', ' ', 'g'), 200))
		FROM public.pg_stat_statements ORDER BY total_exec_time DESC LIMIT 20`)
}

// withDatabase is a PostgreSQL URL with another database in it.
func withDatabase(dsn, database string) string {
	named, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	named.Path = "/" + database
	return named.String()
}
