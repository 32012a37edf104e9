//go:build e2e || soak

package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"posthorn/tools/need"
)

// TestAFullDiskAcknowledgesNothingThatIsNotDurable fills the disk under the database, and empties it again.
func TestAFullDiskAcknowledgesNothingThatIsNotDurable(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=500m,mode=755"); err != nil {
		need.Missing(t, "the right to mount", "%v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	w := newWorldAt(t, []string{"POSTHORN_DATA_DIR=" + dir}, nil)
	serve := w.launch("serve", "serve").ready()
	t.Cleanup(func() { // before the disk goes
		if serve.running() {
			serve.stop()
		}
	})
	w.serveAt(serve)
	w.open(embeddedURL(dir))
	w.makeTenant()
	w.endpoint("/hook", settings{"max_in_flight": 20})
	text := make([]byte, 8<<10)
	if _, err := rand.Read(text); err != nil {
		t.Fatal(err)
	}
	stop, n := make(chan struct{}), 0
	var emitting sync.WaitGroup
	emitting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			batch := make([]emission, 200)
			for i := range batch {
				batch[i] = event("order.completed", n)
				batch[i].Data.Text = hex.EncodeToString(text)
				n++
			}
			w.emitAll(batch, 200, 20)
		}
	})
	eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) > 200 && w.receiver.count() > 100 })
	balloon := filepath.Join(dir, "balloon")
	fill(t, balloon)
	full := time.Now()
	eventually(t, patience, "events are refused for want of disk", func() bool { return w.refusals(http.StatusServiceUnavailable) > 50 })
	t.Logf("the first refusals came %v after the disk was full, at %d acknowledgements", time.Since(full).Round(10*time.Millisecond), len(w.acknowledgements()))
	acked := len(w.acknowledgements())
	if err := os.Remove(balloon); err != nil {
		t.Fatal(err)
	}
	healed := eventually(t, 30*time.Second, "events are accepted again", func() bool { return len(w.acknowledgements()) > acked+100 })
	close(stop)
	emitting.Wait()
	took := w.settled(n, time.Minute)
	t.Logf("healed %v after there was room again, settled %v after the last of %d acknowledgements; refusals by status %v, the slowest after %v",
		healed.Round(10*time.Millisecond), took.Round(10*time.Millisecond), n, w.codes,
		w.slow.Round(10*time.Millisecond))
	if w.slow > refusedWithin {
		t.Errorf("a refusal took %v; %v are promised", w.slow, refusedWithin)
	}
	if !serve.running() {
		t.Error("the process went down with its disk")
	}
	w.balanced(1)
	w.receiver.expectOnce(w.acknowledgements(), everyPath("/hook"))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for {
			if _, err = f.Write(make([]byte, size)); err != nil {
				break
			}
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
}
