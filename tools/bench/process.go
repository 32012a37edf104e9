package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is USER_HZ, the unit of CPU times in /proc; 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// process is a child that runs until it is stopped. Its output goes to a file, never through this process.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error
}

func start(logFile string, env []string, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(name, args...), log: logFile, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = out, out, env
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop asks, waits, and kills after the grace.
func (p *process) stop(grace time.Duration) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.freeze(false)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// freeze stops a process, or continues it.
func (p *process) freeze(yes bool) error {
	if yes {
		return p.cmd.Process.Signal(syscall.SIGSTOP)
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// running is nil while the process runs, else an error with the end of its log.
func (p *process) running() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended (%w):\n%s", p.cmd.Path, p.err, tail(p.log))
	default:
		return nil
	}
}

// waitFor tries until it succeeds, the process dies, or the time is over.
func (p *process) waitFor(ctx context.Context, limit time.Duration, what string, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if dead := p.running(); dead != nil {
			return dead
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: still not after %s: %w\n%s", what, limit, err, tail(p.log))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// freeAddress is a loopback address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// resetPeak forgets the highest resident size so far (clear_refs 5; proc(5)).
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600)
}

// peakRSS is the highest resident size since the last resetPeak, in bytes.
func peakRSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(rest)), "kB")), 10, 64)
			return kB << 10, err
		}
	}
	return 0, errors.New("the kernel reports no VmHWM")
}

// cpuTime is what a process has used; with family also what its living and reaped children have.
func cpuTime(pid int, family bool) time.Duration {
	used, _ := cpuOf(pid, family)
	if !family {
		return used
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		child, _ := strconv.Atoi(strings.Split(stat, "/")[2])
		if own, parent := cpuOf(child, true); parent == pid {
			used += own
		}
	}
	return used
}

// cpuOf reads one process's CPU time and parent; zero when it has ended.
func cpuOf(pid int, reaped bool) (used time.Duration, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// The name is in parentheses and can contain blanks. The fields after it are numbered from 3 in proc(5).
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	last := 13
	if reaped {
		last = 15
	}
	for _, field := range fields[11:last] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		used += time.Duration(ticks) * clockTick
	}
	return used, parent
}
