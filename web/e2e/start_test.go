//go:build (e2e || soak) && unix

package e2e

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestAnOrdinaryUserStartsOnAFreshMachine: no root, an empty home, nothing configured but free ports.
func TestAnOrdinaryUserStartsOnAFreshMachine(t *testing.T) {
	t.Parallel()
	home := dataDir(t)
	var who *syscall.Credential
	if os.Getuid() == 0 {
		// initdb wants its user in /etc/passwd, and nobody is in all of them.
		account, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(account.Uid, 10, 32)
		gid, _ := strconv.ParseUint(account.Gid, 10, 32)
		who = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(home, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorldAt(t, []string{"HOME=" + home, "POSTHORN_DATA_DIR="}, nil)
	started := time.Now()
	serve := launch(t, "serve", w.environ, place{who: who}, "serve").ready()
	t.Logf("ready after %v", time.Since(started).Round(10*time.Millisecond))
	w.serveAt(serve)
	data := filepath.Join(home, ".local", "share", "posthorn")
	if _, err := os.Stat(filepath.Join(data, "postgres", "data")); err != nil {
		t.Error(err)
	}
	// The command finds the same data as the same user.
	w.at.who = who
	w.makeTenant()
	w.endpoint("/hook", nil)
	w.emit(event("order.completed", 1))
	eventually(t, patience, "the event arrives", func() bool { return w.receiver.count() == 1 })
	if code := serve.stop(); code != 0 {
		t.Errorf("it stopped with %d", code)
	}
	if n := serve.log.count(`"level":"ERROR"`); n != 0 {
		t.Errorf("%d errors were logged", n)
	}
}
