// Package db opens Posthorn's database: connections, roles, transactions, the audit log, notifications, migrations, and
// the translation of the driver's errors into the project's own. The statements are in db/sql, which sqlc generates
// from queries/; what several of them do together is in the packages above this one: ledger, queue, accounts,
// endpoints, deliveries, listen and maintenance.
//
// Nothing runs outside a role. Tenant, Ingest, Worker, Console and Account each open a transaction, set their role, and
// pass a *sql.Queries that is bound to it; the connection carries nothing over to the next transaction.
package db

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// The roles that a transaction can take; see the first migration, and the fifth for posthorn_account.
const (
	roleTenant  = "posthorn_tenant"
	RoleIngest  = "posthorn_ingest"
	RoleWorker  = "posthorn_worker"
	roleConsole = "posthorn_console"
	roleAccount = "posthorn_account"
)

// Tx is a transaction that is bound to a role. Surfaces pass it on to the packages of db; its statements are called in
// db and worker only (tools/house).
type Tx = sql.Queries

// DB is a pool of connections to one Posthorn database.
type DB struct {
	pool   *pgxpool.Pool
	url    string
	pooled bool
}

// Options bounds a pool.
type Options struct {
	MaxConns int32  // default 8
	Name     string // application_name, to tell pools apart in pg_stat_activity
	// Pooled says that the connections go through a pooler in transaction mode: nothing of a connection lasts longer
	// than its transaction.
	Pooled bool
}

// Open connects to a database and checks that it responds before the context ends.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errURL
	}
	cfg.MaxConns = 8
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.PingTimeout, cfg.PrepareConn = pingWithin, isCurrent
	prepareConfig(cfg.ConnConfig, url, o)
	cfg.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		registerTypes(c.TypeMap(), buffersOf(c.PgConn()))
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, Translate(err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, Translate(err)
	}
	return &DB{pool: pool, url: url, pooled: o.Pooled}, nil
}

// pingWithin is how long an idle connection has to show that it works before another is tried.
const pingWithin = 2 * time.Second

// Close waits for borrowed connections and closes the pool.
func (d *DB) Close() { d.pool.Close() }

// Pool is the underlying pool, as the database's owner: for batches that set a role of their own, and for what no role
// can do. Only packages under db/ use it.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// Tenant runs fn in a transaction that sees the rows of one tenant and no others.
func (d *DB) Tenant(ctx context.Context, tenant id.UUID, fn func(*sql.Queries) error) error {
	return d.in(ctx, roleTenant, tenant.String(), fn)
}

// Ingest runs fn as the role of the group commit and of requests whose tenant is not known yet.
func (d *DB) Ingest(ctx context.Context, fn func(*sql.Queries) error) error {
	return d.in(ctx, RoleIngest, "", fn)
}

// Worker runs fn as the role of lanes, recorder and jobs, which sees all tenants.
func (d *DB) Worker(ctx context.Context, fn func(*sql.Queries) error) error {
	return d.in(ctx, RoleWorker, "", fn)
}

// Console runs fn as the role of operators and of the command line, which sees all tenants.
func (d *DB) Console(ctx context.Context, fn func(*sql.Queries) error) error {
	return d.in(ctx, roleConsole, "", fn)
}

// setRole takes a role and names the tenant for the rest of the transaction. It also bounds the transaction's idle
// time. A process that freezes inside a transaction must not keep its locks: a worker's share lock on its own row would
// keep others from declaring it dead while it is frozen. The time is well within the fence's (worker/membership.go).
// And it compiles no statement: where a server's statistics are missing, the cost of a short one is guessed so high
// that it is compiled for seconds.
const setRole = `SELECT set_config('role', $1, true), set_config('posthorn.tenant', $2, true),
	set_config('idle_in_transaction_session_timeout', '10s', true), set_config('jit', 'off', true)`

// SetWriter is setRole for a transaction that stores events: it has its number before it checks a version of the routes
// (docs/adr/0026-feeds.md).
const SetWriter = setRole + `, pg_current_xact_id()`

// ConsoleThenTenant runs first as Console and then fn as the tenant that first returned, in one transaction.
func (d *DB) ConsoleThenTenant(ctx context.Context, first func(*sql.Queries) (id.UUID, error), fn func(*sql.Queries) error) error {
	return d.onOne(ctx, roleConsole, "", func(conn *pgx.Conn, q *sql.Queries) error {
		tenant, err := first(q)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, setRole, roleTenant, tenant.String()); err != nil {
			return err
		}
		return fn(q)
	})
}

// errUndone ends a transaction whose changes nobody is to see.
var errUndone = errors.New("undone")

// Borrow runs first as Console, fn as a tenant, and last as Console, in one transaction. Without last all of it is
// undone: fn reads what first has written, and nobody else ever does.
func (d *DB) Borrow(ctx context.Context, tenant id.UUID, first, fn, last func(*sql.Queries) error) error {
	err := d.onOne(context.WithValue(ctx, readOnly{}, nil), roleConsole, "", func(conn *pgx.Conn, q *sql.Queries) error {
		if err := first(q); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, setRole, roleTenant, tenant.String()); err != nil {
			return err
		}
		if err := fn(q); err != nil {
			return err
		}
		if last == nil {
			return errUndone
		}
		if _, err := conn.Exec(ctx, setRole, roleConsole, ""); err != nil {
			return err
		}
		return last(q)
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// ConsoleThenIngest runs first as Console and then, if it returned true, fn as Ingest, in one transaction. fn queues
// what remains to be done in a batch.
func (d *DB) ConsoleThenIngest(ctx context.Context, first func(*sql.Queries) (bool, error), fn func(*sql.Queries, *pgx.Batch) error) error {
	return d.onOne(ctx, roleConsole, "", func(conn *pgx.Conn, q *sql.Queries) error {
		if again, err := first(q); err != nil || !again {
			return err
		}
		if _, err := conn.Exec(ctx, setRole, RoleIngest, ""); err != nil {
			return err
		}
		b := &pgx.Batch{}
		if err := fn(q, b); err != nil {
			return err
		}
		return Send(ctx, conn, b)
	})
}

// in runs fn between BEGIN and COMMIT under a role. An error, a panic or a canceled context rolls back.
func (d *DB) in(ctx context.Context, role, tenant string, fn func(*sql.Queries) error) error {
	return d.onOne(ctx, role, tenant, func(_ *pgx.Conn, q *sql.Queries) error { return fn(q) })
}

// onOne is in, with access to the transaction's connection.
func (d *DB) onOne(ctx context.Context, role, tenant string, fn func(*pgx.Conn, *sql.Queries) error) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return Translate(err)
	}
	defer conn.Release() // a connection that is still in a transaction is closed, not reused
	begin := &pgx.Batch{}
	word := "begin"
	if ctx.Value(readOnly{}) != nil {
		word = "begin read only"
	}
	d.queueBegin(begin, word, setRole, role, tenant)
	if err := conn.SendBatch(ctx, begin).Close(); err != nil {
		return Translate(err)
	}
	if err := fn(conn.Conn(), sql.New(namingRows{conn})); err != nil {
		if _, rollback := conn.Exec(context.WithoutCancel(ctx), "rollback"); rollback != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		return Translate(err)
	}
	if _, err := conn.Exec(ctx, "commit"); err != nil {
		return Translate(err)
	}
	return nil
}

type readOnly struct{}

// ReadOnly returns a context under which transactions change nothing: PostgreSQL rejects every statement that would.
func ReadOnly(ctx context.Context) context.Context { return context.WithValue(ctx, readOnly{}, true) }

// queueBegin begins a transaction by a word and takes a role in it: set is setRole or SetWriter.
func (d *DB) queueBegin(b *pgx.Batch, word, set string, args ...any) {
	b.Queue(word)
	b.Queue(set, args...)
	if d.pooled {
		b.Queue("SELECT set_config('search_path', $1, true)", Schema)
	}
}

// Begin is queueBegin for a batch that continues with other statements, which travel with it. Behind a pooler this is
// impossible: the driver has a batch's statements described before it runs the first, and they name tables that only
// the transaction has on its path.
func (d *DB) Begin(ctx context.Context, conn *pgx.Conn, set string, args ...any) (*pgx.Batch, error) {
	b := &pgx.Batch{}
	d.queueBegin(b, "begin", set, args...)
	if !d.pooled {
		return b, nil
	}
	return &pgx.Batch{}, Send(ctx, conn, b)
}

// Pipeline sends statements that store events, under a role, as one round trip and one transaction.
func (d *DB) Pipeline(ctx context.Context, conn *pgx.Conn, role string, queue func(*pgx.Batch)) error {
	b, err := d.Begin(ctx, conn, SetWriter, role, "")
	if err != nil {
		return err
	}
	queue(b)
	b.Queue("commit")
	err = Send(ctx, conn, b)
	if err != nil && conn.PgConn().TxStatus() != 'I' && !conn.IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
	}
	return err
}

// ServerTime is the database's clock, which decides when rows are due.
func (d *DB) ServerTime(ctx context.Context) (at time.Time, err error) {
	err = d.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
	return at, Translate(err)
}

// NewID makes an id of the current time on this machine's clock. Ids of one process are strictly increasing.
func NewID() id.UUID { return id.UUID(uuid.Must(uuid.NewV7())) }

// NewIDWithin makes the id of the n-th thing that is made together with another: of the same moment, and beside it.
func NewIDWithin(of id.UUID, n int) id.UUID {
	random := uuid.New()
	return of.Within(n, [6]byte(random[10:]))
}

func init() { uuid.EnableRandPool() }

// Identifier quotes an identifier for the few statements that take no parameters (NOTIFY, VACUUM).
func Identifier(names ...string) string { return pgx.Identifier(names).Sanitize() }

// Account runs fn as the role for people and operators before they enter a tenant, and for their accounts.
func (d *DB) Account(ctx context.Context, fn func(*sql.Queries) error) error {
	return d.in(ctx, roleAccount, "", fn)
}

// Read runs fn in a transaction of a role, such as d.Ingest, and returns what fn read.
func Read[T any](
	ctx context.Context,
	role func(context.Context, func(*sql.Queries) error) error,
	fn func(*sql.Queries) (T, error),
) (out T, err error) {
	err = role(ctx, func(q *sql.Queries) (err error) {
		out, err = fn(q)
		return err
	})
	return out, err
}
