package dashboard_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/handlers/dashboard"
	"posthorn/tools/webtest"
)

// streaming is a world whose streams are quick to notice a sign-out, on a real connection.
func streaming(t *testing.T, closing chan struct{}) (*world, string) {
	t.Helper()
	w := newWorld(t)
	w.engine = webtest.Serve(w.Config(time.Now, base), dashboard.Routes(dashboard.Deps{
		DB:      w.db,
		Keys:    w.ring,
		BaseURL: base,
		Log:     w.Logger,
		Now:     time.Now,
		Emitter: w.commit,
		Closing: closing,
		Beat:    50 * time.Millisecond,
	}))
	s := httptest.NewServer(w.engine)
	t.Cleanup(s.Close)
	return w, s.URL
}

// stream opens a stream of changes.
func (b *browser) stream(url string) *http.Response {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.w.t.Fatal(err)
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	b.w.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// hear reads a stream until an event of a name, and reports whether it came before the end.
func hear(lines *bufio.Scanner, name string) bool {
	for lines.Scan() {
		if lines.Text() == "event: "+name {
			return true
		}
	}
	return false
}

func TestOpenPagesHearOfChangesUntilTheirReaderSignsOut(t *testing.T) {
	t.Parallel()
	w, url := streaming(t, nil)
	tn, other := w.tenant("Acme"), w.tenant("Other")
	viewer := tn.of[access.Viewer]
	res := viewer.stream(url + tn.path + "/changes")
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%d, %s", res.StatusCode, got)
	}
	lines := bufio.NewScanner(res.Body)
	if !hear(lines, "open") || !hear(lines, "change") {
		t.Fatal("the stream has no beginning")
	}
	w.SQL("INSERT INTO books (tenant_id, day, accepted) VALUES ($1, current_date, 1)", tn.id.String())
	if !hear(lines, "change") {
		t.Fatal("a change was not heard")
	}
	for name, b := range map[string]*browser{"nobody": {w: w}, "somebody else": other.of[access.Owner]} {
		if got := b.stream(url + tn.path + "/changes").StatusCode; got/100 == 2 {
			t.Errorf("%s has a stream: %d", name, got)
		}
	}
	w.SQL("DELETE FROM sessions")
	for lines.Scan() { // it ends
		if strings.HasPrefix(lines.Text(), "event: change") {
			t.Error("a change after the sign-out")
		}
	}
}

func TestStreamsOfASessionAreBoundedAndEndWithTheProcess(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	w, url := streaming(t, closing)
	tn := w.tenant("Acme")
	owner := tn.of[access.Owner]
	var open []*bufio.Scanner
	for range 6 {
		lines := bufio.NewScanner(owner.stream(url + tn.path + "/changes").Body)
		if !hear(lines, "open") {
			t.Fatal("no stream")
		}
		open = append(open, lines)
	}
	if got := owner.stream(url + tn.path + "/changes").StatusCode; got != http.StatusNoContent {
		t.Errorf("one more stream of the session: %d", got)
	}
	if got := tn.of[access.Viewer].stream(url + tn.path + "/changes").StatusCode; got != http.StatusOK {
		t.Errorf("a stream of another session: %d", got)
	}
	close(closing)
	for _, lines := range open {
		for lines.Scan() { // each ends
			continue
		}
	}
	if got := owner.stream(url + tn.path + "/changes").StatusCode; got != http.StatusOK {
		t.Errorf("a stream after the others have ended: %d", got)
	}
}
