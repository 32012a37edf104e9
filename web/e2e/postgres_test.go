//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/tools/need"
)

// server is a PostgreSQL as an operator has it: over TCP, with a role for Posthorn that is no superuser.
type server struct {
	t    *testing.T
	at   place
	name string
	data string
	host string
	port string

	cmd   *exec.Cmd
	log   *lines
	ended chan struct{}
}

// unprivileged is the account that servers run as when the test is root, which they refuse to be.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if account, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(account.Uid, 10, 32)
			gid, _ := strconv.ParseUint(account.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("no account to run a server as")
	return nil
}

// postgresProgram finds a program of PostgreSQL, in the newest version that is installed.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return slices.Max(found)
	}
	return need.Program(t, name)
}

// folder is one that servers may write.
func folder(t *testing.T) string {
	t.Helper()
	dir := dataDir(t)
	if who := unprivileged(t); who != nil {
		if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lastPort is the last port that freePort returned.
var lastPort atomic.Int64

// freePort is a port of this machine that nothing listens on. It is below those that the system gives to connections,
// so that none takes it before it is used.
func freePort(t *testing.T) string {
	t.Helper()
	lastPort.CompareAndSwap(0, 10_000+rand.Int64N(20_000))
	for range 1000 {
		port := fmt.Sprint(10_000 + lastPort.Add(1)%20_000)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (s *server) run(program string, args ...string) {
	s.t.Helper()
	if text, err := s.at.command(postgresProgram(s.t, program), args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, text)
	}
}

// newServer makes a cluster with a database for Posthorn, and starts it in the network of a place.
func newServer(t *testing.T, host, port string, at place, settings ...string) *server {
	t.Helper()
	s := &server{t: t, name: "postgres", host: host, port: port, data: filepath.Join(folder(t), "data")}
	s.at = place{who: unprivileged(t), network: at.network}
	s.run("initdb", "-D", s.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	if err := os.WriteFile(filepath.Join(s.data, "pg_hba.conf"), []byte("host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(settings...)
	s.admit()
	return s
}

// admit makes Posthorn's role and its database, by the script that the composition of docs/ops gives to PostgreSQL.
func (s *server) admit() {
	s.t.Helper()
	script, err := os.Open(filepath.Join("..", "..", "docs", "ops", "postgres-init.sh"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer script.Close()
	cmd := s.at.command("/bin/sh", "-s")
	cmd.Stdin = script
	cmd.Env = []string{"PATH=" + filepath.Dir(postgresProgram(s.t, "psql")) + ":" + os.Getenv("PATH"), "PGHOST=" + s.host, "PGPORT=" + s.port, "POSTHORN_PASSWORD=it's 1 password"}
	if text, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("postgres-init.sh: %v\n%s", err, text)
	}
}

// newStandby copies a server and follows it. Its name is what synchronous_standby_names calls it.
func (s *server) newStandby(name, host, port string, settings ...string) *server {
	s.t.Helper()
	r := &server{t: s.t, at: s.at, name: name, host: host, port: port, data: filepath.Join(folder(s.t), "data")}
	r.run("pg_basebackup", "-h", s.host, "-p", s.port, "-U", "postgres", "-D", r.data, "-X", "stream", "-c", "fast", "--no-sync")
	if err := os.WriteFile(filepath.Join(r.data, "standby.signal"), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	r.start(append(settings, fmt.Sprintf("primary_conninfo=host=%s port=%s user=postgres application_name=%s", s.host, s.port, name))...)
	return r
}

// start runs the server and returns when it answers.
func (s *server) start(settings ...string) {
	s.t.Helper()
	args := []string{"-D", s.data}
	for _, setting := range append([]string{
		"listen_addresses=" + s.host, "port=" + s.port, "unix_socket_directories=", "max_connections=150", "shared_buffers=64MB",
		"jit=off", "timezone=UTC", "autovacuum_naptime=5s", "logging_collector=off",
	}, settings...) {
		args = append(args, "-c", setting)
	}
	s.log, s.ended = newLines(s.t, s.name), make(chan struct{})
	s.cmd = s.at.command(postgresProgram(s.t, "postgres"), args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, log, ended := s.cmd, s.log, s.ended
	go func() {
		_ = cmd.Wait()
		log.end()
		close(ended)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // at once, children too
		<-ended
		if s.t.Failed() {
			s.t.Logf("%s said at last:\n%s", s.name, log.tail(20))
		}
	})
	eventually(s.t, patience, s.name+" answers", func() bool {
		select {
		case <-ended:
			s.t.Fatalf("%s ended:\n%s", s.name, log.tail(20))
		default:
		}
		conn, err := s.connect()
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
}

func (s *server) connect() (*pgx.Conn, error) { return s.connectTo("postgres") }

func (s *server) connectTo(database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&connect_timeout=5", net.JoinHostPort(s.host, s.port), database))
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = dial
	return pgx.ConnectConfig(context.Background(), cfg)
}

// ask runs a statement as the superuser and returns the first value of its first row, as text; empty: none.
func (s *server) ask(sql string) (text string) { s.t.Helper(); return s.askIn("postgres", sql) }

// askIn is ask in a database.
func (s *server) askIn(database, sql string) (text string) {
	s.t.Helper()
	conn, err := s.connectTo(database)
	if err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	defer rows.Close()
	if rows.Next() {
		if values := rows.RawValues(); len(values) > 0 {
			text = string(values[0])
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	return text
}

// kill ends the server as a power cut would.
func (s *server) kill() time.Time {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	at := time.Now()
	<-s.ended
	return at
}

// urlOf is the way in for Posthorn: one server, or several of which one is the primary.
func urlOf(servers ...*server) string {
	hosts := ""
	for i, s := range servers {
		if i > 0 {
			hosts += ","
		}
		hosts += net.JoinHostPort(s.host, s.port)
	}
	return "postgres://posthorn@" + hosts + "/posthorn?sslmode=disable"
}
