//go:build e2e || soak

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownRoom makes network and mount namespaces that a process of its own keeps open; nil where that is not possible.
func ownRoom(t *testing.T, environ []string) *room {
	t.Helper()
	enter, err := exec.LookPath("nsenter")
	if err != nil || os.Getuid() != 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	keeper := exec.Command(self)
	keeper.Env = append(os.Environ(), roomVariable+"=1")
	keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	open, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Logf("no namespaces: %v", err)
		return nil
	}
	t.Cleanup(func() {
		_ = open.Close()
		_ = keeper.Wait()
	})
	word := make([]byte, len(roomReady))
	if _, err := io.ReadFull(said, word); err != nil || string(word) != roomReady {
		t.Logf("no room in the namespaces: %s %v", word, err)
		return nil
	}
	return &room{
		environ: environ,
		attr:    &syscall.SysProcAttr{Setpgid: true},
		enter: []string{
			enter, "--target", strconv.Itoa(keeper.Process.Pid), "--net", "--mount", "--wd=" + root(t),
		},
	}
}

const roomReady = "ready"

// enterRoom furnishes the namespaces that this process was started in, and keeps them until its standard input ends.
func enterRoom() {
	if err := furnish(); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	fmt.Print(roomReady)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// furnish brings the loopback interface up and empties /var/lib, where root's data would be.
func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", "/var/lib", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /var/lib: %w", err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}
