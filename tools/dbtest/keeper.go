package dbtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db/embedded"
)

const (
	defaultLinger = 2 * time.Minute
	look          = 500 * time.Millisecond // how often the keeper looks for test processes
	poll          = 10 * time.Millisecond  // how often a test process looks for the keeper
)

// Files in the keeper's folder.
const (
	usersFile  = "users.lock"  // shared lock: a test process that lives
	keeperFile = "keeper.lock" // exclusive lock: the keeper
	readyFile  = "server.json" // written when the server is ready
	logFile    = "keeper.log"
)

// keeperDir is the same for all test processes of a user.
func keeperDir(kind string) (string, error) {
	name := fmt.Sprintf("posthorn-test-%d", os.Getuid())
	if !waitsForDisk() {
		name += "-nofsync"
	}
	name += kind
	dir := filepath.Join(os.TempDir(), name)
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711 // the server runs under another account
	}
	if err := os.Mkdir(dir, mode); err != nil && !os.IsExist(err) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !ownedByMe(info) {
		return "", fmt.Errorf("%s is not a folder of this user: set TMPDIR, or remove it", dir)
	}
	return dir, nil
}

// holdForever keeps locks until the process ends: the garbage collector closes a file that nothing refers to.
var holdForever []*os.File

// findServer finds the run's server, or starts a keeper that starts it.
func findServer(kind string) (server, error) {
	dir, err := keeperDir(kind)
	if err != nil {
		return server{}, err
	}
	deadline := time.Now().Add(patience)
	// A keeper that is about to exit holds the lock exclusively until it has exited.
	for {
		lock, err := tryLock(filepath.Join(dir, usersFile), shared)
		if err != nil {
			return server{}, err
		}
		if lock != nil {
			holdForever = append(holdForever, lock)
			break
		}
		if time.Now().After(deadline) {
			return server{}, fmt.Errorf("the last test server does not end; see %s", filepath.Join(dir, logFile))
		}
		time.Sleep(poll)
	}
	keeper := 0
	for time.Now().Before(deadline) {
		free, err := tryLock(filepath.Join(dir, keeperFile), exclusive)
		if err != nil {
			return server{}, err
		}
		if free != nil {
			_ = free.Close()
			if keeper != 0 && !hasEnded(keeper) {
				time.Sleep(poll) // the new keeper has not locked yet
				continue
			}
			if keeper != 0 && failed(dir) != "" {
				return server{}, errors.New("starting the test server: " + failed(dir))
			}
			if keeper, err = startKeeper(dir); err != nil {
				return server{}, err
			}
		} else if s, ok := readServer(dir); ok {
			return s, nil
		}
		time.Sleep(poll)
	}
	return server{}, fmt.Errorf("the test server is not ready; see %s", filepath.Join(dir, logFile))
}

// readServer reads what the keeper has written, and tries to connect.
func readServer(dir string) (server, bool) {
	var s server
	text, err := os.ReadFile(filepath.Join(dir, readyFile))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return s, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Admin)
	if err != nil {
		return s, false
	}
	return s, conn.Close(ctx) == nil
}

// failurePrefix starts the keeper's last line if it could not start the server.
const failurePrefix = "failed: "

func failed(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		return ""
	}
	_, why, _ := strings.Cut(string(text), "\n"+failurePrefix)
	return strings.TrimSpace(why)
}

// startKeeper starts this test binary again as the keeper, in a session of its own, with no pipe that `go test` would
// wait for.
func startKeeper(dir string) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), keeperVariable+"="+dir)
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// Not waited for: it outlives this process.
	return cmd.Process.Pid, nil
}

// keep runs the server until no test process has lived for the time to linger.
func keep(dir string) error {
	lock, err := tryLock(filepath.Join(dir, keeperFile), exclusive)
	for range 10 { // a test process that checks the lock holds it for a moment
		if err != nil || lock != nil {
			break
		}
		time.Sleep(poll)
		lock, err = tryLock(filepath.Join(dir, keeperFile), exclusive)
	}
	if err != nil || lock == nil {
		return err // another keeper was faster
	}
	holdForever = append(holdForever, lock)
	// A killed keeper's announcement would send test processes to the server before it is clean.
	if err := os.Remove(filepath.Join(dir, readyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Truncate(filepath.Join(dir, logFile), 0); err != nil {
		return err
	}
	stop, done := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer done()
	cluster, err := embedded.Start(stop, embedded.Config{
		DataDir:  filepath.Join(dir, "data"),
		Log:      slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Settings: settings(dir),
	})
	if err != nil {
		return fmt.Errorf("\n%s%w", failurePrefix, err)
	}
	s := server{Admin: cluster.AdminURL("postgres"), App: cluster.URL(), Owner: embedded.AppRole}
	err = s.dropAll(stop, templatePrefix, clonePrefix)
	if err == nil {
		err = announce(dir, s)
	}
	if err == nil {
		err = s.awaitIdle(stop, dir)
	}
	_ = os.Remove(filepath.Join(dir, readyFile))
	if err := errors.Join(err, cluster.Close(context.Background())); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(cluster.DataDir(), "postgres", "data"))
}

// settings of the server: many packages run at once.
func settings(dir string) map[string]string {
	s := map[string]string{"max_connections": "400", "shared_buffers": "128MB", "max_wal_size": "1GB"}
	if strings.HasSuffix(dir, logical) {
		// Many moves at a time, and retries that a test waits for.
		maps.Copy(s, map[string]string{
			"wal_level":                       "logical",
			"max_replication_slots":           "200",
			"max_wal_senders":                 "200",
			"max_logical_replication_workers": "80",
			"max_worker_processes":            "100",
			"wal_retrieve_retry_interval":     "500ms",
		})
	}
	if !waitsForDisk() {
		s["fsync"], s["full_page_writes"] = "off", "off"
	}
	return s
}

// waitsForDisk reports whether the server flushes to the disk. Tests do not need it: they see what was committed
// without it. Without it a database is created and dropped in a fraction of the time, since each has hundreds of files.
func waitsForDisk() bool { return os.Getenv(fsyncVariable) == "on" }

func announce(dir string, s server) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, readyFile+".new")
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(dir, readyFile))
}

// awaitIdle returns when no test process has lived for the time to linger, holding the users' lock until this process
// ends, so that the next test process waits and then starts a keeper of its own.
func (s server) awaitIdle(stop context.Context, dir string) error {
	linger, err := time.ParseDuration(os.Getenv(lingerVariable))
	if err != nil {
		linger = defaultLinger
	}
	var since time.Time
	for stop.Err() == nil {
		users, err := tryLock(filepath.Join(dir, usersFile), exclusive)
		switch {
		case err != nil:
			return err
		case users == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			// Databases of killed test processes.
			err = s.dropAll(stop, clonePrefix)
		case time.Since(since) >= linger:
			holdForever = append(holdForever, users)
			return s.dropAll(stop, templatePrefix, clonePrefix)
		}
		if users != nil {
			_ = users.Close()
		}
		if err != nil {
			return err
		}
		time.Sleep(look)
	}
	return nil
}

// dropAll drops the databases with a prefix.
func (s server) dropAll(ctx context.Context, prefixes ...string) error {
	conn, err := pgx.Connect(ctx, s.Admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, prefix := range prefixes {
		rows, err := conn.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", prefix)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
				return err
			}
		}
	}
	return nil
}
