// Package db is Posthorn's only way to PostgreSQL: the queries of queries/ as Go functions (generated), the transactions
// that need several statements (a file each), and the seam where the driver's errors become the project's own.
//
// Nothing runs outside a role. Tenant, Ingest, Worker and Console each open a transaction, take their role, and hand the
// closure a *Queries that is bound to it; the connection carries nothing over to the next transaction.
package db

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// The roles that a transaction may take; see the first migration, and for posthorn_account the fifth.
const (
	roleTenant  = "posthorn_tenant"
	roleIngest  = "posthorn_ingest"
	roleWorker  = "posthorn_worker"
	roleConsole = "posthorn_console"
	roleAccount = "posthorn_account"
)

// DB is a pool of connections to one Posthorn database.
type DB struct {
	pool *pgxpool.Pool
	url  string
}

// Options bounds a pool.
type Options struct {
	MaxConns int32  // default 8
	Name     string // application_name, to tell pools apart in pg_stat_activity
}

// Open connects to a database and checks that it answers within the context's time.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The driver's message may quote the URL and with it the password.
		return nil, fault.New(fault.Invalid, "database_url_invalid",
			"POSTHORN_DATABASE_URL is not a PostgreSQL URL. Write postgres://user:password@host:5432/database.")
	}
	cfg.MaxConns = 8
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	prepareConfig(cfg.ConnConfig, o.Name)
	cfg.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		registerTypes(c.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, translate(err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, translate(err)
	}
	return &DB{pool: pool, url: url}, nil
}

// prepareConfig names the connection and puts the schema on its path.
func prepareConfig(cfg *pgx.ConnConfig, name string) {
	if cfg.RuntimeParams["search_path"] == "" {
		cfg.RuntimeParams["search_path"] = schema
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = strings.TrimSpace("posthorn " + name)
	}
}

// Close waits for borrowed connections and closes the pool.
func (d *DB) Close() { d.pool.Close() }

// Tenant runs fn in a transaction that sees the rows of one tenant and no others.
func (d *DB) Tenant(ctx context.Context, tenant id.UUID, fn func(*Queries) error) error {
	return d.in(ctx, roleTenant, tenant.String(), fn)
}

// Ingest runs fn as the role of the group commit and of what precedes a tenant.
func (d *DB) Ingest(ctx context.Context, fn func(*Queries) error) error {
	return d.in(ctx, roleIngest, "", fn)
}

// Worker runs fn as the role of lanes, recorder and jobs, which sees all tenants.
func (d *DB) Worker(ctx context.Context, fn func(*Queries) error) error {
	return d.in(ctx, roleWorker, "", fn)
}

// Console runs fn as the role of operators and of the command line, which sees all tenants.
func (d *DB) Console(ctx context.Context, fn func(*Queries) error) error {
	return d.in(ctx, roleConsole, "", fn)
}

// setRole takes a role and names the tenant for the rest of the transaction. A process that freezes in the middle of one
// must not keep its locks: a worker's share lock on its own row would keep the others from declaring it dead, for as long
// as it is frozen. The time is well within the fence's (worker/membership.go).
const setRole = `SELECT set_config('role', $1, true), set_config('posthorn.tenant', $2, true),
	set_config('idle_in_transaction_session_timeout', '10s', true)`

// in runs fn between BEGIN and COMMIT under a role. An error, a panic or a canceled context rolls back.
func (d *DB) in(ctx context.Context, role, tenant string, fn func(*Queries) error) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return translate(err)
	}
	defer conn.Release() // a connection that is still in a transaction is closed, not reused
	begin := &pgx.Batch{}
	if ctx.Value(readOnly{}) != nil {
		begin.Queue("begin read only")
	} else {
		begin.Queue("begin")
	}
	begin.Queue(setRole, role, tenant)
	if err := conn.SendBatch(ctx, begin).Close(); err != nil {
		return translate(err)
	}
	if err := fn(New(conn)); err != nil {
		if _, rollback := conn.Exec(context.WithoutCancel(ctx), "rollback"); rollback != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		return translate(err)
	}
	if _, err := conn.Exec(ctx, "commit"); err != nil {
		return translate(err)
	}
	return nil
}

type readOnly struct{}

// ReadOnly is a context under which transactions change nothing: PostgreSQL refuses every statement that would.
func ReadOnly(ctx context.Context) context.Context { return context.WithValue(ctx, readOnly{}, true) }

// pipelineOn sends statements under a role as one round trip and one transaction.
func pipelineOn(ctx context.Context, conn *pgx.Conn, role string, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(setRole, role, "")
	queue(b)
	b.Queue("commit")
	err := conn.SendBatch(ctx, b).Close()
	if err != nil && conn.PgConn().TxStatus() != 'I' && !conn.IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
	}
	return err
}

// ServerTime is the database's clock, which decides what is due.
func (d *DB) ServerTime(ctx context.Context) (at time.Time, err error) {
	err = d.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
	return at, translate(err)
}

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error { return translate(d.pool.Ping(ctx)) }

// NewID makes an id of this moment on this machine's clock. Ids of one process are strictly increasing.
func NewID() id.UUID { return id.UUID(uuid.Must(uuid.NewV7())) }

func init() { uuid.EnableRandPool() }

// identifier quotes an identifier for the few statements that take no parameters (NOTIFY, VACUUM).
func identifier(names ...string) string { return pgx.Identifier(names).Sanitize() }
