// Package move moves a tenant from one home to another while it works.
//
// It copies tables that it names, with the columns that the other home has, and creates triggers for one tenant. Those
// statements are put together at run time. All others are in queries/move.sql.
package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Move is a move of a tenant from one home to another. Both databases are reached directly.
type Move struct {
	Tenant   id.UUID
	From, To string // URLs of the databases
	FromKeys *seal.Ring
	ToKeys   *seal.Ring
	Home     string                         // that the tenant moves to
	Keep     bool                           // the tenant's data in the old home is not erased
	Say      func(step string, args ...any) // gets each step when it starts
}

// Moved is what a move has done.
type Moved struct {
	Rows   int64         // copied rows; a row that changed during the copy counts several times
	Closed time.Duration // how long the tenant accepted no changes
}

// Errors of a move.
var (
	errMovePlatform = fault.New(fault.Conflict, "tenant_of_platform", "This is the platform's own tenant, which holds operational webhooks. It stays in its home.")
	errMoveTo       = fault.New(fault.Invalid, "move_home", "The other database is not the home that --to names. Correct --to or POSTHORN_TO_DATABASE_URL; start that home once before tenants move to it.")
	errMoveSchema   = fault.New(fault.Invalid, "move_schema", "The two homes run different releases. Upgrade both to the same one, then move.")
	errMoveThere    = fault.New(fault.Conflict, "move_there", "The other home has a tenant of this id or of its external id. Delete that one first, or wait until what is left of it is erased.")
	errMoveLarge    = fault.New(fault.Conflict, "move_large_payloads", "Events of the tenant have their data in object storage, which belongs to this home. The tenant can move once these events have left the retention, or are expunged.")
	errMoveStored   = fault.New(fault.Conflict, "move_stored", "Days of the tenant's history are in storage, which belongs to this home. Bring them back first: `posthorn history restore --all`.")
	errMoveTwice    = fault.New(fault.Conflict, "move_running", "Another command is moving this tenant. Let it end, or end it and run this one again.")
	errMoveDone     = fault.New(fault.Conflict, "move_done", "The tenant is in the other home already, so the move can't be rolled back. Run it again to finish it, or move the tenant back.")
	errMoveCounts   = fault.New(fault.Internal, "move_counts", "The tenant has moved, and the two homes count different rows of before. Nothing is erased in the home that it left. Compare the tables named above.")
)

// Times of a move.
const (
	drainWithin  = time.Minute // an endpoint's slowest response takes 30 s
	moveTries    = 200
	moveRest     = 50 * time.Millisecond
	changesToEnd = 500 // few enough changes for the last step
	mostRounds   = 20
	// Web processes know within a second that the tenant is moving: handlers.Authenticator.
	knownWithin = 1100 * time.Millisecond
)

type mover struct {
	Move
	from, to       *pgx.Conn
	old, new       *sql.Queries // on the two connections
	source         *db.DB       // for folding the ledger
	fromHome       string
	columns        map[string]string // of each table
	rows           int64
	closed, opened time.Time
	shutAt         time.Time // when the last step started, or this command, if an earlier one closed the tenant
}

// Run moves a tenant while it works. It can be interrupted at any point: a second run continues where the first
// stopped. The tenant accepts no changes in the last step, which takes about a second, and longer the more of its
// deliveries wait.
func Run(ctx context.Context, m Move) (Moved, error) {
	v, err := openMove(ctx, m)
	if err != nil {
		return Moved{}, err
	}
	defer v.close(ctx)
	for _, step := range []func(context.Context) error{
		v.prepare, v.follow, v.copyAll, v.catchUp, v.drain, v.shut,
		v.finalCopy, v.finish,
	} {
		if err := step(ctx); err != nil {
			return Moved{}, db.Translate(err)
		}
	}
	return Moved{v.rows, v.opened.Sub(v.closed)}, nil
}

// RollBack ends a move that is not finished: the tenant stays in its old home, and the copied data is deleted.
func RollBack(ctx context.Context, m Move) error {
	v, err := openMove(ctx, m)
	if err != nil {
		return err
	}
	defer v.close(ctx)
	return db.Translate(v.rollBack(ctx))
}

func openMove(ctx context.Context, m Move) (v *mover, err error) {
	v = &mover{Move: m, columns: map[string]string{}, shutAt: time.Now()}
	defer func() {
		if err != nil {
			v.close(ctx)
		}
	}()
	if v.from, err = db.Connect(ctx, m.From, db.Options{Name: "move"}); err != nil {
		return v, db.Translate(err)
	}
	if v.to, err = db.Connect(ctx, m.To, db.Options{Name: "move"}); err != nil {
		return v, db.Translate(err)
	}
	if v.source, err = db.Open(ctx, m.From, db.Options{Name: "move", MaxConns: 1}); err != nil {
		return v, err
	}
	v.old, v.new = sql.New(v.from), sql.New(v.to)
	return v, v.check(ctx)
}

func (v *mover) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, conn := range []*pgx.Conn{v.from, v.to} {
		if conn != nil {
			_ = conn.Close(ctx)
		}
	}
	if v.source != nil {
		v.source.Close()
	}
}

// check compares the two homes and takes the lock of movers.
func (v *mover) check(ctx context.Context) error {
	var versions [2]string
	var names [2]string
	for i, conn := range []*pgx.Conn{v.from, v.to} {
		if err := conn.QueryRow(ctx, "SELECT string_agg(DISTINCT version_id::text, ',' ORDER BY version_id::text) FROM goose_db_version WHERE is_applied").Scan(&versions[i]); err != nil {
			return db.Translate(err)
		}
		if _, err := conn.Exec(ctx, "SET ROLE posthorn_console; SET posthorn.mover = 'on'; SET timezone = 'UTC'"); err != nil {
			return db.Translate(err)
		}
		var err error
		if names[i], err = sql.New(conn).HomeName(ctx); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return db.Translate(err)
		}
	}
	if v.fromHome = names[0]; names[1] != v.Home || names[0] == names[1] || names[0] == "" {
		return errMoveTo
	}
	if versions[0] != versions[1] {
		return errMoveSchema
	}
	locked, err := v.old.TryMoverLock(ctx, v.Tenant)
	if err != nil {
		return db.Translate(err)
	}
	if !locked {
		return errMoveTwice
	}
	tables, err := v.new.MoveColumns(ctx)
	for _, t := range tables {
		v.columns[t.Name] = t.Columns
	}
	return db.Translate(err)
}

// state reads the progress of the move: where the tenant is, according to each home.
func (v *mover) state(ctx context.Context) (here, there string, err error) {
	if here, err = v.old.MoveState(ctx, sql.MoveStateParams{TenantID: v.Tenant, Direction: "out", Home: v.Home}); err != nil {
		return "", "", err
	}
	there, err = v.new.MoveState(ctx, sql.MoveStateParams{TenantID: v.Tenant, Direction: "in", Home: v.fromHome})
	return here, there, err
}

// prepare records the move in both homes and checks that the tenant fits.
func (v *mover) prepare(ctx context.Context) error {
	here, there, err := v.state(ctx)
	if err != nil || there == "done" && here != "" {
		return err
	}
	if err := v.mayMove(ctx); err != nil {
		return err
	}
	if here == "" || there == "" {
		// One of the two has no record: data that an earlier move of this tenant left is not part of this move.
		if err := v.forget(ctx); err != nil {
			return err
		}
	}
	if err := v.new.StartMove(ctx, sql.StartMoveParams{TenantID: v.Tenant, Direction: "in", Home: v.fromHome}); err != nil {
		return err
	}
	return v.old.StartMove(ctx, sql.StartMoveParams{TenantID: v.Tenant, Direction: "out", Home: v.Home})
}

// mayMove returns why the tenant can't move, or nil.
func (v *mover) mayMove(ctx context.Context) error {
	external, err := v.old.MoveTenant(ctx, v.Tenant)
	if err != nil {
		return err // fault.ErrNotFound if there is none
	}
	var own id.UUID
	if err := v.source.Console(ctx, func(q *sql.Queries) (err error) {
		own, err = accounts.PlatformTenant(ctx, q)
		return err
	}); err != nil {
		return err
	}
	if own == v.Tenant {
		return errMovePlatform
	}
	stored, err := v.old.MoveStored(ctx, v.Tenant)
	if err != nil {
		return err
	}
	large, err := v.old.HasLargePayloads(ctx, v.Tenant)
	if err != nil {
		return err
	}
	switch {
	case large:
		return errMoveLarge
	case stored:
		return errMoveStored
	}
	conflicts, err := v.new.MoveConflicts(ctx, v.Tenant, external)
	if err != nil {
		return err
	}
	if conflicts {
		return errMoveThere
	}
	return nil
}

// forget deletes what an interrupted move has copied.
func (v *mover) forget(ctx context.Context) error {
	for _, t := range movedTables {
		if !t.tracked() || t.name == "audit_log" {
			continue // the audit log is append-only: existing entries are the same
		}
		if _, err := v.to.Exec(ctx, "DELETE FROM "+t.name+" WHERE tenant_id = $1", v.Tenant); err != nil {
			return err
		}
	}
	return all(ctx, v.Tenant, v.new.DeleteMoveBooks, v.new.DeleteMoveParts, v.new.DeleteMove, v.old.DeleteMoveChanges)
}

// all runs statements about a tenant one after the other, until one fails.
func all(ctx context.Context, tenant id.UUID, statements ...func(context.Context, id.UUID) error) error {
	for _, statement := range statements {
		if err := statement(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}

// skip reports that the tenant is in the other home already: only the last part here is left.
func (v *mover) skip(ctx context.Context) (bool, error) {
	_, there, err := v.state(ctx)
	return there == "done", err
}

// triggers are the statements that create and drop the triggers of the tenant on a table.
func (v *mover) triggers(t movedTable) (make, drop string) {
	name := "move_" + strings.ReplaceAll(v.Tenant.String(), "-", "")
	tenant := "'" + v.Tenant.String() + "'"
	for _, on := range []struct{ suffix, events, row string }{{"_w", "INSERT OR UPDATE", "NEW"}, {"_d", "DELETE", "OLD"}} {
		drop += fmt.Sprintf("DROP TRIGGER IF EXISTS %s%s ON %s; ", name, on.suffix, t.name)
		make += fmt.Sprintf("CREATE TRIGGER %s%s AFTER %s ON %s FOR EACH ROW WHEN (%s.tenant_id = %s) EXECUTE FUNCTION posthorn.on_move(%s, '%s', '%s'); ",
			name, on.suffix, on.events, t.name, on.row, tenant, tenant, t.name, t.mode())
	}
	return make, drop
}

// asOwner runs statements that need a lock on a whole table. Each try waits for a short time only, since every other
// statement on the table waits behind it.
func (v *mover) asOwner(ctx context.Context, statements string) error {
	for try := 1; ; try++ {
		_, err := v.from.Exec(ctx, "BEGIN; SET LOCAL ROLE NONE; SET LOCAL lock_timeout = '300ms'; "+statements+" COMMIT")
		if err == nil {
			return nil
		}
		if _, rollback := v.from.Exec(ctx, "ROLLBACK"); rollback != nil {
			return rollback
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55P03" && pg.Code != "40P01" || try == moveTries {
			return err
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context) error {
	select {
	case <-time.After(moveRest):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow records every later change of the tenant.
func (v *mover) follow(ctx context.Context) error {
	if done, err := v.skip(ctx); err != nil || done {
		return err
	}
	for _, t := range movedTables {
		if t.mode() == "" {
			continue
		}
		create, _ := v.triggers(t)
		var has int
		if err := v.from.QueryRow(ctx, "SELECT count(*) FROM pg_trigger WHERE tgrelid = ('posthorn.' || $1)::regclass AND tgname LIKE $2",
			t.name, "move_"+strings.ReplaceAll(v.Tenant.String(), "-", "")+"%").Scan(&has); err != nil {
			return err
		}
		if has > 0 {
			continue
		}
		if err := v.asOwner(ctx, create); err != nil {
			return err
		}
	}
	return nil
}

func (v *mover) unfollow(ctx context.Context) error {
	for _, t := range movedTables {
		if t.mode() == "" {
			continue
		}
		_, drop := v.triggers(t)
		if err := v.asOwner(ctx, drop); err != nil {
			return err
		}
	}
	return nil
}

// drain makes workers release the tenant's lanes. New events wait until then.
func (v *mover) drain(ctx context.Context) error {
	if done, err := v.skip(ctx); err != nil || done {
		return err
	}
	v.Say("waiting for deliveries under way")
	if err := v.holdLanes(ctx); err != nil {
		return err
	}
	return v.round(ctx)
}

func (v *mover) holdLanes(ctx context.Context) error {
	if err := v.old.HoldMoveLanes(ctx, v.Tenant); err != nil {
		return err
	}
	if err := v.old.NotifyWake(ctx, "all"); err != nil {
		return err
	}
	for until := time.Now().Add(drainWithin); ; {
		if owned, err := v.old.CountOwnedLanes(ctx, v.Tenant); err != nil || owned == 0 {
			return err
		}
		if time.Now().After(until) {
			return &fault.Error{Kind: fault.Unavailable, Code: "move_busy", Detail: "Workers of this home did not let go of the tenant's deliveries within a minute. See whether they run, then run the command again, or with --rollback."}
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// shut starts the last step: nothing of the tenant changes any more.
func (v *mover) shut(ctx context.Context) error {
	if done, err := v.skip(ctx); err != nil || done {
		return err
	}
	v.Say("closing the tenant for the last changes")
	v.closed = time.Now()
	for try := 1; ; try++ {
		err := v.shutOnce(ctx)
		var pg *pgconn.PgError
		if err == nil || !errors.As(err, &pg) || pg.Code != "55P03" && pg.Code != "40P01" || try == moveTries {
			v.shutAt = time.Now()
			if err == nil {
				err = v.holdLanes(ctx)
			}
			return err
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func (v *mover) shutOnce(ctx context.Context) error {
	return pgx.BeginFunc(ctx, v.from, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '1s'"); err != nil {
			return err
		}
		q := sql.New(tx)
		if err := all(ctx, v.Tenant, q.LockMove, q.CloseMovingTenant, q.CloseMove); err != nil {
			return err
		}
		return q.BumpKeysRevision(ctx)
	})
}

// finish removes the tenant from its old home.
func (v *mover) finish(ctx context.Context) error {
	differ, err := v.compare(ctx)
	if err != nil {
		return err
	}
	if err := v.wait(ctx); err != nil {
		return err
	}
	keep := v.Keep || len(differ) > 0
	err = pgx.BeginFunc(ctx, v.from, func(tx pgx.Tx) error {
		for _, table := range []string{"queue", "lanes", "api_keys", "memberships", "invitations", "portal_links", "delivery_shares", "operator_views", "dispatch_pauses", "inboxes", "listeners", "outbox", "mails", "sso_connections", "sso_domains", "sso_identities", "signing_keys", "egress_proxies"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE tenant_id = $1", v.Tenant); err != nil {
				return err
			}
		}
		q := sql.New(tx)
		if err := all(ctx, v.Tenant, q.DeleteMovedEndpoints, q.CancelMovedJobs, q.DeleteMovedTenant); err != nil {
			return err
		}
		if err := q.FinishMove(ctx, keep, v.Tenant); err != nil {
			return err
		}
		return q.BumpKeysRevision(ctx)
	})
	if err != nil {
		return err
	}
	if v.opened = time.Now(); v.closed.IsZero() {
		v.closed = v.opened
	}
	if err := v.unfollow(ctx); err != nil {
		return err
	}
	if err := all(ctx, v.Tenant, v.old.DeleteMoveChanges, v.new.DeleteMoveParts); err != nil {
		return err
	}
	if len(differ) > 0 {
		v.Say("different counts", "tables", strings.Join(differ, ", "))
		return errMoveCounts
	}
	return nil
}

// wait returns when every web process knows that the tenant is moving. Before that, a process with a cached key would
// look in a home without the tenant.
func (v *mover) wait(ctx context.Context) error {
	select {
	case <-time.After(time.Until(v.shutAt.Add(knownWithin))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compareEdge is how long before the end of a copy rows are compared one by one: the new home has added rows since. It
// is longer than the clocks of two homes can differ.
const compareEdge = 5 * time.Minute

// compare compares the bulk tables of both homes, as they were when the tenant was closed, and names the differences.
// It counts older rows. It looks for each of the last rows in the other home, which also has newer rows: the times
// overlap, since the clocks of two homes differ.
func (v *mover) compare(ctx context.Context) (differ []string, err error) {
	closed, err := v.old.MoveClosedAt(ctx, v.Tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // finished before
	} else if err != nil {
		return nil, err
	}
	v.Say("comparing both homes")
	edge := closed.Add(-compareEdge)
	for _, t := range movedTables {
		if t.as != byDays {
			continue
		}
		var counts [2]int64
		for i, conn := range []*pgx.Conn{v.from, v.to} {
			if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+t.name+" WHERE tenant_id = $1 AND created_at < $2", v.Tenant, edge).Scan(&counts[i]); err != nil {
				return nil, err
			}
		}
		late, there, err := v.compareLast(ctx, t.name, edge)
		if err != nil {
			return nil, err
		}
		if counts[0] += late; counts[0] != counts[1]+there {
			differ = append(differ, fmt.Sprintf("%s (%d here, %d there)", t.name, counts[0], counts[1]+there))
		}
	}
	return differ, nil
}

// compareMost is how many rows are compared with one statement.
const compareMost = 10_000

// compareLast counts the rows of a table since a moment here, and how many of them exist in the other home.
func (v *mover) compareLast(ctx context.Context, table string, edge time.Time) (here, there int64, err error) {
	type row struct {
		at time.Time
		id id.UUID
	}
	for last := (row{at: edge.Add(-time.Microsecond)}); ; {
		rows, err := v.from.Query(ctx, "SELECT created_at, id FROM "+table+" WHERE tenant_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4",
			v.Tenant, last.at, last.id, compareMost)
		if err != nil {
			return 0, 0, err
		}
		some, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (one row, err error) {
			return one, r.Scan(&one.at, &one.id)
		})
		if err != nil || len(some) == 0 {
			return here, there, err
		}
		ats, ids := make([]time.Time, len(some)), make([]id.UUID, len(some))
		for i, one := range some {
			ats[i], ids[i] = one.at, one.id
		}
		var n int64
		if err := v.to.QueryRow(ctx, "SELECT count(*) FROM "+table+" t JOIN unnest($2::timestamptz[], $3::uuid[]) AS x(at, id) ON t.created_at = x.at AND t.id = x.id WHERE t.tenant_id = $1 AND t.created_at >= $4",
			v.Tenant, ats, ids, edge).Scan(&n); err != nil {
			return 0, 0, err
		}
		here, there, last = here+int64(len(some)), there+n, some[len(some)-1]
	}
}

// rollBack opens the tenant in its old home again and deletes the copied data.
func (v *mover) rollBack(ctx context.Context) error {
	here, there, err := v.state(ctx)
	switch {
	case err != nil:
		return err
	case there == "done" || here == "done":
		return errMoveDone
	case here == "" && there == "":
		return fault.ErrNotFound
	}
	err = pgx.BeginFunc(ctx, v.from, func(tx pgx.Tx) error {
		q := sql.New(tx)
		if err := all(ctx, v.Tenant, q.OpenMovingTenant, q.ReleaseMoveLanes, q.DeleteMove); err != nil {
			return err
		}
		if err := q.BumpKeysRevision(ctx); err != nil {
			return err
		}
		return q.NotifyWake(ctx, "all")
	})
	if err != nil {
		return err
	}
	if err := v.unfollow(ctx); err != nil {
		return err
	}
	return v.forget(ctx)
}
