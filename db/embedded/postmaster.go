package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"posthorn/domain/fault"
)

// postmaster is the server process, a child of this one.
type postmaster struct {
	pid    int
	exited chan struct{} // closed when it has exited and was reaped
	err    error         // how it ended; read it after exited is closed
}

// launch starts the server's process and returns immediately. If the thread that starts the process dies, the server
// gets the signal of endWithParent, so the thread is kept until the server has ended.
func (l *layout) launch(program string, args []string) (*postmaster, error) {
	out, err := createNoFollow(l.startLog)
	if err != nil {
		return nil, err
	}
	cmd := l.command(context.Background(), program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	detach(cmd)
	endWithParent(cmd)
	p := &postmaster{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		_ = out.Close()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// run launches the server and waits until it is ready. It first waits for the rest of a predecessor to end, and cleans
// up.
func (l *layout) run(ctx context.Context, log *slog.Logger, b binaries, args []string) (*postmaster, error) {
	started := time.Now()
	for {
		if err := l.clearWay(ctx, log); err != nil {
			return nil, err
		}
		p, err := l.launch(b.program("postgres"), args)
		if err != nil {
			return nil, l.startFault(err)
		}
		if err = l.awaitReady(ctx, log, p); err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), p.stop(context.Background(), log))
		}
		said := l.said()
		if time.Since(started) > lockRetry || !remnant(said) {
			return nil, l.startFault(fmt.Errorf("%w: %s", err, said))
		}
		log.Info("PostgreSQL can't start beside what is left of the last one; trying again", "said", lastLine(said))
		if !sleep(ctx, 5*pollInterval) {
			return nil, ctx.Err()
		}
	}
}

// remnant reports whether the server refused to start because a killed predecessor has not fully exited, despite
// clearWay.
func remnant(said string) bool {
	return strings.Contains(said, "lock file") || strings.Contains(said, "pre-existing shared memory block")
}

func (l *layout) startFault(cause error) error {
	return &fault.Error{
		Kind:   fault.Unavailable,
		Code:   "postgres_start_failed",
		Cause:  cause,
		Detail: "The embedded PostgreSQL did not start. Its log is in " + l.logs + " and " + l.startLog + ".",
	}
}

// awaitReady waits until this very process says that it is ready and accepts connections. The file and the socket alone
// prove nothing: a dead predecessor can have left them.
func (l *layout) awaitReady(ctx context.Context, log *slog.Logger, p *postmaster) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	progress := time.NewTicker(progressEvery)
	defer progress.Stop()
	for {
		if f := l.readPIDFile(); f.ready && f.pid == p.pid && l.answers(ctx, AdminRole, "postgres") {
			return nil
		}
		select {
		case <-p.exited:
			if p.err == nil {
				return errors.New("it stopped immediately")
			}
			return p.err
		case <-ctx.Done():
			return ctx.Err()
		case <-progress.C:
			log.Info("PostgreSQL is starting; after a crash it replays its log first", "pid", p.pid)
		case <-tick.C:
		}
	}
}

// stop ends the server: a fast stop, then an immediate one when the context is done, then SIGKILL. The error says if it
// was not the fast one; the data is safe in any case, but the next start has to recover.
func (p *postmaster) stop(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	_ = signal(p.pid, stopFast)
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
	}
	for _, sig := range []syscall.Signal{stopImmediate, stopHard} {
		log.Warn("PostgreSQL does not stop in time", "pid", p.pid, "sending", sig.String())
		_ = signal(p.pid, sig)
		select {
		case <-p.exited:
			return fmt.Errorf("PostgreSQL was stopped without a checkpoint; the next start recovers: %w", ctx.Err())
		case <-time.After(quitGrace):
		}
	}
	return fmt.Errorf("PostgreSQL (process %d) can't be stopped", p.pid)
}

// clearWay ends the processes of a server without an owner, and removes lock files that would keep the next one from
// starting. The caller holds the owner's lock.
//
// A server whose owner was killed is replaced, not adopted: it is possibly stopping already, it has no parent that
// stops it, and it possibly runs with the settings of an older Posthorn.
func (l *layout) clearWay(ctx context.Context, log *slog.Logger) error {
	left := l.readPIDFile()
	if left.pid == 0 && !exists(l.socketLock()) {
		return nil
	}
	mains, _, err := l.processes(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(mains, left.pid) {
		log.Info("ending a PostgreSQL that lost its Posthorn", "pid", left.pid)
		if err := l.endOrphan(ctx, left.pid); err != nil {
			return err
		}
	}
	if err := l.endSessions(ctx, log); err != nil {
		return err
	}
	return l.clearLockFiles(ctx, left.pid)
}

// endOrphan stops a postmaster that is not a child of this process.
func (l *layout) endOrphan(ctx context.Context, pid int) error {
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{stopFast, lockRetry}, {stopImmediate, quitGrace}, {stopHard, quitGrace}} {
		if err := signal(pid, step.sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return l.startFault(fmt.Errorf("ending process %d: %w", pid, err))
		}
		for until := time.Now().Add(step.wait); time.Now().Before(until); {
			mains, _, err := l.processes(ctx)
			if err != nil || !slices.Contains(mains, pid) {
				return err
			}
			if !sleep(ctx, pollInterval) {
				return ctx.Err()
			}
		}
	}
	return l.startFault(fmt.Errorf("process %d can't be ended", pid))
}

// endSessions waits for the other processes of a dead postmaster. Usually they end by themselves, but not in the middle
// of a long statement; then they are killed. None of their work reaches the next server.
func (l *layout) endSessions(ctx context.Context, log *slog.Logger) error {
	for started := time.Now(); time.Since(started) < lockRetry; {
		mains, others, err := l.processes(ctx)
		if err != nil {
			return err
		}
		left := append(mains, others...)
		if len(left) == 0 {
			return nil
		}
		if time.Since(started) > remnantGrace {
			log.Warn("killing what is left of a dead PostgreSQL", "pids", left)
			for _, pid := range left {
				_ = signal(pid, stopHard)
			}
		}
		if !sleep(ctx, pollInterval) {
			return ctx.Err()
		}
	}
	return nil // if something is missing, the start will fail
}

// clearLockFiles removes the lock files of a process whose id now belongs to another program, or which is dead and not
// reaped. PostgreSQL checks only whether the number is in use and would refuse to start for as long as it is. No
// process of the cluster runs at this point. If a server responds nevertheless, for example from a container, nothing
// is removed.
func (l *layout) clearLockFiles(ctx context.Context, pid int) error {
	if l.answers(ctx, AdminRole, "postgres") {
		return dirFault(l.home, fmt.Sprintf("is in use by a PostgreSQL that this Posthorn can't see (process %d)", pid), nil)
	}
	for _, file := range []string{l.pidPath(), l.socketLock()} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l.startFault(err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// processes finds the running processes of this cluster: the postmaster by the folder in its arguments (a newly forked
// child has the same arguments for a moment), the others by the cluster's name in their titles. Zombies do not count.
func (l *layout) processes(ctx context.Context) (mains, others []int, err error) {
	all, err := commandLines(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing processes: %w", err)
	}
	for pid, line := range all {
		switch {
		case strings.HasPrefix(line, "postgres: "+l.name+":"), strings.HasPrefix(line, "postgres: "+l.name+" "):
			others = append(others, pid)
		case strings.HasPrefix(line, "/") && strings.Contains(line, "/postgres -D "+l.data+" "):
			mains = append(mains, pid)
		}
	}
	return mains, others, nil
}

// sleep waits, and returns false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
