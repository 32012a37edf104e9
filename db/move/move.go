// Package move moves a tenant from one home to another while it works (docs/adr/0034-moves-by-replication.md).
//
// PostgreSQL's logical replication carries what is large and idle in the new home: events, deliveries, attempts,
// totals, logs. What the new home would act on, such as lanes, keys and mails, is copied in the one transaction that
// opens the tenant there. Statements that name a table, a publication or a subscription are put together at run time.
// All others are in queries/move.sql.
package move

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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

// Move is a move of a tenant from one home to another. Both databases are reached directly, and the server of the new
// home reaches that of the old one at the same address.
type Move struct {
	Tenant   id.UUID
	From, To string // URLs of the databases; RollBack without To: the other home's is lost
	FromKeys *seal.Ring
	ToKeys   *seal.Ring
	Home     string                         // that the tenant moves to
	Keep     bool                           // the tenant's data in the old home is not erased
	Say      func(step string, args ...any) // gets each step when it starts
}

// Moved is what a move has done.
type Moved struct {
	Rows    int64         // events, deliveries and attempts, and the rows of the last step
	Closed  time.Duration // how long the tenant accepted no changes
	Started bool          // what failed has left something behind: it must be finished, or rolled back
}

// Errors of a move.
var (
	errPlatform = fault.New(fault.Conflict, "tenant_of_platform", "This is the platform's own tenant, which holds operational webhooks. It stays in its home.")
	errTo       = fault.New(fault.Invalid, "move_home", "The other database is not the home that --to names. Correct --to or POSTHORN_TO_DATABASE_URL; start that home once before tenants move to it.")
	errSchema   = fault.New(fault.Invalid, "move_schema", "The two homes run different releases. Upgrade both to the same one, then move.")
	errThere    = fault.New(fault.Conflict, "move_there", "The other home has a tenant of this id or of its external id. Delete that one first, or wait until what is left of it is erased.")
	errLarge    = fault.New(fault.Conflict, "move_large_payloads", "Events of the tenant have their data in object storage, which belongs to this home. The tenant can move once these events have left the retention, or are expunged.")
	errStored   = fault.New(fault.Conflict, "move_stored", "Days of the tenant's history are in storage, which belongs to this home. Bring them back first: `posthorn history restore --all`.")
	errTwice    = fault.New(fault.Conflict, "move_running", "Another command is moving this tenant. Let it end, or end it and run this one again.")
	errDone     = fault.New(fault.Conflict, "move_done", "The tenant is in the other home already, so the move can't be rolled back. Run it again to finish it, or move the tenant back.")
	errCounts   = fault.New(fault.Internal, "move_counts", "The two homes have different rows, in the table named above. The tenant has not moved. Run the command with --rollback, then again.")
	errBusy     = fault.New(fault.Unavailable, "move_busy", "Workers of this home did not release the tenant's deliveries within a minute. See whether they run, then run the command again, or with --rollback.")
)

// Times of a move.
const (
	drainWithin = time.Minute // an endpoint's slowest response takes 30 s
	tries       = 200
	pause       = 50 * time.Millisecond
	lockWithin  = "300ms" // every other statement on a table waits behind one that waits for a lock on it
	// knownWithin is when every web process of the old home knows that the tenant has left: they look four times a
	// second.
	knownWithin = 5 * time.Second
)

type mover struct {
	Move
	from, to       *pgx.Conn
	old, new       *sql.Queries // on the two connections
	fromHome       string
	name           string            // of publication, slot and subscription
	columns        map[string]string // of each table
	failed         *int64            // failures of the subscription before this run
	rows           int64
	started        bool
	closed, opened time.Time
	compared       time.Time // rows of before are the same in both homes; zero: not known
}

// Run moves a tenant while it works. It can be interrupted at any point: a second run continues where the first
// stopped. The tenant accepts no changes in the last step, which takes about a second, and longer the more of its
// deliveries wait.
func Run(ctx context.Context, m Move) (Moved, error) {
	v, err := open(ctx, m)
	if err != nil {
		return Moved{}, err
	}
	defer v.close(ctx)
	here, there, err := v.state(ctx)
	if err != nil {
		return Moved{}, db.Translate(err)
	}
	v.started = here != ""
	steps := []func(context.Context) error{v.prepare, v.replicate, v.catchUp, v.compareOlder, v.fence, v.drain, v.shut, v.settle, v.detach, v.compareRecent, v.arrive}
	switch {
	case there == "done" && here != "":
		steps = nil // it is open there
	case there == "copied":
		steps = steps[len(steps)-2:]
	}
	for _, step := range append(steps, v.leave, v.unpublish, v.finish) {
		if err := step(ctx); err != nil {
			return Moved{Started: v.started}, db.Translate(err)
		}
	}
	return Moved{Rows: v.rows, Closed: v.opened.Sub(v.closed)}, nil
}

func open(ctx context.Context, m Move) (v *mover, err error) {
	v = &mover{Move: m, columns: map[string]string{}, name: "posthorn_move_" + strings.ReplaceAll(m.Tenant.String(), "-", "")}
	v.closed = time.Now()
	if v.from, err = db.Connect(ctx, m.From, db.Options{Name: "move"}); err == nil && m.To != "" {
		v.to, err = db.Connect(ctx, m.To, db.Options{Name: "move"})
	}
	if err == nil {
		err = v.check(ctx)
	}
	if err != nil {
		v.close(ctx)
	}
	return v, db.Translate(err)
}

func (v *mover) close(ctx context.Context) {
	for _, conn := range v.homes() {
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// homes are the connections to the databases, the old home's first.
func (v *mover) homes() []*pgx.Conn {
	return slices.DeleteFunc([]*pgx.Conn{v.from, v.to}, func(c *pgx.Conn) bool { return c == nil })
}

// check compares the two homes and takes the lock of movers in both. Each tells by that lock whether the command runs.
func (v *mover) check(ctx context.Context) error {
	var schemas, names [2]string
	for i, conn := range v.homes() {
		if _, err := conn.Exec(ctx, "SET posthorn.mover = 'on'; SET timezone = 'UTC'"); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, "SELECT string_agg(DISTINCT version_id::text, ','), coalesce((SELECT name FROM home), '') FROM goose_db_version WHERE is_applied").
			Scan(&schemas[i], &names[i]); err != nil {
			return err
		}
	}
	v.old, v.fromHome = sql.New(v.from), names[0]
	if v.to != nil {
		v.new = sql.New(v.to)
		if names[1] != v.Home || names[0] == names[1] || names[0] == "" {
			return errTo
		}
		if schemas[0] != schemas[1] {
			return errSchema
		}
	}
	for _, conn := range v.homes() {
		if locked, err := sql.New(conn).TryMoverLock(ctx, v.Tenant); err != nil || !locked {
			return cmp.Or[error](err, errTwice)
		}
	}
	tables, err := v.old.MoveColumns(ctx)
	for _, t := range tables {
		v.columns[t.Name] = t.Columns
	}
	return err
}

// state reads the progress of the move: where the tenant is, according to each home.
func (v *mover) state(ctx context.Context) (here, there string, err error) {
	if here, err = v.old.MoveState(ctx, sql.MoveStateParams{TenantID: v.Tenant, Direction: "out", Home: v.Home}); err != nil || v.to == nil {
		return here, "", err
	}
	there, err = v.new.MoveState(ctx, sql.MoveStateParams{TenantID: v.Tenant, Direction: "in", Home: v.fromHome})
	return here, there, err
}

// prepare checks that servers and tenant fit, and records the move in both homes.
func (v *mover) prepare(ctx context.Context) error {
	if slots, err := v.old.MoveSlots(ctx, v.name); err != nil {
		return err
	} else if slots == 0 {
		if err := v.checkServers(ctx); err != nil {
			return err
		}
	}
	t, err := v.old.MoveTenant(ctx, v.Tenant)
	if err != nil {
		return err // fault.ErrNotFound if there is none
	}
	own, err := accounts.PlatformTenant(ctx, v.old)
	if err != nil {
		return err
	}
	conflicts, err := v.new.MoveConflicts(ctx, v.Tenant, t.ExternalID)
	switch {
	case err != nil:
		return err
	case own == v.Tenant:
		return errPlatform
	case t.Large:
		return errLarge
	case t.Stored:
		return errStored
	case conflicts:
		return errThere
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: the program would have crashed
	for _, h := range []struct {
		q               *sql.Queries
		direction, home string
		keys            *seal.Ring
	}{{v.new, "in", v.fromHome, v.ToKeys}, {v.old, "out", v.Home, v.FromKeys}} {
		if err := h.q.StartMove(ctx, sql.StartMoveParams{TenantID: v.Tenant, Direction: h.direction, Home: h.home}); err != nil {
			return err
		}
		v.started = true
		if err := h.q.SetMoveKey(ctx, h.keys.Seal(key, v.Tenant, v.Tenant), v.Tenant); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes what an interrupted or an earlier move has replicated to the other home.
func (v *mover) forget(ctx context.Context) error {
	for _, t := range movedTables {
		if !t.replicated() {
			continue
		}
		if _, err := v.to.Exec(ctx, "DELETE FROM "+t.name+" WHERE tenant_id = $1", v.Tenant); err != nil {
			return err
		}
	}
	return nil
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

func rest(ctx context.Context) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry repeats what needs a lock, or a slot that is in use, each time with a short wait.
func retry(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || try == tries || !slices.Contains([]string{"55P03", "40P01", "55006", "42704"}, pg.Code) {
			return err
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// locking runs a transaction of the old home whose statements give up early where they wait for a lock.
func (v *mover) locking(ctx context.Context, do func(q *sql.Queries, tx pgx.Tx) error) error {
	return retry(ctx, func() error {
		return pgx.BeginFunc(ctx, v.from, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+lockWithin+"'"); err != nil {
				return err
			}
			return do(sql.New(tx), tx)
		})
	})
}

// fence creates the triggers that reject changes of the tenant once it is closed.
func (v *mover) fence(ctx context.Context) error {
	return v.eachFenced(ctx, `CREATE OR REPLACE TRIGGER %[1]s_w AFTER INSERT OR UPDATE ON %[3]s FOR EACH ROW WHEN (NEW.tenant_id = '%[2]s') EXECUTE FUNCTION on_move('%[2]s');
		CREATE OR REPLACE TRIGGER %[1]s_d AFTER DELETE ON %[3]s FOR EACH ROW WHEN (OLD.tenant_id = '%[2]s') EXECUTE FUNCTION on_move('%[2]s')`)
}

func (v *mover) unfence(ctx context.Context) error {
	return v.eachFenced(ctx, "DROP TRIGGER IF EXISTS %[1]s_w ON %[3]s; DROP TRIGGER IF EXISTS %[1]s_d ON %[3]s")
}

// eachFenced runs statements for each fenced table, in a transaction of its own.
func (v *mover) eachFenced(ctx context.Context, statements string) error {
	for _, t := range movedTables {
		if !t.fenced() {
			continue
		}
		if err := v.locking(ctx, func(_ *sql.Queries, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, fmt.Sprintf(statements, strings.TrimPrefix(v.name, "posthorn_"), v.Tenant, t.name))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until no worker works for the tenant.
func (v *mover) drain(ctx context.Context) error {
	v.Say("waiting for deliveries under way")
	return v.release(ctx)
}

// release holds the tenant's lanes, and waits until their owners have released them.
func (v *mover) release(ctx context.Context) error {
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
			return errBusy
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// shut starts the last step: nothing of the tenant changes any more.
func (v *mover) shut(ctx context.Context) error {
	v.Say("closing the tenant for the last changes")
	v.closed = time.Now()
	if err := v.locking(ctx, func(q *sql.Queries, _ pgx.Tx) error {
		if err := all(ctx, v.Tenant, q.LockMove, q.CloseMovingTenant); err != nil {
			return err
		}
		if err := q.SetMoveState(ctx, "closed", v.Tenant); err != nil {
			return err
		}
		return q.BumpKeysRevision(ctx)
	}); err != nil {
		return err
	}
	return v.release(ctx) // lanes that were made since
}

// settle empties the ledger into the totals, and waits until all of it is in the other home.
func (v *mover) settle(ctx context.Context) error {
	const most = 1000
	for {
		for n := int64(most); n == most; {
			var err error
			if n, err = v.old.FoldLedger(ctx, most); err != nil {
				return err
			}
		}
		if unfolded, err := v.old.MoveUnfolded(ctx, v.Tenant); err != nil {
			return err
		} else if !unfolded {
			return v.await(ctx)
		}
	}
}

// leave makes the old home pass on the requests that still come for the tenant.
func (v *mover) leave(ctx context.Context) error {
	v.Say("leading requests to the other home")
	known, err := v.new.MoveHashes(ctx, &v.Tenant)
	if err != nil {
		return err
	}
	err = v.old.PutMovedTenant(ctx, sql.PutMovedTenantParams{TenantID: v.Tenant, Home: v.Home, ExternalID: known.ExternalID, Hashes: known.Hashes})
	v.opened = time.Now()
	return err
}

// left are the tables whose rows the old home deletes immediately. The rest is erased later.
var left = []string{
	"queue", "lanes", "api_keys", "memberships", "invitations", "portal_links", "delivery_shares", "operator_views", "dispatch_pauses",
	"inboxes", "listeners", "outbox", "mails", "sso_connections", "sso_domains", "sso_identities", "signing_keys", "egress_proxies", "tenant_move_marks",
}

// finish removes the tenant from its old home, once all of its processes know that the tenant has left.
func (v *mover) finish(ctx context.Context) error {
	select {
	case <-time.After(time.Until(v.opened.Add(knownWithin))):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := v.locking(ctx, func(q *sql.Queries, tx pgx.Tx) error {
		for _, table := range left {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE tenant_id = $1", v.Tenant); err != nil {
				return err
			}
		}
		if err := all(ctx, v.Tenant, q.DeleteMovedEndpoints, q.CancelMovedJobs, q.CloseMovedTenant); err != nil {
			return err
		}
		if err := q.FinishMove(ctx, v.Keep, v.Tenant); err != nil {
			return err
		}
		return q.BumpKeysRevision(ctx)
	}); err != nil {
		return err
	}
	return v.unfence(ctx)
}

// RollBack ends a move that is not finished: the tenant stays in its old home, and what was copied is deleted. What
// this home knows of the move goes last, so that nothing is left behind unseen.
func RollBack(ctx context.Context, m Move) error {
	v, err := open(ctx, m)
	if err != nil {
		return err
	}
	defer v.close(ctx)
	here, there, err := v.state(ctx)
	left := false
	if err == nil && v.to == nil {
		left, err = v.old.HasLeft(ctx, v.Tenant)
	}
	switch {
	case err != nil:
		return db.Translate(err)
	case there == "done" || here == "done" || left:
		return errDone
	case here == "" && there == "":
		return fault.ErrNotFound
	}
	if err := v.locking(ctx, func(q *sql.Queries, _ pgx.Tx) error {
		if err := all(ctx, v.Tenant, q.OpenMovingTenant, q.ReleaseMoveLanes, q.ReopenMove); err != nil {
			return err
		}
		return errors.Join(q.BumpKeysRevision(ctx), q.NotifyWake(ctx, "all"))
	}); err != nil {
		return db.Translate(err)
	}
	steps := []func(context.Context) error{v.unfence, v.unsubscribe, v.unpublish, v.forget}
	if v.to == nil {
		steps = []func(context.Context) error{v.unfence, v.unpublish}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return db.Translate(err)
		}
	}
	if v.to != nil {
		if err := v.new.DeleteMove(ctx, v.Tenant); err != nil {
			return db.Translate(err)
		}
	}
	return db.Translate(all(ctx, v.Tenant, v.old.DeleteMoveMark, v.old.DeleteMove))
}
