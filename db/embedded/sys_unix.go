//go:build unix && !aix && !solaris

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// supported reports whether this system can run an embedded cluster.
const supported = true

// The three ways to stop a postmaster.
const (
	stopFast      = syscall.SIGINT  // sessions are ended, a checkpoint is written
	stopImmediate = syscall.SIGQUIT // no checkpoint: the next start recovers from the log
	stopHard      = syscall.SIGKILL
)

func isRoot() bool { return os.Geteuid() == 0 }

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// inodeOf tells a file that replaced another from that other.
func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino) //nolint:unconvert // its width differs between systems
	}
	return 0
}

// tryLock takes an exclusive lock on a file, or returns nil if another process holds it. The kernel releases it when
// the holder closes the file or dies. Child processes do not inherit it, since Go opens files close-on-exec.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
}

// runAs makes a command drop root's rights, supplementary groups included.
func runAs(cmd *exec.Cmd, a account) {
	if !a.drop {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// detach gives a command its own session, so that Ctrl-C in Posthorn's terminal does not stop it.
func detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

func signal(pid int, sig syscall.Signal) error {
	if pid <= 1 {
		return syscall.ESRCH
	}
	return syscall.Kill(pid, sig)
}

// openNoFollow opens a file for reading unless its name is a symbolic link.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
}

// createNoFollow empties or creates a file unless its name is a symbolic link.
func createNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
}
