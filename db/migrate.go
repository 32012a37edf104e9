package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"posthorn/db/migrations"
	"posthorn/domain/fault"
)

// Schema holds every table, so that a product can share its database with Posthorn.
const Schema = "posthorn"

// MigrationState is one migration and whether the database has it.
type MigrationState struct {
	Version int64
	Name    string
	Applied bool
}

// lockWithin bounds how long a migration waits for a table. Every later statement on that table waits behind it, so a
// running version pauses no longer than this. If the table is not free by then, the migration is tried again, lockTries
// times.
const (
	lockWithin = "2s"
	lockTries  = 60
	lockRest   = time.Second
)

// MigrateUp brings a database to the newest schema, with the functions of this version, and logs each migration that it
// applied. Several processes can call it at once: one works, the others wait. It can be called while an older version
// serves: that version never waits for long. If a table stays locked, MigrateUp gives up with an error that names the
// table.
func MigrateUp(ctx context.Context, url string, log *slog.Logger) error {
	err := migrateUp(ctx, url, log)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == codeRights {
		// Possibly the roles are another installation's on this server, and this one can't grant them to itself.
		if missing, failed := MissingRoles(ctx, url); failed == nil && len(missing) > 0 {
			return RolesFault(missing)
		}
	}
	return err
}

func migrateUp(ctx context.Context, url string, log *slog.Logger) error {
	return migrate(ctx, url, func(p *goose.Provider, conn *sql.DB) error {
		for try := 1; ; try++ {
			applied, err := p.Up(ctx)
			var partial *goose.PartialError
			if errors.As(err, &partial) {
				applied = partial.Applied
			}
			for _, m := range applied {
				log.Info("migration applied", "name", filepath.Base(m.Source.Path), "duration", m.Duration.Round(time.Millisecond).String())
			}
			if err == nil {
				err = replayFunctions(ctx, conn)
			}
			if !isLockTimeout(err) {
				return err
			}
			if try == lockTries {
				return &fault.Error{
					Kind:       fault.Unavailable,
					Code:       "database_busy",
					Cause:      err,
					RetryAfter: 60,
					Detail:     "A table stayed locked by another session, such as a long query or a backup. End that session and run `posthorn migrate up` again. Completed migrations stay.",
				}
			}
			select {
			case <-time.After(lockRest):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// isLockTimeout reports whether a table was not free in time, or a deadlock ended our transaction. Both can be tried
// again.
func isLockTimeout(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "55P03" || e.Code == "40P01")
}

// MigrateDown undoes the newest migration.
func MigrateDown(ctx context.Context, url string) error {
	return migrate(ctx, url, func(p *goose.Provider, conn *sql.DB) error {
		if err := forgetFunctions(ctx, conn); err != nil {
			return err
		}
		_, err := p.Down(ctx)
		return err
	})
}

// MigrateStatus lists all migrations, oldest first. It reads the applied ones at once: readiness asks for them too.
func MigrateStatus(ctx context.Context, url string) (states []MigrationState, err error) {
	err = migrate(ctx, url, func(p *goose.Provider, conn *sql.DB) error {
		if _, err := p.GetDBVersion(ctx); err != nil { // makes the table of a new database
			return err
		}
		store, err := database.NewStore(goose.DialectPostgres, goose.DefaultTablename)
		if err != nil {
			return err
		}
		list, err := store.ListMigrations(ctx, conn)
		if err != nil {
			return err
		}
		applied := map[int64]bool{}
		for _, m := range list {
			applied[m.Version] = true // the row of one that went down is deleted
		}
		for _, s := range p.ListSources() {
			states = append(states, MigrationState{Version: s.Version, Name: s.Path, Applied: applied[s.Version]})
		}
		return nil
	})
	return states, err
}

// Installed reports whether a database has Posthorn's schema, of any version. It changes nothing.
func Installed(ctx context.Context, url string) (installed bool, err error) {
	conn, err := Connect(ctx, url, Options{Name: "installed"})
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, "SELECT to_regclass('posthorn.tenants') IS NOT NULL").Scan(&installed)
	return installed, err
}

func migrate(ctx context.Context, url string, do func(*goose.Provider, *sql.DB) error) error {
	cfg, err := parseURL(url, Options{Name: "migrate"})
	if err != nil {
		return err
	}
	cfg.RuntimeParams["lock_timeout"] = lockWithin
	role, err := migratingRole(ctx, url)
	if err != nil {
		return err
	}
	if role != "" {
		if err := grantAsAdministrator(ctx, url, role, cfg.Database); err != nil {
			return err
		}
		cfg.RuntimeParams["role"] = role
	}
	conn := stdlib.OpenDB(*cfg)
	defer func() { _ = conn.Close() }()
	if err := ensureSchema(ctx, conn); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, fs.FS(migrations.FS),
		goose.WithSessionLocker(locker),
		goose.WithAllowOutofOrder(true)) // migrations only add, and are independent of parallel ones
	if err != nil {
		return err
	}
	if err := do(provider, conn); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// grantAsAdministrator gives the owner the roles that it needs, before the administrator acts as the owner: only a role
// that administers them can grant them.
func grantAsAdministrator(ctx context.Context, admin, owner, database string) error {
	cfg, err := parseURL(admin, Options{Name: "roles"})
	if err != nil {
		return err
	}
	s := &preparing{role: owner, database: database, told: func(string) {}}
	if s.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return err
	}
	defer func() { _ = s.conn.Close(context.WithoutCancel(ctx)) }()
	return s.explain(ctx, s.server(ctx))
}

// migratingRole is the role that an administrator must take, so that new tables belong to the role that Posthorn runs
// as: the owner of the schema, else, for a superuser, of the database. An empty role means the role of the URL. It is
// an error if the schema, or a table of it, belongs to a role that the URL's role can't use.
func migratingRole(ctx context.Context, url string) (role string, err error) {
	conn, err := Connect(ctx, url, Options{Name: "migrate"})
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var superuser, plain, acts bool
	var user, owner, otherOwner string
	err = conn.QueryRow(ctx, `SELECT u.rolsuper, u.rolname, o.rolname, NOT o.rolsuper, coalesce((SELECT x.owner::regrole::text FROM (
			SELECT nspowner AS owner FROM pg_namespace WHERE nspname = $1
			UNION ALL SELECT c.relowner FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')
		) x WHERE NOT pg_has_role(x.owner, 'USAGE') LIMIT 1), ''),
			u.rolname <> o.rolname AND EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AND pg_has_role(o.oid, `+canSet+`)
		FROM pg_roles u, pg_database d JOIN pg_roles o ON o.oid = coalesce((SELECT nspowner FROM pg_namespace WHERE nspname = $1), d.datdba)
		WHERE u.rolname = current_user AND d.datname = current_database()`, Schema).Scan(&superuser, &user, &owner, &plain, &otherOwner, &acts)
	switch {
	case err != nil:
		return "", Translate(err)
	case otherOwner != "":
		return "", &fault.Error{
			Kind: fault.Invalid,
			Code: "database_owner",
			Detail: fmt.Sprintf(
				"The schema posthorn, or a table in it, belongs to the role %[1]s, and the role %[2]s of the database URL can't use it. As a superuser, "+
					"change the owner to %[2]s with the commands in docs/ops/deploy.md (\"A schema that belongs to another role\"), and start again.", otherOwner, user),
		}
	case (superuser || acts) && plain:
		return owner, nil
	}
	return "", nil
}

// ensureSchema creates the schema, which also holds the migrator's own table. Two processes that create it concurrently
// can collide inside PostgreSQL's catalog; the second then finds it created.
func ensureSchema(ctx context.Context, conn *sql.DB) error {
	const exists = "SELECT count(*) FROM pg_namespace WHERE nspname = $1"
	var n int
	if err := conn.QueryRowContext(ctx, exists, Schema).Scan(&n); err != nil {
		return Translate(err)
	}
	if n > 0 {
		return nil
	}
	if _, err := conn.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+Identifier(Schema)); err != nil {
		if again := conn.QueryRowContext(ctx, exists, Schema).Scan(&n); again != nil || n == 0 {
			return &fault.Error{
				Kind:   fault.Invalid,
				Code:   "database_role_too_weak",
				Cause:  err,
				Detail: "The database role cannot create the schema posthorn. Grant it CREATE on the database and CREATEROLE, or let an administrator run `posthorn migrate up`.",
			}
		}
	}
	return nil
}
