package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"posthorn/domain/fault"
)

// Cluster is a running server: this process's own, or one that another process owns.
type Cluster struct {
	cfg    Config
	layout *layout
	log    *slog.Logger

	quit    context.CancelFunc // ends supervise
	done    chan struct{}      // closed when supervise has returned
	closing sync.Once
	closed  error

	mu         sync.Mutex
	lock       *os.File // held by the owner
	server     *postmaster
	binaries   binaries
	arguments  []string
	launchedAt time.Time
	files      fileState // of the programs and libraries, since the start of the server
	outdated   error     // why the files on disk are no longer the server's; nil: they are

	seen fileState // supervise's alone: the last other state of the files
}

// Start returns the running server of a data directory, ready for use: a server of its own if no process owns the
// directory, else the owner's. The server lasts until Close: if it dies it is restarted, and if the owner exits, one of
// the processes that adopted its server starts the next. The pause is well under a second after a clean stop, and a few
// seconds after a crash. Connections break and are opened again.
//
// The first start creates the cluster, which takes about a second, and possibly installs PostgreSQL first. The context
// bounds the start alone. Errors are fault.Error with a code: data_dir_unusable, data_dir_unknown, postgres_not_found,
// postgres_version_missing, postgres_archive_refused, postgres_account_missing, postgres_account_refused,
// postgres_start_failed, postgres_busy, embedded_unsupported.
func Start(ctx context.Context, cfg Config) (*Cluster, error) { return open(ctx, cfg, true) }

// Attach is Start for a short command: it uses the running server, and never takes it over. If none runs, it starts
// one, which Close stops.
func Attach(ctx context.Context, cfg Config) (*Cluster, error) { return open(ctx, cfg, false) }

func open(ctx context.Context, cfg Config, stay bool) (*Cluster, error) {
	if !supported {
		return nil, fault.New(
			fault.Invalid,
			"embedded_unsupported",
			"Posthorn can't run its own PostgreSQL on this system. Set POSTHORN_DATABASE_URL to a PostgreSQL server, such as postgres://user:password@host:5432/posthorn.",
		)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l, err := prepare(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, layout: l, log: cfg.Log.With("data_dir", l.home), done: make(chan struct{})}
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	watch, quit := context.WithCancel(context.Background())
	c.quit = quit
	go c.supervise(watch, stay)
	return c, nil
}

// acquire returns when this process owns a ready server, or another process does.
func (c *Cluster) acquire(ctx context.Context) error {
	var waited time.Duration
	for {
		owner, err := c.becomeOwner(ctx)
		if owner || err != nil {
			return err
		}
		if c.layout.readPIDFile().ready && c.layout.answers(ctx, AppRole, Database) {
			c.log.Debug("using the PostgreSQL of another Posthorn process", "pid", c.PID())
			return nil
		}
		if !sleep(ctx, pollInterval) {
			return &fault.Error{
				Kind:   fault.Unavailable,
				Code:   "postgres_busy",
				Cause:  ctx.Err(),
				Detail: fmt.Sprintf("Another Posthorn process (%s) owns the data in %s, and its PostgreSQL does not respond. Check that process, or end it.", c.owner(), c.layout.home),
			}
		}
		if waited += pollInterval; waited >= progressEvery {
			waited = 0
			c.log.Info("waiting for the PostgreSQL of another Posthorn process", "process", c.owner())
		}
	}
}

// owner is the process id that the owner wrote into the lock file, for messages.
func (c *Cluster) owner() string {
	text, err := os.ReadFile(c.layout.lock)
	if err != nil || len(text) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// becomeOwner takes the lock and starts a server. It returns false if another process holds the lock.
func (c *Cluster) becomeOwner(ctx context.Context) (bool, error) {
	lock, err := tryLock(c.layout.lock)
	if err != nil {
		return false, dirFault(c.layout.home, "can't be locked", err)
	}
	if lock == nil {
		return false, nil
	}
	if err := c.startOwn(ctx, lock); err != nil {
		c.layout.removeForeignSockets()
		_ = lock.Close()
		return false, err
	}
	c.mu.Lock()
	c.lock = lock
	c.mu.Unlock()
	return true, nil
}

func (c *Cluster) startOwn(ctx context.Context, lock *os.File) error {
	// For messages alone; the lock itself is the kernel's.
	if err := lock.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(lock, "%d\n", os.Getpid())
	}
	l := c.layout
	// Created again: the folder can be in /tmp, and the last owner possibly removed it.
	if err := makeDir(l.sockets, l.account); err != nil {
		return dirFault(l.home, "can't have its socket", err)
	}
	major, exists, err := l.initialised()
	if err != nil {
		return err
	}
	b, err := l.findBinaries(ctx, c.cfg, major)
	if err != nil {
		return err
	}
	if !exists {
		c.log.Info("making the database cluster", "postgres", b.version, "binaries", b.dir)
		if err := l.initialise(ctx, b); err != nil {
			return err
		}
	}
	if err := c.use(ctx, b); err != nil {
		return err
	}
	return c.launch(ctx)
}

// use makes the next launch start these programs.
func (c *Cluster) use(ctx context.Context, b binaries) error {
	args, err := c.layout.arguments(ctx, b, c.cfg.Settings)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.binaries, c.arguments = b, args
	c.mu.Unlock()
	return nil
}

// launch starts the server with the programs that use named, and makes sure that the role and the database exist.
func (c *Cluster) launch(ctx context.Context) error {
	started := time.Now()
	before := stateOf(c.binaries.program("postgres"))
	p, err := c.layout.run(ctx, c.log, c.binaries, c.arguments)
	if err != nil {
		return err
	}
	if err := c.layout.grantAccess(ctx, c.binaries.major); err != nil {
		_ = p.stop(context.WithoutCancel(ctx), c.log)
		return c.layout.startFault(err)
	}
	files, err := c.layout.files(ctx, c.binaries)
	if err != nil {
		_ = p.stop(context.WithoutCancel(ctx), c.log)
		return c.layout.startFault(err)
	}
	if stateOf(c.binaries.program("postgres")) != before {
		files.state = "" // replaced while it started: other than any state on disk
	}
	c.mu.Lock()
	c.server, c.launchedAt, c.files, c.outdated = p, time.Now(), files, nil
	c.mu.Unlock()
	c.log.Info("PostgreSQL is ready", "postgres", c.binaries.version, "pid", p.pid, "took", time.Since(started).Round(time.Millisecond))
	return nil
}

// URL names the database for the application role, in the form that pgx and libpq read:
// postgres://posthorn@/posthorn?host=<socket folder>&port=5432&sslmode=disable. It does not change across restarts.
func (c *Cluster) URL() string { return c.layout.url(AppRole, Database) }

// AdminURL names a database for the superuser, for setup that the application role has no right to: extensions such as
// pg_stat_statements, and cloned databases in tests. Posthorn does not use it while it serves.
func (c *Cluster) AdminURL(database string) string { return c.layout.url(AdminRole, database) }

// DataDir is the data directory, absolute, with symbolic links resolved.
func (c *Cluster) DataDir() string { return c.layout.home }

// PID is the postmaster's process id; 0 if there is none.
func (c *Cluster) PID() int {
	c.mu.Lock()
	server := c.server
	c.mu.Unlock()
	if server != nil {
		return server.pid
	}
	return c.layout.readPIDFile().pid
}

// Close stops the server if this process owns it, cleanly until the context ends (a minute at most), and otherwise
// leaves it running. The error says if the server had to be stopped without a checkpoint, which loses nothing. Close
// can be called more than once.
func (c *Cluster) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.quit()
		<-c.done
		c.closed = c.release(ctx)
	})
	return c.closed
}

func (c *Cluster) release(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock == nil {
		return nil
	}
	var err error
	if c.server != nil {
		err = c.server.stop(ctx, c.log)
		c.server = nil
		c.log.Info("PostgreSQL has stopped")
	}
	c.layout.removeForeignSockets()
	_ = c.lock.Close()
	c.lock = nil
	return err
}
