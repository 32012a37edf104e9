package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// part is what is copied of a table in the last step; %[1]s is the tenant.
type part struct{ table, rows string }

// beside are tables without a tenant in each row of which some rows move, too: the accounts of members. They come
// before all others, which refer to them. tenant_moves is read alone.
var beside = []part{
	{"tenants", "id = %[1]s"},
	{"people", "id IN (SELECT person_id FROM memberships WHERE tenant_id = %[1]s UNION SELECT person_id FROM sso_identities WHERE tenant_id = %[1]s)"},
	{"recovery_codes", "owner_id IN (SELECT person_id FROM memberships WHERE tenant_id = %[1]s UNION SELECT person_id FROM sso_identities WHERE tenant_id = %[1]s)"},
	{"tenant_moves", "tenant_id = %[1]s"},
}

// adjust changes the rows that have come before they are inserted. Accounts move with password and second factor,
// unless the other home has one of the same address: that is then the member's. Lanes that were open before the move
// are open. The numbers of the queue stay, and those that are drawn later are higher.
const adjust = `
UPDATE arriving_tenants SET moving = false;
DELETE FROM arriving_recovery_codes c USING people x, arriving_people p WHERE c.owner_id = p.id AND (x.email = p.email OR x.id = p.id);
CREATE TEMP TABLE arriving_accounts ON COMMIT DROP AS SELECT p.id AS old, coalesce(x.id, p.id) AS new FROM arriving_people p LEFT JOIN people x ON x.email = p.email;
DELETE FROM arriving_people p USING people x WHERE x.email = p.email OR x.id = p.id;
UPDATE arriving_memberships m SET person_id = a.new FROM arriving_accounts a WHERE a.old = m.person_id;
UPDATE arriving_sso_identities i SET person_id = a.new FROM arriving_accounts a WHERE a.old = i.person_id;
UPDATE arriving_notice_preferences n SET recipient = a.new::text FROM arriving_accounts a WHERE a.old::text = n.recipient;
UPDATE arriving_lanes l SET owner = NULL, leased_at = NULL, held = l.held AND NOT EXISTS (SELECT FROM arriving_tenant_moves m, arriving_endpoints e
	WHERE l.endpoint_id = ANY (m.open_lanes) AND e.id = l.endpoint_id AND e.status = 'active');
SELECT pg_advisory_xact_lock(hashtextextended('queue_seq', 19));
SELECT setval('queue_seq', n) FROM (SELECT greatest((SELECT max(seq) FROM arriving_queue), (SELECT max(drop_below) FROM arriving_lanes),
	(SELECT max(horizon) FROM arriving_bulk_jobs)) AS n) x WHERE n > (SELECT last_value FROM queue_seq);
`

// arrive copies the tenant itself and its tables of the last step, in one transaction of the other home. When it
// commits, the tenant is there.
func (v *mover) arrive(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, v.from, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(pgx.Tx) error {
		return pgx.BeginFunc(ctx, v.to, func(to pgx.Tx) error {
			q := sql.New(to)
			parts := slices.Clone(beside)
			for _, t := range movedTables {
				if t.as == atOnce || t.as == whenDrained {
					parts = append(parts, part{t.name, "tenant_id = %[1]s"})
				}
			}
			for _, p := range parts {
				if err := v.receive(ctx, to, p.table, fmt.Sprintf(p.rows, v.literal())); err != nil {
					return err
				}
			}
			if _, err := to.Exec(ctx, adjust+"DELETE FROM books WHERE tenant_id = "+v.literal()+"; DELETE FROM tenants WHERE id = "+v.literal()); err != nil {
				return err
			}
			if err := v.reseal(ctx, to); err != nil {
				return err
			}
			for _, p := range parts {
				if p.table == "tenant_moves" {
					continue
				}
				tag, err := to.Exec(ctx, fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM arriving_%[1]s", p.table, v.columns[p.table]))
				if err != nil {
					return fmt.Errorf("%s: %w", p.table, err)
				}
				v.rows += tag.RowsAffected()
			}
			return v.opens(ctx, q)
		})
	})
}

// opens ends the move in the other home, which works for the tenant from then on.
func (v *mover) opens(ctx context.Context, q *sql.Queries) error {
	if err := all(ctx, v.Tenant, q.DeleteMoveMark, q.DeleteMovedTenants); err != nil {
		return err
	}
	if err := errors.Join(q.FinishMove(ctx, false, v.Tenant), q.BumpKeysRevision(ctx), q.NotifyWake(ctx, "all"), q.NotifyPauses(ctx)); err != nil {
		return err
	}
	return db.Audit(ctx, q, db.Author{Kind: "command"}, db.Audited{
		Tenant:  &v.Tenant,
		Action:  "tenant.moved",
		Kind:    "tenant",
		Object:  id.Tenant.Format(v.Tenant),
		Details: map[string]string{"from": v.fromHome, "to": v.Home},
	})
}

func (v *mover) literal() string { return "'" + v.Tenant.String() + "'::uuid" }

// receive copies rows of a table into a temporary table of the other home.
func (v *mover) receive(ctx context.Context, to pgx.Tx, table, rows string) error {
	temporary, columns := "arriving_"+table, v.columns[table]
	if _, err := to.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE %s ON COMMIT DROP AS SELECT %s FROM %s WITH NO DATA", temporary, columns, table)); err != nil {
		return err
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := v.from.PgConn().CopyTo(ctx, w, fmt.Sprintf("COPY (SELECT %s FROM %s WHERE %s) TO STDOUT (FORMAT binary)", columns, table, rows))
		_ = w.CloseWithError(err)
		sent <- err
	}()
	_, err := to.Conn().PgConn().CopyFrom(ctx, r, fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", temporary, columns))
	_ = r.CloseWithError(err)
	if sending := <-sent; sending != nil {
		err = sending
	}
	return err
}

// reseal seals the secrets that have come under the master key of the new home.
func (v *mover) reseal(ctx context.Context, to pgx.Tx) error {
	type secret struct {
		row, object id.UUID
		sealed      []byte
	}
	for _, c := range resealed {
		rows, err := to.Query(ctx, fmt.Sprintf("SELECT %s, %s, %[3]s FROM arriving_%s WHERE %[3]s IS NOT NULL", c.row, c.object, c.column, c.table))
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s secret, err error) {
			return s, row.Scan(&s.row, &s.object, &s.sealed)
		})
		if err != nil {
			return err
		}
		tenant := v.Tenant
		if c.owner {
			tenant = id.UUID{}
		}
		var ids []id.UUID
		var sealed [][]byte
		for _, s := range all {
			plain, err := v.FromKeys.Open(s.sealed, tenant, s.object)
			if err != nil {
				return fmt.Errorf("%s.%s of row %s: %w", c.table, c.column, s.row, err)
			}
			ids, sealed = append(ids, s.row), append(sealed, v.ToKeys.Seal(plain, tenant, s.object))
		}
		if _, err := to.Exec(ctx, fmt.Sprintf("UPDATE arriving_%s t SET %s = u.sealed FROM unnest($1::uuid[], $2::bytea[]) AS u(id, sealed) WHERE t.%s = u.id",
			c.table, c.column, c.row), ids, sealed); err != nil {
			return err
		}
	}
	return nil
}

// compareOlder compares all rows but those of the last minute, which can be on their way, while the tenant works.
func (v *mover) compareOlder(ctx context.Context) error {
	v.Say("comparing both homes")
	var until time.Time
	if err := v.from.QueryRow(ctx, "SELECT clock_timestamp() - interval '1 minute'").Scan(&until); err != nil {
		return err
	}
	err := v.compare(ctx, until)
	v.compared = until
	return err
}

// compareRecent compares those that have come since, before the tenant opens in the new home.
func (v *mover) compareRecent(ctx context.Context) error {
	return v.compare(ctx, v.closed.AddDate(1, 0, 0))
}

// compare compares the rows of the days that both homes have, by count and digest.
func (v *mover) compare(ctx context.Context, until time.Time) error {
	from := v.compared
	for _, conn := range v.homes() {
		if first, _, err := days(ctx, conn); err != nil {
			return err
		} else if first.After(from) {
			from = first
		}
	}
	for _, t := range movedTables {
		if !t.days {
			continue
		}
		var n int64
		var digests [2]string
		for i, conn := range v.homes() {
			if err := conn.QueryRow(ctx, "SELECT count(*), concat(count(*), ' ', sum(hashtextextended(id::text, 0))) FROM "+t.name+
				" WHERE tenant_id = $1 AND created_at >= $2 AND created_at < $3", v.Tenant, from, until).Scan(&n, &digests[i]); err != nil {
				return err
			}
		}
		if digests[0] != digests[1] {
			v.Say("different rows", "table", t.name, "here", digests[0], "there", digests[1])
			return errCounts
		}
		v.rows += n
	}
	return nil
}

// days are the first and the last day that a home has partitions of.
func days(ctx context.Context, conn *pgx.Conn) (first, last time.Time, err error) {
	err = conn.QueryRow(ctx, "SELECT coalesce(min(x), current_date), coalesce(max(x), current_date) FROM posthorn.partition_days() AS x").Scan(&first, &last)
	return first, last, err
}
