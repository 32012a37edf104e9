package dbtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/tools/need"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// childVariable is set in a test process that another test starts; the URL that it gets goes to the file named.
const childVariable = "POSTHORN_DBTEST_CHILD"

func TestChild(t *testing.T) {
	file := os.Getenv(childVariable)
	if file == "" {
		return // it runs in the processes that other tests start
	}
	u := Clone(t, "child", migration("CREATE TABLE kept (n int)"))
	ask(t, u, "SELECT count(*)::text FROM kept")
	if err := os.WriteFile(file, []byte(u), 0o600); err != nil {
		t.Fatal(err)
	}
}

// child runs TestChild in a process of its own and returns the URL that it got.
func child(t *testing.T, environment ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(append(os.Environ(), environment...), childVariable+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the child process: %v\n%s", err, out)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func migration(statements ...string) func(context.Context, string) error {
	return func(ctx context.Context, u string) error {
		conn, err := pgx.Connect(ctx, u)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		for _, s := range statements {
			if _, err := conn.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

func ask(t *testing.T, u, query string) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also used in clean-ups
	conn, err := pgx.Connect(ctx, u)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var text string
	if err := conn.QueryRow(ctx, query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

func TestEveryTestGetsItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	var migrated atomic.Int32
	migrate := func(ctx context.Context, u string) error {
		migrated.Add(1)
		return migration("CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (1)")(ctx, u)
	}
	fingerprint := t.Name() + time.Now().String()
	var all sync.WaitGroup
	var urls [8]string
	for i := range urls {
		all.Go(func() { urls[i] = Clone(t, fingerprint, migrate) })
	}
	all.Wait()
	for i, u := range urls {
		if err := migration("INSERT INTO kept VALUES (2)")(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, u, "SELECT sum(n)::text FROM kept"); got != "3" {
			t.Errorf("database %d sums to %s: it is not its test's own", i, got)
		}
	}
	if n := migrated.Load(); n != 1 {
		t.Errorf("migrated %d times", n)
	}
}

func TestDatabasesOfEndedTestsGoTogether(t *testing.T) {
	t.Parallel()
	s, err := theServer()
	if err != nil {
		t.Fatal(err)
	}
	var ended doomedDatabases
	for i, want := range []string{"1", "2", "0"} {
		name := fmt.Sprintf("%sended_%d_%d", clonePrefix, os.Getpid(), i)
		if err := s.execute(s.create(name, "template0")); err != nil {
			t.Fatal(err)
		}
		// Even when the test forgets a connection.
		if _, err := pgx.Connect(t.Context(), s.database(name)); err != nil {
			t.Fatal(err)
		}
		if err := ended.add(s, name, 2); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, s.Admin, fmt.Sprintf("SELECT count(*)::text FROM pg_database WHERE starts_with(datname, '%sended_%d_')", clonePrefix, os.Getpid())); got != want {
			t.Errorf("after %d tests %s databases are there, want %s", i+1, got, want)
		}
	}
	u := ""
	t.Run("inner", func(t *testing.T) { u = Clone(t, "", nil) })
	doomed.mu.Lock()
	defer doomed.mu.Unlock()
	if !slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(doomed.names))...), func(name string) bool { return s.database(name) == u }) {
		t.Error("the database of an ended test does not wait to be dropped")
	}
}

func TestTestsWorkAsAnOwnerWithoutSuperpowers(t *testing.T) {
	t.Parallel()
	u := Clone(t, "", nil)
	if got := ask(t, u, "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user"); got != "false" {
		t.Error("the tests' role is a superuser: row-level security would not hold")
	}
	if err := migration("CREATE TABLE public.t (n int)", "CREATE SCHEMA s")(t.Context(), u); err != nil {
		t.Error(err)
	}
	if os.Getenv(urlVariable) == "" && (ask(t, u, "SHOW fsync") == "on") != waitsForDisk() {
		t.Error("fsync is not as it was asked for")
	}
}

func TestFailedMigrationIsReported(t *testing.T) {
	t.Parallel()
	s, err := theServer()
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken migration")
	_, err = s.template(t.Name(), func(context.Context, string) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestProcessesShareOneServer(t *testing.T) {
	t.Parallel()
	mine, err := url.Parse(Clone(t, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := url.Parse(child(t))
	if err != nil {
		t.Fatal(err)
	}
	if mine.RawQuery != theirs.RawQuery || mine.Host != theirs.Host {
		t.Errorf("two servers: %s and %s", mine, theirs)
	}
}

func TestServerEndsAfterTheLastTestProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(urlVariable) != "" {
		need.Missing(t, "a server of the tests' own", "The environment gives another.")
	}
	tmp := t.TempDir()
	for d := tmp; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	environment := []string{"TMPDIR=" + tmp, lingerVariable + "=1ms"}
	for range 2 { // the second process starts while the first server stops
		u := child(t, environment...)
		if !strings.Contains(u, url.QueryEscape(tmp)) && !strings.Contains(u, ".posthorn-") {
			t.Fatalf("the child used the server %s", u)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(tmp, "posthorn-test-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("folders: %v, %v", dirs, err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		lock, err := tryLock(filepath.Join(dirs[0], keeperFile), exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if lock != nil {
			_ = lock.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the keeper is still there")
		}
		time.Sleep(poll)
	}
	if _, err := os.Stat(filepath.Join(dirs[0], "data", "postgres", "data")); !os.IsNotExist(err) {
		t.Errorf("the cluster is still there: %v", err)
	}
}

func TestGivenServerIsUsed(t *testing.T) {
	t.Parallel()
	if os.Getenv(urlVariable) != "" {
		return // the other tests show it
	}
	admin := Server(t)
	role := fmt.Sprintf("given_%d", os.Getpid())
	if err := migration("CREATE ROLE "+role+" LOGIN CREATEDB CREATEROLE")(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		own := "SELECT coalesce(string_agg(format('DROP DATABASE %I WITH (FORCE)', datname), E'\n'), '') FROM pg_database WHERE datdba = '" + role + "'::regrole"
		var drops []string
		if text := ask(t, admin, own); text != "" {
			drops = strings.Split(text, "\n")
		}
		if err := migration(append(drops, "DROP ROLE "+role)...)(context.Background(), admin); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	got := child(t, urlVariable+"="+u.String())
	if !strings.Contains(got, "//"+role+"@") {
		t.Errorf("the child used %s", got)
	}
}

func TestFingerprintFollowsNamesAndContents(t *testing.T) {
	t.Parallel()
	one := fstest.MapFS{"a.sql": {Data: []byte("x")}, "b.sql": {Data: []byte("y")}}
	for name, other := range map[string]fstest.MapFS{
		"content": {"a.sql": {Data: []byte("x")}, "b.sql": {Data: []byte("z")}},
		"name":    {"a.sql": {Data: []byte("x")}, "c.sql": {Data: []byte("y")}},
		"more":    {"a.sql": {Data: []byte("x")}, "b.sql": {Data: []byte("y")}, "c.sql": {}},
	} {
		if Fingerprint(one) == Fingerprint(other) {
			t.Errorf("another %s gives the same fingerprint", name)
		}
	}
	if same := (fstest.MapFS{"b.sql": {Data: []byte("y")}, "a.sql": {Data: []byte("x")}}); Fingerprint(one) != Fingerprint(same) {
		t.Error("the same folder gives two fingerprints")
	}
}
