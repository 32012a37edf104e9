//go:build (e2e || soak) && unix

package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// dataDir is a data directory that the private server's own account can reach. It goes with the test, once a server
// that lost its Posthorn at the end has let go of it.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "posthorn-e2e-data-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for started := startWatch(); ; time.Sleep(50 * time.Millisecond) {
			err := os.RemoveAll(dir)
			if err == nil {
				return
			}
			if started.passed() > 30*time.Second {
				t.Error(err)
				return
			}
		}
	})
	return dir
}

// embeddedURL is the way into the private server of a data directory.
func embeddedURL(dir string) string {
	return "postgres://posthorn@/posthorn?sslmode=disable&port=5432&host=" + url.QueryEscape(filepath.Join(dir, "postgres", "run"))
}

// newPrivateWorld makes an installation whose one process runs the database too.
func newPrivateWorld(t *testing.T, answer func(*arrival) int) (w *world, dir string, serve *process) {
	t.Helper()
	dir = dataDir(t)
	w = newWorldAt(t, []string{"POSTHORN_DATA_DIR=" + dir}, answer)
	serve = w.launch("serve", "serve").ready()
	w.serveAt(serve)
	w.open(embeddedURL(dir))
	w.makeTenant()
	return w, dir, serve
}

// TestAKilledServerKeepsWhatItAcknowledged kills everything at once, database included, under a client that retries.
func TestAKilledServerKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	w, _, serve := newPrivateWorld(t, nil)
	for _, path := range []string{"/one", "/two"} {
		w.endpoint(path, settings{"max_in_flight": 20})
	}
	const perSecond = 200
	n := max(kills(t)/2, 1)
	batch := make([]emission, perSecond*4*(n+1))
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, perSecond, 40)
	}()
	h := hits{}
	for k := range n {
		before := len(w.acknowledgements())
		eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= before+perSecond })
		serve.kill()
		killed := time.Now()
		serve = w.launch("serve", "serve").serving()
		w.serveAt(serve)
		acked := len(w.acknowledgements())
		eventually(t, patience, "events are accepted again", func() bool { return len(w.acknowledgements()) > acked })
		t.Logf("kill %d: accepted again after %v", k+1, time.Since(killed).Round(10*time.Millisecond))
		w.sql.Reset() // its connections were to the server that was killed
		h.after(w, killed)
	}
	<-done
	took := w.settled(2*len(batch), time.Minute)
	h.late(w)
	t.Logf("settled %v after the last acknowledgement; refusals by status: %v", took.Round(100*time.Millisecond), w.codes)
	if len(w.acknowledgements()) != len(batch) {
		t.Errorf("%d of %d keys were acknowledged", len(w.acknowledgements()), len(batch))
	}
	if w.codes[0] == 0 {
		t.Error("no request was cut off: the kills hit nothing")
	}
	if n := w.ask("SELECT count(*) FROM idempotency_keys"); n != len(batch) {
		t.Errorf("%d idempotency keys are stored for %d", n, len(batch))
	}
	w.balanced(2)
	w.receiver.expect(w.acknowledgements(), everyPath("/one", "/two"), func(what string) int { return 1 + h[what] })
}
