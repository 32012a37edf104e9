package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/fault"
)

// initialise creates the cluster in a temporary folder beside its own and renames it when it is complete, so that a
// crash leaves nothing that a later start would mistake for a cluster.
func (l *layout) initialise(ctx context.Context, b binaries) error {
	leftovers, err := filepath.Glob(filepath.Join(l.base, ".data-*"))
	if err != nil {
		return err
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return dirFault(l.home, "can't be cleaned of an unfinished start", err)
		}
	}
	fresh, err := os.MkdirTemp(l.base, ".data-*")
	if err != nil {
		return dirFault(l.home, "can't be written", err)
	}
	if l.account.drop {
		if err := os.Lchown(fresh, int(l.account.uid), int(l.account.gid)); err != nil {
			return dirFault(l.home, "can't be given to "+l.account.name, err)
		}
	}
	cmd := l.command(ctx, b.program("initdb"),
		"--pgdata="+fresh,
		"--username="+AdminRole,
		// Only root and the server's own account can open the socket's folder, and these own the data anyway. TCP stays
		// closed, even when a person starts this cluster by hand with other settings.
		"--auth-local=trust", "--auth-host=reject",
		"--encoding=UTF8",
		// The C locale sorts alike on every system and version: an upgraded libc can't corrupt an index.
		"--locale=C",
		"--data-checksums",
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(fresh)
		return initFault(l.home, string(out), err)
	}
	if err := os.Rename(fresh, l.data); err != nil {
		return dirFault(l.home, "can't be written", err)
	}
	return syncFolder(l.base)
}

func initFault(home, out string, cause error) error {
	if strings.Contains(out, "could not look up effective user ID") {
		return &fault.Error{
			Kind:   fault.Invalid,
			Code:   "postgres_account_missing",
			Cause:  errors.New(lastLine(out)),
			Detail: "PostgreSQL needs its user in /etc/passwd, and this user id is not there. Add an entry, run Posthorn as another user, or set POSTHORN_DATABASE_URL.",
		}
	}
	return dirFault(home, "can't hold a new cluster: initdb failed", fmt.Errorf("%w: %s", cause, strings.TrimSpace(out)))
}

// syncFolder makes a rename in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

// dial opens one connection.
func (l *layout) dial(ctx context.Context, role, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(l.url(role, database))
	if err != nil {
		return nil, err
	}
	cfg.ConnectTimeout = 5 * time.Second
	cfg.RuntimeParams["application_name"] = "posthorn set-up"
	return pgx.ConnectConfig(ctx, cfg)
}

// answers reports whether the server lets a role into a database. An established connection has passed start-up,
// recovery and authentication.
func (l *layout) answers(ctx context.Context, role, database string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := l.dial(ctx, role, database)
	if err != nil {
		return false
	}
	return conn.Close(ctx) == nil
}

// grantAccess creates the application role and its database if they are missing. It runs at every start of an owner,
// since a crash can come between any two of its statements.
//
// Up to version 15 CREATEROLE alone lets the role administer what it creates. From 16 on a new role is granted to its
// creator with ADMIN but without SET; createrole_self_grant adds SET, so that SET ROLE works immediately and
// everywhere.
func (l *layout) grantAccess(ctx context.Context, major int) error {
	conn, err := l.dial(ctx, AdminRole, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var role, database bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1), EXISTS (SELECT FROM pg_database WHERE datname = $2)`,
		AppRole, Database).Scan(&role, &database)
	if err != nil {
		return err
	}
	var statements []string
	if !role {
		statements = append(statements, "CREATE ROLE "+AppRole+" LOGIN NOSUPERUSER NOINHERIT CREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS")
	}
	if major >= 16 {
		statements = append(statements, "ALTER ROLE "+AppRole+" SET createrole_self_grant = 'set'")
	}
	if err := execute(ctx, conn, statements...); err != nil || database {
		return err
	}
	// The schema public belongs to pg_database_owner (to the superuser before 15), and a role that inherits nothing has
	// no rights there even in its own database. The grant is in the template, so every database of this cluster gets
	// it.
	template, err := l.dial(ctx, AdminRole, "template1")
	if err != nil {
		return err
	}
	defer func() { _ = template.Close(context.WithoutCancel(ctx)) }()
	return execute(ctx, template,
		"ALTER SCHEMA public OWNER TO "+AppRole,
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"CREATE DATABASE "+Database+" OWNER "+AppRole,
	)
}

func execute(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("setting up the application's role and database: %s: %w", statement, err)
		}
	}
	return nil
}
