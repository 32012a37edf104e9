// Package historytest makes days of the past, which only time makes otherwise.
package historytest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/domain/id"
)

// Conn is a connection, a pool, or a transaction of a role that may write everything.
type Conn interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// Day makes a closed day, some days ago, with n events of a tenant, each with a delivery and its other rows: every
// fifth delivery failed, every seventh was canceled. The books agree with it.
func Day(ctx context.Context, c Conn, tenant, endpoint id.UUID, ago, n int) (time.Time, error) {
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -ago)
	// Partitions belong to the role of Posthorn, not to a superuser who fills them.
	text := fmt.Sprintf("BEGIN; SET LOCAL ROLE posthorn; SELECT posthorn.make_partitions('%s', '%s'); COMMIT", day.AddDate(0, 0, -1).Format(time.DateOnly), day.AddDate(0, 0, 2).Format(time.DateOnly))
	if _, err := c.Exec(ctx, text); err != nil {
		return day, err
	}
	if _, err := c.Exec(ctx, "UPDATE posthorn.platform SET days_from = least(days_from, $1::date), events_from = least(events_from, $1::date)", day); err != nil {
		return day, err
	}
	_, err := c.Exec(ctx, rows, [16]byte(tenant), [16]byte(endpoint), day, n)
	return day, err
}

const rows = `WITH made AS MATERIALIZED (
		SELECT i, (lpad(to_hex((extract(epoch FROM $3::timestamptz + i * interval '7 seconds') * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid AS e, (lpad(to_hex((extract(epoch FROM $3::timestamptz + i * interval '7 seconds' + interval '3 ms') * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid AS d,
			CASE WHEN i % 5 = 0 THEN 3 WHEN i % 7 = 0 THEN 4 ELSE 2 END AS status FROM generate_series(1, $4::int) i
	), e AS (
		INSERT INTO posthorn.events (tenant_id, created_at, id, type, data, key, channels, version, occurred_at, routing_version, external_id, traceparent)
		SELECT $1, posthorn.created_at(e), e, 'order.' || i % 3, CASE WHEN i % 11 > 0 THEN convert_to('{"n":' || i || ',"text":"ü\"\\u0000 ' || repeat('x', i % 50) || '"}', 'UTF8') END,
			CASE WHEN i % 2 = 0 THEN 'key ' || i END, CASE WHEN i % 3 = 0 THEN ARRAY['a', 'b:"c",\'] END, NULL, now(), 7, 'own-' || i, NULL FROM made
	), d AS (
		INSERT INTO posthorn.deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, settled_at, archived_at)
		SELECT $1, posthorn.created_at(d), d, e, $2, 'order.' || i % 3, status, CASE WHEN status = 3 THEN 1 ELSE 0 END, 1, 200, posthorn.created_at(d) + interval '30 hours', CASE WHEN i % 10 = 0 THEN now() END FROM made
	), a AS (
		INSERT INTO posthorn.attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us, total_us, url, format, signature, response_excerpt, error)
		SELECT $1, posthorn.created_at(d) + k * interval '29 hours' + interval '17 microseconds', gen_random_uuid(), d, $2, k + 1, 200, 0, 1, 2, 3, 4, 5, 15, 'http://x', 'standard', 'v1,abc',
			'\x00ff7b'::bytea, CASE WHEN k = 0 THEN E'line\nbreak' END FROM made, generate_series(0, 1) k
	), l AS (
		INSERT INTO posthorn.dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason, archived) SELECT $1, d, $2, 'order.' || i % 3, 1, i % 10 = 0 FROM made WHERE status = 3
	), c AS (
		INSERT INTO posthorn.cancellations (tenant_id, delivery_id, endpoint_id, event_type, attempted, archived) SELECT $1, d, $2, 'order.' || i % 3, true, i % 10 = 0 FROM made WHERE status = 4
	)
	INSERT INTO posthorn.books (tenant_id, day, accepted, delivered, failed, canceled, events)
	SELECT $1, ($3::timestamptz AT TIME ZONE 'UTC')::date, count(*), count(*) FILTER (WHERE status = 2), count(*) FILTER (WHERE status = 3), count(*) FILTER (WHERE status = 4), count(*) FROM made`
