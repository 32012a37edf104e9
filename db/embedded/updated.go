package embedded

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"posthorn/domain/fault"
)

// A package manager replaces PostgreSQL's files under the running server. What the server opens later (plpgsql, other
// libraries) is then of another version than the server itself, and fails. So the owner compares the files with those
// of the start and restarts the server once they are complete.
// filesQuiet is how long the files must stay the same: a package manager can still be writing. They are compared three
// times as often.
const filesQuiet = 15 * time.Second

// fileState is what the server's programs and libraries were at a moment.
type fileState struct {
	folders []string
	state   string // changes with any of the files
	since   time.Time
}

// files is the state of what a running server of these programs loads.
func (l *layout) files(ctx context.Context, b binaries) (fileState, error) {
	conn, err := l.dial(ctx, AdminRole, "postgres")
	if err != nil {
		return fileState{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var libraries string
	if err := conn.QueryRow(ctx, "SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'").Scan(&libraries); err != nil {
		return fileState{}, fmt.Errorf("asking for the folder of its libraries: %w", err)
	}
	// Of the programs only the server: the folder can be /usr/bin.
	folders := []string{b.program("postgres"), libraries, filepath.Join(libraries, "*.*")}
	return fileState{folders: folders, state: stateOf(folders...), since: time.Now()}, nil
}

// stateOf changes when a file of these patterns, or a folder among them, is replaced, changed, added or removed.
func stateOf(patterns ...string) string {
	sum := sha256.New()
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			paths = nil // never: the patterns are constant but for the folders
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintln(sum, path, inodeOf(info), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// followUpdate restarts the server if its files have changed and are complete. The workers keep their results until the
// server runs again, and requests wait.
func (c *Cluster) followUpdate(ctx context.Context, server *postmaster) {
	c.mu.Lock()
	files, outdated := c.files, c.outdated
	c.mu.Unlock()
	now := stateOf(files.folders...)
	if now == files.state {
		if outdated != nil {
			c.setOutdated(nil) // they are back
			c.seen = fileState{}
		}
		return
	}
	if now != c.seen.state {
		c.seen = fileState{state: now, since: time.Now()}
		c.setOutdated(updatedFault(c.seen.since.Add(c.cfg.quiet)))
		c.log.Warn("the files of PostgreSQL have changed on this machine; it restarts when they are complete", "binaries", c.binaries.dir)
		return
	}
	if time.Since(c.seen.since) < c.cfg.quiet {
		return
	}
	b, err := c.present(ctx)
	if stateOf(files.folders...) != now {
		return // they changed again in between, possibly back to what they were
	}
	if err == nil {
		err = c.use(ctx, b)
	}
	if err != nil {
		if ctx.Err() == nil && (outdated == nil || outdated.Error() != err.Error()) {
			c.log.Error("the files of PostgreSQL have changed on this machine, and it can't restart with them", "error", err)
			c.setOutdated(err)
		}
		return
	}
	c.renew(ctx, server, b)
}

// renew stops the server in order and starts the next one.
func (c *Cluster) renew(ctx context.Context, server *postmaster, b binaries) {
	c.log.Warn("restarting PostgreSQL, since its files have changed on this machine", "postgres", b.version, "binaries", b.dir)
	// Most of what the stop has to write is written before, so the pause is short.
	if conn, err := c.layout.dial(ctx, AdminRole, "postgres"); err == nil {
		_, _ = conn.Exec(ctx, "CHECKPOINT")
		_ = conn.Close(context.WithoutCancel(ctx))
	}
	if ctx.Err() != nil {
		return // Close stops the server
	}
	if err := server.stop(context.WithoutCancel(ctx), c.log); err != nil {
		c.log.Error("PostgreSQL did not stop in order", "error", err)
	}
	c.mu.Lock()
	c.server = nil
	c.mu.Unlock()
	c.seen = fileState{}
	c.restart(ctx, steadyAfter)
}

// present finds the programs for the existing data, among those that are on this machine.
func (c *Cluster) present(ctx context.Context) (binaries, error) {
	major, _, err := c.layout.initialised()
	if err != nil {
		return binaries{}, err
	}
	here, cfg := *c.cfg.places, c.cfg
	here.offline, cfg.places, cfg.Archive = true, &here, ""
	return c.layout.findBinaries(ctx, cfg, cmp.Or(major, c.binaries.major))
}

func updatedFault(at time.Time) error {
	return &fault.Error{
		Kind: fault.Unavailable,
		Code: "postgres_updated",
		Detail: fmt.Sprintf(
			"PostgreSQL was updated on this machine. Posthorn restarts it at %s if its files no longer change.", at.UTC().Format("15:04:05 UTC")),
	}
}

func (c *Cluster) setOutdated(err error) {
	c.mu.Lock()
	c.outdated = err
	c.mu.Unlock()
}

// Ready returns nil, or says why the server of this process is out of order though it possibly responds: its files were
// replaced, and it has not restarted yet.
func (c *Cluster) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outdated
}
