package embedded

import (
	"context"
	"os"
	"strings"
	"time"
)

// supervise keeps a server running until the context ends: the owner restarts its own when it dies, and an adopter that
// stays takes over the ownership when it is free.
func (c *Cluster) supervise(ctx context.Context, stay bool) {
	defer close(c.done)
	look := time.NewTicker(c.cfg.quiet / 3)
	defer look.Stop()
	for ctx.Err() == nil {
		c.mu.Lock()
		owned, server := c.lock != nil, c.server
		c.mu.Unlock()
		switch {
		case owned && server != nil:
			select {
			case <-ctx.Done():
			case <-look.C:
				c.followUpdate(ctx, server)
			case <-server.exited:
				c.mu.Lock()
				c.server = nil
				lasted := time.Since(c.launchedAt)
				c.mu.Unlock()
				c.log.Error("PostgreSQL has ended unexpectedly; starting it again", "pid", server.pid, "error", server.err, "ran", lasted.Round(time.Second))
				c.restart(ctx, lasted)
			}
		case stay:
			c.takeOver(ctx)
		default:
			<-ctx.Done()
		}
	}
}

// restart launches the server until it runs. If the server ran for a while before, the first try comes immediately.
// Each try searches for the programs again: those of before are possibly replaced.
func (c *Cluster) restart(ctx context.Context, lasted time.Duration) {
	backoff := 100 * time.Millisecond
	if lasted < steadyAfter && !sleep(ctx, backoff) {
		return
	}
	for {
		b, err := c.present(ctx)
		if err == nil {
			err = c.use(ctx, b)
		}
		if err == nil {
			err = c.launch(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		c.setOutdated(err)
		backoff = min(2*backoff, maxBackoff)
		c.log.Error("PostgreSQL did not start again", "error", err, "next_try_in", backoff)
		if !sleep(ctx, backoff) {
			return
		}
	}
}

// takeOver waits for the ownership and starts a server with it.
func (c *Cluster) takeOver(ctx context.Context) {
	if !sleep(ctx, adoptInterval) {
		return
	}
	owner, err := c.becomeOwner(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.log.Error("the PostgreSQL that this process used has stopped, and starting it again failed", "error", err, "next_try_in", maxBackoff)
		sleep(ctx, maxBackoff)
	case owner:
		c.log.Warn("the process that ran PostgreSQL has ended; this one has taken over", "pid", c.PID())
	}
}

// removeForeignSockets removes the socket's folder if it is outside of the data directory.
func (l *layout) removeForeignSockets() {
	if !strings.HasPrefix(l.sockets, l.base) {
		_ = os.Remove(l.sockets)
	}
}
