// Package dbtest gives every test a PostgreSQL database of its own, on one server for the whole test run.
//
// The server is a private cluster (package embedded) that the first test process starts and the others find. It
// belongs to a keeper, a detached process that is the test binary again, and goes two minutes after the last test
// process has ended. A package takes part with
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
//
// and asks for databases with Clone. The schema is migrated once per fingerprint into a template, and each test gets a
// copy in about 30 ms.
//
//	POSTHORN_TEST_DATABASE_URL  a server to use instead; its role needs CREATEDB and CREATEROLE
//	POSTHORN_TEST_FSYNC         "on" for a server that waits for the disk; the tests' own need not outlive a power cut
//	POSTHORN_TEST_LINGER        how long the server outlives the last test process, default 2m
package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db/embedded"
)

const (
	urlVariable    = "POSTHORN_TEST_DATABASE_URL"
	fsyncVariable  = "POSTHORN_TEST_FSYNC"
	lingerVariable = "POSTHORN_TEST_LINGER"
	keeperVariable = "POSTHORN_TEST_KEEPER" // set in the keeper alone: its folder
)

// Prefixes of the databases' names. Databases with these prefixes can be dropped when no test runs.
const (
	templatePrefix = "posthorn_template_"
	clonePrefix    = "posthorn_test_"
)

// patience bounds each step of creating a database. A machine can be busy, and the first run can fetch PostgreSQL.
const patience = 3 * time.Minute

var mainCalled atomic.Bool

// Main runs a package's tests, or this process's part as the keeper of the server. It returns the exit code.
func Main(m *testing.M) int {
	if embedded.ChildMain() {
		return 0
	}
	if dir := os.Getenv(keeperVariable); dir != "" {
		if err := keep(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	mainCalled.Store(true)
	code := m.Run()
	if err := doomed.drop(0); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest: ", err)
		return max(code, 1)
	}
	return code
}

// server is the server for the test databases: how to connect to it, and the owner of new databases.
type server struct {
	Admin string // URL of a maintenance database, for a role that can create databases
	App   string // URL of any database, for the role that the tests work as
	Owner string // that role
}

var (
	theServer  = sync.OnceValues(func() (server, error) { return serverOf("") })
	theLogical = sync.OnceValues(func() (server, error) { return serverOf(logical) })
)

// logical is the suffix of the keeper's folder of the server with logical replication.
const logical = "-logical"

// serverOf finds or starts the server of a kind.
func serverOf(kind string) (server, error) {
	if given := os.Getenv(urlVariable); given != "" {
		u, err := url.Parse(given)
		if err != nil || u.User.Username() == "" || u.Scheme == "" {
			return server{}, fmt.Errorf("%s must be a URL with a user, such as postgres://user:password@host:5432/postgres", urlVariable)
		}
		return server{Admin: given, App: given, Owner: u.User.Username()}, nil
	}
	if !mainCalled.Load() {
		return server{}, fmt.Errorf("the package needs func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }")
	}
	return findServer(kind)
}

// Server returns the URL of the shared server's maintenance database, for a role that can create databases. Most tests
// use Clone. Server is for tests that examine the server itself.
func Server(t testing.TB) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatal("dbtest: ", err)
	}
	return s.Admin
}

// Fingerprint names the content of a folder of migrations, so that each content has its own template.
func Fingerprint(migrations fs.FS) string {
	hash := sha256.New()
	err := fs.WalkDir(migrations, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrations, path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		panic("dbtest: reading migrations: " + err.Error()) // embedded files are always readable
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Clone creates a database for one test and returns its URL, for a role that owns it and is no superuser. The database
// is a copy of the template of this fingerprint, which migrate fills once per server; migrate must close its
// connections. Without migrate the database is empty. Roles belong to the server, not to a database, so migrations must
// tolerate existing roles. Settings of the database itself (ALTER DATABASE) are not copied. The database is dropped
// soon after the test.
func Clone(t testing.TB, fingerprint string, migrate func(ctx context.Context, url string) error) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatal("dbtest: ", err)
	}
	name := s.clone(t, fingerprint, migrate)
	return s.database(name)
}

// CloneLogical is Clone on a server of its own with wal_level = logical: the creation of a slot waits for all
// transactions of its server. admin is the URL for a superuser.
func CloneLogical(t testing.TB, fingerprint string, migrate func(ctx context.Context, url string) error) (url, admin string) {
	t.Helper()
	s, err := theLogical()
	if err != nil {
		t.Fatal("dbtest: ", err)
	}
	name := s.clone(t, fingerprint, migrate)
	admins := server{App: s.Admin}
	t.Cleanup(func() {
		if err := endReplication(admins.database(name)); err != nil {
			t.Error("dbtest: ", err)
		}
	})
	return s.database(name), admins.database(name)
}

// endReplication drops the subscriptions and slots of a database: they would keep it.
func endReplication(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())")
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, fmt.Sprintf("ALTER SUBSCRIPTION %[1]s DISABLE; ALTER SUBSCRIPTION %[1]s SET (slot_name = NONE); DROP SUBSCRIPTION %[1]s", pgx.Identifier{name}.Sanitize())); err != nil {
			return err
		}
	}
	for range 200 {
		_, err = conn.Exec(ctx, `SELECT CASE WHEN active_pid IS NOT NULL THEN pg_terminate_backend(active_pid) END, pg_drop_replication_slot(slot_name)
			FROM pg_replication_slots WHERE database = current_database()`)
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func (s server) clone(t testing.TB, fingerprint string, migrate func(ctx context.Context, url string) error) string {
	t.Helper()
	template := "template0"
	if migrate != nil {
		own, err := s.template(fingerprint, migrate)
		if err != nil {
			t.Fatal("dbtest: migrating the template: ", err)
		}
		template = own
	} else if os.Getenv(urlVariable) == "" {
		template = "template1" // embedded made it fit for the application's role
	}
	name := fmt.Sprintf("%s%d_%d", clonePrefix, os.Getpid(), clones.Add(1))
	t.Cleanup(func() {
		if err := doomed.add(s, name, dropAt-1); err != nil {
			t.Error("dbtest: ", err)
		}
	})
	if err := s.execute(
		fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", name), // of a killed process with the same number
		s.create(name, template),
	); err != nil {
		t.Fatal("dbtest: ", err)
	}
	return name
}

var clones atomic.Int64

func (s server) create(name, template string) string {
	return fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE %s", name, pgx.Identifier{s.Owner}.Sanitize(), template)
}

// database is the URL of a database for the tests' role.
func (s server) database(name string) string {
	u, err := url.Parse(s.App)
	if err != nil {
		panic("dbtest: " + err.Error()) // theServer has parsed it
	}
	u.Path = "/" + name
	return u.String()
}

func (s server) execute(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		_, err := conn.Exec(ctx, statement)
		for until := time.Now().Add(10 * time.Second); isVacuumed(err) && time.Now().Before(until); {
			time.Sleep(50 * time.Millisecond)
			_, err = conn.Exec(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// isVacuumed reports whether a database was possibly not dropped because the server is vacuuming it: a role that is no
// superuser can't end that, and it ends soon.
func isVacuumed(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42501"
}

// templates holds a function for each fingerprint, which creates the template once in this process.
var templates sync.Map

func (s server) template(fingerprint string, migrate func(context.Context, string) error) (string, error) {
	sum := sha256.Sum256([]byte(s.Owner + "\n" + fingerprint)) // only its owner can copy a template
	name := templatePrefix + hex.EncodeToString(sum[:8])
	once, _ := templates.LoadOrStore(s.App+name, sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return s.makeTemplate(ctx, name, migrate)
	}))
	return name, once.(func() error)()
}

// makeTemplate migrates a database under another name and renames it when it is complete. One process does it at a
// time, whatever the fingerprint, since migrations also create roles.
func (s server) makeTemplate(ctx context.Context, name string, migrate func(context.Context, string) error) error {
	const lockNumber = 7_467_648_667 // any number that no other lock uses
	conn, err := pgx.Connect(ctx, s.Admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockNumber); err != nil {
		return err
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil || exists {
		return err
	}
	unfinished := name + "_unfinished"
	origin := "template0"
	if strings.Contains(s.Admin, embedded.AdminRole) {
		origin = "template1"
	}
	for _, statement := range []string{
		fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", unfinished),
		s.create(unfinished, origin),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if err := migrate(ctx, s.database(unfinished)); err != nil {
		return err
	}
	// No new connection is allowed: a session would prevent copies.
	for _, statement := range []string{
		fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS false", unfinished),
		fmt.Sprintf("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '%s' AND backend_type = 'client backend'", unfinished),
		fmt.Sprintf("ALTER DATABASE %s RENAME TO %s", unfinished, name),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
