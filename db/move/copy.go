package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// receive copies the rows of a query on the source into a temporary table of the other home's transaction. The rows
// have the columns of a table.
func (v *mover) receive(ctx context.Context, to pgx.Tx, table, query string) (temporary string, n int64, err error) {
	temporary = "moved_" + table
	if _, err := to.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE IF NOT EXISTS %[1]s ON COMMIT DROP AS SELECT %[2]s FROM %[3]s WITH NO DATA; TRUNCATE %[1]s",
		temporary, v.columns[table], table)); err != nil {
		return "", 0, err
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := v.from.PgConn().CopyTo(ctx, w, "COPY ("+query+") TO STDOUT (FORMAT binary)")
		_ = w.CloseWithError(err)
		sent <- err
	}()
	tag, err := to.Conn().PgConn().CopyFrom(ctx, r, fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", temporary, v.columns[table]))
	_ = r.CloseWithError(err)
	if sending := <-sent; sending != nil {
		err = sending
	}
	return temporary, tag.RowsAffected(), err
}

// copyRows copies rows into a table of the other home; existing rows do not change.
func (v *mover) copyRows(ctx context.Context, to pgx.Tx, table, query string) (n int64, err error) {
	temporary, n, err := v.receive(ctx, to, table, query)
	if err != nil || n == 0 {
		return n, err
	}
	_, err = to.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s ON CONFLICT DO NOTHING", table, v.columns[table], v.columns[table], temporary))
	v.rows += n
	return n, err
}

func (v *mover) literal() string { return "'" + v.Tenant.String() + "'::uuid" }

// copyAll copies the tables whose changes are recorded, part by part. A part is one transaction of the other home.
func (v *mover) copyAll(ctx context.Context) error {
	if done, err := v.skip(ctx); err != nil || done {
		return err
	}
	days, err := maintenance.PartitionDays(ctx, v.source)
	if err != nil {
		return err
	}
	if err := v.makeDays(ctx, days); err != nil {
		return err
	}
	for _, t := range movedTables {
		query := fmt.Sprintf("SELECT %s FROM %s WHERE tenant_id = %s", v.columns[t.name], t.name, v.literal())
		switch t.as {
		case byChanges:
			if err := v.copyPart(ctx, t.name, t.name, query); err != nil {
				return err
			}
		case byDays:
			for _, day := range days {
				name := day.Format(time.DateOnly)
				if err := v.copyPart(ctx, t.name, t.name+" "+name, fmt.Sprintf("%s AND created_at >= '%s' AND created_at < '%s'", query, name,
					day.AddDate(0, 0, 1).Format(time.DateOnly))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// makeDays creates the other home's partitions of the days that this home has.
func (v *mover) makeDays(ctx context.Context, days []time.Time) error {
	if len(days) == 0 {
		return nil
	}
	to, err := db.Open(ctx, v.To, db.Options{Name: "move", MaxConns: 1})
	if err != nil {
		return err
	}
	defer to.Close()
	_, err = to.MakePartitions(ctx, days[0], days[len(days)-1])
	return err
}

func (v *mover) copyPart(ctx context.Context, table, part, query string) error {
	return pgx.BeginFunc(ctx, v.to, func(to pgx.Tx) error {
		q := sql.New(to)
		added, err := q.AddMovePart(ctx, v.Tenant, part)
		if err != nil || added == 0 {
			return err
		}
		n, err := v.copyRows(ctx, to, table, query)
		if err != nil {
			return err
		}
		if n > 0 {
			v.Say("copied", "part", part, "rows", n)
		}
		return q.CountMovePart(ctx, sql.CountMovePartParams{TenantID: v.Tenant, Part: part, N: n})
	})
}

// catchUp copies what changed, until little is left.
func (v *mover) catchUp(ctx context.Context) error {
	if done, err := v.skip(ctx); err != nil || done {
		return err
	}
	for range mostRounds {
		if n, err := v.old.CountMoveChanges(ctx, v.Tenant, changesToEnd); err != nil || n < changesToEnd {
			return err
		}
		if err := v.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// round copies the changed rows in their present state.
func (v *mover) round(ctx context.Context) error {
	return v.at(ctx, func(from pgx.Tx) ([]int64, error) {
		var seen []int64
		err := pgx.BeginFunc(ctx, v.to, func(to pgx.Tx) (err error) {
			seen, err = v.apply(ctx, from, to)
			return err
		})
		return seen, err
	})
}

// at runs a step under one snapshot of the source, and then deletes the records of changes that the step has copied.
func (v *mover) at(ctx context.Context, step func(from pgx.Tx) ([]int64, error)) error {
	from, err := v.from.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	seen, err := step(from)
	if err := errors.Join(err, from.Rollback(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return v.old.DeleteCopiedChanges(ctx, seen)
}

// apply replaces the changed rows by their state in the snapshot, and returns the changes.
func (v *mover) apply(ctx context.Context, from, to pgx.Tx) (seen []int64, err error) {
	for _, t := range movedTables {
		if !t.tracked() {
			continue
		}
		changes, err := sql.New(from).MoveChanges(ctx, v.Tenant, t.name)
		if err != nil {
			return nil, err
		}
		days := map[string][]sql.MoveChangesRow{}
		for _, c := range changes {
			seen = append(seen, c.N)
			day := ""
			if t.as == byDays {
				day = c.At.UTC().Format(time.DateOnly)
			}
			days[day] = append(days[day], c)
		}
		for day, changes := range days {
			if err := v.replace(ctx, to, t, day, changes); err != nil {
				return nil, err
			}
		}
	}
	return seen, nil
}

// replaceMost is how many changed rows are named in one statement.
const replaceMost = 2000

// replace deletes changed rows of a table, of one day if the table has days, and copies them again.
func (v *mover) replace(ctx context.Context, to pgx.Tx, t movedTable, day string, changes []sql.MoveChangesRow) error {
	for len(changes) > 0 {
		some := changes[:min(len(changes), replaceMost)]
		changes = changes[len(some):]
		where := "t.tenant_id = " + v.literal()
		if day != "" {
			begin, err := time.Parse(time.DateOnly, day)
			if err != nil {
				return err
			}
			where += fmt.Sprintf(" AND t.created_at >= '%s' AND t.created_at < '%s'", day, begin.AddDate(0, 0, 1).Format(time.DateOnly))
		}
		keys := "(SELECT DISTINCT * FROM (VALUES " + values(some) + ") AS x(at, k1, k2)) AS c"
		if t.name != "audit_log" { // append-only
			if _, err := to.Exec(ctx, fmt.Sprintf("DELETE FROM %s t USING %s WHERE %s AND %s", t.name, keys, where, t.changed)); err != nil {
				return err
			}
		}
		columns := "t." + strings.ReplaceAll(v.columns[t.name], ", ", ", t.")
		if _, err := v.copyRows(ctx, to, t.name, fmt.Sprintf("SELECT %s FROM %s t, %s WHERE %s AND %s", columns, t.name, keys, where, t.changed)); err != nil {
			return err
		}
	}
	return nil
}

// values writes changes as rows of VALUES. COPY takes no parameters.
func values(changes []sql.MoveChangesRow) string {
	var b strings.Builder
	for i, c := range changes {
		if i > 0 {
			b.WriteByte(',')
		}
		at, k1, k2 := "NULL", "NULL", "NULL"
		if c.At != nil {
			at = "'" + c.At.UTC().Format("2006-01-02 15:04:05.999999Z07:00") + "'"
		}
		if c.K1 != nil {
			k1 = "'" + c.K1.String() + "'"
		}
		if c.K2 != nil {
			k2 = quoteText(*c.K2)
		}
		fmt.Fprintf(&b, "(%s::timestamptz, %s::uuid, %s::text)", at, k1, k2)
	}
	return b.String()
}

// quoteText writes a text as a literal, independent of the server's treatment of backslashes.
func quoteText(text string) string {
	return `E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + `'`
}

// finalCopy copies the rest under one snapshot, in one transaction of the other home. When it commits, the tenant is in
// the other home.
func (v *mover) finalCopy(ctx context.Context) error {
	if done, err := v.skip(ctx); err != nil || done {
		return err
	}
	v.Say("copying the last changes")
	for {
		if err := v.fold(ctx); err != nil {
			return err
		}
		var unfolded bool
		err := v.at(ctx, func(from pgx.Tx) (seen []int64, err error) {
			if unfolded, err = sql.New(from).MoveUnfolded(ctx, v.Tenant); err != nil || unfolded {
				return nil, err
			}
			err = pgx.BeginFunc(ctx, v.to, func(to pgx.Tx) error {
				if seen, err = v.apply(ctx, from, to); err != nil {
					return err
				}
				return v.arrive(ctx, from, to)
			})
			return seen, err
		})
		if err != nil || !unfolded {
			return err
		}
	}
}

// fold empties the ledger into the totals, so that the tenant's totals are complete.
func (v *mover) fold(ctx context.Context) error {
	const most = 1000
	for n := int64(most); n == most; {
		if err := v.source.Worker(ctx, func(q *sql.Queries) (err error) {
			n, err = q.FoldLedger(ctx, most)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// arrive copies the tenant itself and all of its tables that are copied as a whole.
func (v *mover) arrive(ctx context.Context, from, to pgx.Tx) error {
	temporary, n, err := v.receive(ctx, to, "tenants", fmt.Sprintf("SELECT %s FROM tenants WHERE id = %s", v.columns["tenants"], v.literal()))
	if err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("%d tenants", n))
	}
	q := sql.New(to)
	if err := q.DeleteMoveBooks(ctx, v.Tenant); err != nil {
		return err
	}
	for _, statement := range []string{
		"DELETE FROM tenants WHERE id = " + v.literal(),
		fmt.Sprintf("UPDATE %s SET moving = false", temporary),
		fmt.Sprintf("INSERT INTO tenants (%[1]s) SELECT %[1]s FROM %[2]s", v.columns["tenants"], temporary),
	} {
		if _, err := to.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for _, t := range movedTables {
		if t.as != atOnce && t.as != whenDrained {
			continue
		}
		if err := v.arriveTable(ctx, from, to, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if err := v.reseal(ctx, to); err != nil {
		return err
	}
	if err := q.FinishMove(ctx, false, v.Tenant); err != nil {
		return err
	}
	if err := q.BumpKeysRevision(ctx); err != nil {
		return err
	}
	if err := q.NotifyWake(ctx, "all"); err != nil {
		return err
	}
	if err := q.NotifyPauses(ctx); err != nil {
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

func (v *mover) arriveTable(ctx context.Context, from, to pgx.Tx, t movedTable) error {
	temporary, n, err := v.receive(ctx, to, t.name, fmt.Sprintf("SELECT %s FROM %s WHERE tenant_id = %s", v.columns[t.name], t.name, v.literal()))
	if err != nil {
		return err
	}
	switch t.name {
	case "memberships":
		err = v.arrivePeople(ctx, to, temporary)
	case "sso_identities":
		err = v.rename(ctx, to, temporary)
	case "notice_preferences":
		_, err = to.Exec(ctx, fmt.Sprintf("UPDATE %s n SET recipient = x.id::text FROM moved_people p JOIN people x ON x.email = p.email WHERE p.id::text = n.recipient", temporary))
	case "lanes":
		err = v.arriveLanes(ctx, from, to, temporary)
	case "queue":
		err = v.arriveQueue(ctx, to, temporary)
	}
	if err != nil {
		return err
	}
	tag, err := to.Exec(ctx, fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM %[3]s", t.name, v.columns[t.name], temporary))
	if err == nil && tag.RowsAffected() != n {
		err = fmt.Errorf("%d of %d rows arrived", tag.RowsAffected(), n)
	}
	v.rows += n
	return err
}

// arrivePeople copies the accounts of members, with password and second factor, unless the other home has one of the
// same address. Memberships then refer to the account in the other home.
func (v *mover) arrivePeople(ctx context.Context, to pgx.Tx, memberships string) error {
	members := fmt.Sprintf("(SELECT person_id FROM memberships WHERE tenant_id = %[1]s UNION SELECT person_id FROM sso_identities WHERE tenant_id = %[1]s)", v.literal())
	people, _, err := v.receive(ctx, to, "people", fmt.Sprintf("SELECT %s FROM people WHERE id IN %s", v.columns["people"], members))
	if err != nil {
		return err
	}
	rows, err := to.Query(ctx, fmt.Sprintf("INSERT INTO people (%[1]s) SELECT %[1]s FROM %[2]s p WHERE NOT EXISTS (SELECT FROM people x WHERE x.email = p.email OR x.id = p.id) RETURNING id, totp", v.columns["people"], people))
	if err != nil {
		return err
	}
	type person struct {
		id   id.UUID
		totp []byte
	}
	fresh, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p person, err error) {
		return p, row.Scan(&p.id, &p.totp)
	})
	if err != nil {
		return err
	}
	for _, p := range fresh {
		if p.totp == nil {
			continue
		}
		sealed, err := v.resealOne(p.totp, id.UUID{}, p.id)
		if err != nil {
			return err
		}
		if err := sql.New(to).ResealPersonSeed(ctx, sealed, p.id); err != nil {
			return err
		}
	}
	codes, _, err := v.receive(ctx, to, "recovery_codes", fmt.Sprintf("SELECT %s FROM recovery_codes WHERE owner_id IN %s", v.columns["recovery_codes"], members))
	if err != nil {
		return err
	}
	ids := make([]id.UUID, len(fresh))
	for i, p := range fresh {
		ids[i] = p.id
	}
	if _, err := to.Exec(ctx, fmt.Sprintf("INSERT INTO recovery_codes (%[1]s) SELECT %[1]s FROM %[2]s WHERE owner_id = ANY ($1) ON CONFLICT DO NOTHING", v.columns["recovery_codes"], codes), ids); err != nil {
		return err
	}
	return v.rename(ctx, to, memberships)
}

// rename makes rows refer to the other home's accounts, after arrivePeople.
func (v *mover) rename(ctx context.Context, to pgx.Tx, rows string) error {
	_, err := to.Exec(ctx, fmt.Sprintf("UPDATE %s m SET person_id = x.id FROM moved_people p JOIN people x ON x.email = p.email WHERE p.id = m.person_id", rows))
	return err
}

// arriveLanes opens the lanes that were open before the move. Their marks are moved with the queue's numbers.
func (v *mover) arriveLanes(ctx context.Context, from, to pgx.Tx, lanes string) error {
	open, err := sql.New(from).MoveOpenLanes(ctx, v.Tenant)
	if err != nil {
		return err
	}
	_, err = to.Exec(ctx, fmt.Sprintf(`UPDATE %s l SET owner = NULL, leased_at = NULL,
		held = CASE WHEN l.endpoint_id = ANY ($1) AND EXISTS (SELECT FROM endpoints e WHERE e.id = l.endpoint_id AND e.status = 'active') THEN false ELSE l.held END`, lanes), open)
	return err
}

// queueRoom is how far the new numbers of a queue are above those that are drawn during the move.
const queueRoom = 1_000_000

// arriveQueue gives rows new numbers of the other home's sequence, in the same order. The marks of lanes and jobs,
// below which rows are dropped, are numbers of the queue too, and move with them.
func (v *mover) arriveQueue(ctx context.Context, to pgx.Tx, queue string) error {
	var low, high *int64
	if err := to.QueryRow(ctx, fmt.Sprintf(`SELECT min(n), max(n) FROM (SELECT seq AS n FROM %s
		UNION ALL SELECT drop_below FROM lanes WHERE tenant_id = $1 AND drop_below > 0 UNION ALL SELECT horizon FROM bulk_jobs WHERE tenant_id = $1) x`, queue), v.Tenant).Scan(&low, &high); err != nil {
		return err
	}
	if low == nil {
		return nil
	}
	q := sql.New(to)
	top, err := q.NextQueueNumber(ctx)
	if err != nil {
		return err
	}
	shift := top + queueRoom - *low
	if err := q.ShiftLaneMarks(ctx, shift, v.Tenant); err != nil {
		return err
	}
	if err := q.ShiftJobMarks(ctx, shift, v.Tenant); err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf("UPDATE %s SET seq = seq + %d", queue, shift),
		// The owner of the sequence sets it.
		fmt.Sprintf("SET LOCAL ROLE NONE; SELECT setval('posthorn.queue_seq', %d); SET LOCAL ROLE posthorn_console", *high+shift+1),
	} {
		if _, err := to.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// secret is a sealed value of a row, and the id under which it is sealed.
type secret struct {
	row, object id.UUID
	sealed      []byte
}

// reseal seals the tenant's secrets under the master key of the new home.
func (v *mover) reseal(ctx context.Context, to pgx.Tx) error {
	for _, c := range resealed {
		rows, err := to.Query(ctx, fmt.Sprintf("SELECT %s, %s, %[3]s FROM %s WHERE tenant_id = $1 AND %[3]s IS NOT NULL", c.row, c.object, c.column, c.table), v.Tenant)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s secret, err error) {
			return s, row.Scan(&s.row, &s.object, &s.sealed)
		})
		if err != nil {
			return err
		}
		for _, s := range all {
			sealed, err := v.resealOne(s.sealed, v.Tenant, s.object)
			if err != nil {
				return fmt.Errorf("%s.%s of row %s: %w", c.table, c.column, s.row, err)
			}
			if _, err := to.Exec(ctx, fmt.Sprintf("UPDATE %s SET %s = $3 WHERE tenant_id = $1 AND %s = $2", c.table, c.column, c.row), v.Tenant, s.row, sealed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *mover) resealOne(sealed []byte, tenant, object id.UUID) ([]byte, error) {
	plain, err := v.FromKeys.Open(sealed, tenant, object)
	if err != nil {
		return nil, err
	}
	return v.ToKeys.Seal(plain, tenant, object), nil
}
