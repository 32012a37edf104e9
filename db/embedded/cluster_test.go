package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestFirstStartMakesADatabaseThatTheNextStartFindsAgain(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	first := start(t, cfg)
	if !first.owns() {
		t.Error("the first process does not own the server")
	}
	run(t, first.URL(), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (42)")
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !gone(first.PID()) {
		t.Error("the server outlived Close")
	}
	second := start(t, cfg)
	if got := ask(t, second.URL(), "SELECT n::text FROM kept"); got != "42" {
		t.Errorf("kept row reads %q", got)
	}
	if first.URL() != second.URL() {
		t.Errorf("the URL changed from %s to %s", first.URL(), second.URL())
	}
}

func TestCommitsSurviveAPowerCutBySettingThatNobodyCanOverride(t *testing.T) {
	t.Parallel()
	c := start(t, testConfig(t, testDir(t)))
	run(t, c.AdminURL("postgres"), "ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()")
	for name, want := range map[string]string{
		"fsync":                   "on",
		"synchronous_commit":      "on",
		"full_page_writes":        "on",
		"data_checksums":          "on",
		"listen_addresses":        "",
		"unix_socket_permissions": "0700",
		"TimeZone":                "UTC",
		"jit":                     "off",
		"server_encoding":         "UTF8",
		"log_min_error_statement": "panic",
		"log_error_verbosity":     "terse",
	} {
		if got := ask(t, c.URL(), "SHOW "+name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

func TestTheApplicationRoleCanCreateAndTakeRolesAndNothingElse(t *testing.T) {
	t.Parallel()
	c := start(t, testConfig(t, testDir(t)))
	run(t, c.URL(),
		"CREATE ROLE posthorn_tenant NOLOGIN", "GRANT posthorn_tenant TO CURRENT_USER",
		"BEGIN", "SET LOCAL ROLE posthorn_tenant", "COMMIT",
		"CREATE SCHEMA more", "DROP ROLE posthorn_tenant")
	attributes := ask(t, c.URL(), `SELECT concat_ws(' ', rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolcanlogin)
		FROM pg_roles WHERE rolname = current_user`)
	if attributes != "f f t f f f t" {
		t.Errorf("super, inherit, createrole, createdb, replication, bypassrls, login are %s", attributes)
	}
	_, err := tryAsk(testContext(t), c.URL(), "SELECT pg_read_file('/etc/passwd')")
	var denied *pgconn.PgError
	if !errors.As(err, &denied) || denied.Code != "42501" {
		t.Errorf("reading a file of the machine gave %v, not a refusal", err)
	}
}

func TestSecondProcessAdoptsTheServerAndLeavesItRunning(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	owner := start(t, testConfig(t, dir))
	for _, how := range []string{"start", "attach"} {
		other := spawn(t, how, dir)
		if other.Owned || other.PID != owner.PID() || other.URL != owner.URL() {
			t.Errorf("%s: got %+v beside the server %d at %s", how, other.scene, owner.PID(), owner.URL())
		}
		other.end()
		if got := ask(t, owner.URL(), "SELECT 'here'"); got != "here" {
			t.Errorf("after %s ended, the server answered %q", how, got)
		}
	}
}

func TestAttachStartsAServerUntilClose(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	for range 2 {
		c, err := Attach(testContext(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !c.owns() || ask(t, c.URL(), "SELECT current_database()") != Database {
			t.Error("the attached command has no server of its own")
		}
		pid := c.PID()
		if err := c.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !gone(pid) {
			t.Error("the server outlived the command")
		}
	}
}

func TestOfManySimultaneousStartsOneOwnsAndTheOthersAdopt(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	children := make([]*child, 3)
	var all sync.WaitGroup
	for i := range children {
		all.Go(func() { children[i] = spawn(t, "start", dir) })
	}
	all.Wait()
	owners := 0
	for _, c := range children {
		if c.Owned {
			owners++
		}
		if c.PID != children[0].PID {
			t.Errorf("two servers run: %d and %d", c.PID, children[0].PID)
		}
	}
	if owners != 1 {
		t.Errorf("%d owners", owners)
	}
	for _, c := range children {
		c.end()
	}
	until(t, "all servers gone", func() bool { return gone(children[0].PID) })
}

func TestAdopterTakesOverWhenTheOwnerLeaves(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*child){"cleanly": (*child).end, "by kill -9": (*child).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testDir(t)
			owner := spawn(t, "start", dir)
			adopter := start(t, testConfig(t, dir))
			if adopter.owns() {
				t.Fatal("two owners")
			}
			run(t, adopter.URL(), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (1)")
			leave(owner)
			until(t, "the adopter owns a server", func() bool {
				return adopter.owns() && answer(adopter.URL(), "SELECT count(*)::text FROM kept") == "1"
			})
			if adopter.PID() == owner.PID {
				t.Error("the old server is still there")
			}
		})
	}
}

func answer(url, query string) string {
	text, _ := tryAsk(context.Background(), url, query)
	return text
}

func TestAKilledPosthornStopsItsServerAndTheNextStartIsClean(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	owner := spawn(t, "start", dir)
	run(t, owner.URL, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
	owner.kill()
	// Immediately, while the old server is possibly still stopping.
	next := start(t, testConfig(t, dir))
	if got := ask(t, next.URL(), "SELECT n::text FROM kept"); got != "7" {
		t.Errorf("kept row reads %q", got)
	}
	if next.PID() == owner.PID || !gone(owner.PID) {
		t.Errorf("the orphan %d was not replaced", owner.PID)
	}
}

func TestKillOfPosthornAndServerTogetherIsRecovered(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	owner := spawn(t, "start", dir)
	run(t, owner.URL, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
	if err := signal(owner.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	owner.kill()
	next := start(t, testConfig(t, dir))
	if got := ask(t, next.URL(), "SELECT n::text FROM kept"); got != "7" {
		t.Errorf("kept row reads %q", got)
	}
}

func TestKilledServerIsRestartedAndKeepsEveryCommit(t *testing.T) {
	t.Parallel()
	c := start(t, testConfig(t, testDir(t)))
	run(t, c.URL(), "CREATE TABLE kept (n int)")
	for round := 1; round <= 3; round++ {
		run(t, c.URL(), "INSERT INTO kept VALUES (1)")
		old := c.PID()
		// A session in the middle of a statement is the hard case: it holds the shared memory, and a computing session
		// does not notice that the postmaster has ended.
		statement := []string{"SELECT 'x' FROM pg_sleep(60)", "SELECT count(*)::text FROM generate_series(1, 1e12)"}[round%2]
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			_, _ = tryAsk(context.Background(), c.URL(), statement)
		}()
		until(t, "the long statement runs", func() bool {
			found, _ := tryAsk(context.Background(), c.AdminURL("postgres"), "SELECT count(*)::text FROM pg_stat_activity WHERE query = $1 AND state = 'active'", statement)
			return found == "1"
		})
		if err := signal(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-busy
		until(t, "the database is back", func() bool {
			return answer(c.URL(), "SELECT count(*)::text FROM kept") == strconv.Itoa(round)
		})
		if c.PID() == old {
			t.Error("no new server")
		}
	}
}

func TestOrphanThatNobodyEndedIsReplaced(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	cfg := testConfig(t, dir)
	first := start(t, cfg)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// A server without the parent's signal, as on systems that have none.
	cmd := first.layout.command(context.Background(), first.binaries.program("postgres"), first.arguments...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	orphan := cmd.Process.Pid
	go func() { _ = cmd.Wait() }()
	until(t, "the orphan answers", func() bool { return first.layout.answers(context.Background(), AppRole, Database) })
	next := start(t, cfg)
	if next.PID() == orphan || !next.owns() || !gone(orphan) {
		t.Errorf("server %d runs, the orphan was %d", next.PID(), orphan)
	}
}

func TestStalePIDFileDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	first := start(t, cfg)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The process id of a running process that belongs to the server's account and is not PostgreSQL, as after a
	// reboot.
	sleeper := first.layout.command(context.Background(), "/bin/sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	stale := fmt.Sprintf("%d\n%s\n1700000000\n%s\n%s\n\n  5432001    123456\nready   \n",
		sleeper.Process.Pid, first.layout.data, socketPort, first.layout.sockets)
	if err := os.WriteFile(first.layout.pidPath(), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := first.layout.account; a.drop {
		if err := os.Chown(first.layout.pidPath(), int(a.uid), int(a.gid)); err != nil {
			t.Fatal(err)
		}
	}
	next := start(t, cfg)
	if !next.owns() || next.PID() == sleeper.Process.Pid {
		t.Errorf("the server is process %d", next.PID())
	}
	if signal(sleeper.Process.Pid, 0) != nil {
		t.Error("a stranger was killed")
	}
}

func TestAnInterruptedFirstStartIsRepeated(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	remains := filepath.Join(dir, "postgres", ".data-123")
	if err := os.MkdirAll(remains, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(remains, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, testConfig(t, dir))
	if _, err := os.Stat(remains); !os.IsNotExist(err) {
		t.Errorf("the remains are still there: %v", err)
	}
}

func TestLongPathsStillGetASocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testDir(t), strings.Repeat("long", 25))
	c := start(t, testConfig(t, dir))
	if got := ask(t, c.URL(), "SELECT 'here'"); got != "here" {
		t.Errorf("got %q", got)
	}
	other := spawn(t, "attach", dir)
	if other.URL != c.URL() {
		t.Errorf("another process looks for the socket at %s, not %s", other.URL, c.URL())
	}
	other.end()
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.layout.sockets); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", c.layout.sockets, err)
	}
}

func TestSettingsOfTestsOverrideAndInvalidOnesAreNamed(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	cfg := testConfig(t, dir)
	cfg.Settings["work_mem"] = "12MB"
	c := start(t, cfg)
	if got := ask(t, c.URL(), "SHOW work_mem"); got != "12MB" {
		t.Errorf("work_mem is %s", got)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"work_mem": "much", "no such": "1", "nothing_known": "1"} {
		cfg.Settings = map[string]string{name: value}
		_, err := Start(testContext(t), cfg)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestSecretsOfFailingStatementsStayOutOfTheServerLog(t *testing.T) {
	t.Parallel()
	c := start(t, testConfig(t, testDir(t)))
	run(t, c.URL(), "CREATE TABLE t (secret text UNIQUE)", "INSERT INTO t VALUES ('canary-1')")
	for _, q := range []string{"INSERT INTO t VALUES ('canary-1')", "SELECT 'canary-2' FROM missing"} {
		if _, err := tryAsk(testContext(t), c.URL(), q); err == nil {
			t.Fatalf("%s succeeded", q)
		}
	}
	files, err := filepath.Glob(filepath.Join(c.layout.logs, "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no log: %v", err)
	}
	var log strings.Builder
	until(t, "the log holds the errors", func() bool {
		log.Reset()
		for _, f := range files {
			text, _ := os.ReadFile(f)
			log.Write(text)
		}
		return strings.Count(log.String(), "ERROR") == 2
	})
	for _, canary := range []string{"canary-1", "canary-2"} {
		if strings.Contains(log.String(), canary) {
			t.Errorf("%s is in the log:\n%s", canary, log.String())
		}
	}
}
