//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

// pollerLibraries are Svix's libraries as their registries have them, with a program that reads a feed.
var pollerLibraries = []library{
	{name: "node", prepare: [][]string{npm("svix@2")}, run: []string{"node", "node.mjs"}},
	{name: "python", prepare: [][]string{pip("svix>=2,<3")}, run: []string{"python3", "python.py"}},
	{
		name:     "go",
		folder:   "go",
		hostOnly: true,
		prepare:  [][]string{{"go", "build", "-mod=mod", "-o", "poller", "."}},
		run:      []string{"./poller"},
	},
}

// TestSvixPollersReadEveryEventOnceThroughKills runs Svix's own libraries against a server that is killed with its
// database while they read, with both versions of pollers. Each prints what it got: the same events, each once, in
// one order.
func TestSvixPollersReadEveryEventOnceThroughKills(t *testing.T) {
	t.Parallel()
	need.Programs(t, "npm", "python3", "go")
	dir := dataDir(t)
	w := newWorldAt(t, []string{"POSTHORN_DATA_DIR=" + dir, "POSTHORN_SVIX_HOST=" + svixHost}, nil)
	serve := w.launch("serve", "serve").ready()
	w.serveAt(serve)
	w.open(embeddedURL(dir))
	w.makeTenant()
	var feed struct {
		ID string `json:"id"`
	}
	w.manage("POST", "/endpoints", map[string]string{"kind": "feed"}, &feed)
	const perSecond = 500
	batch := make([]emission, brokered)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	read := map[string]chan []string{}
	for _, l := range pollerLibraries {
		at := l.laid(t)
		for _, version := range []string{"1", "2"} {
			name := l.name + "-" + version
			read[name] = make(chan []string, 1)
			run := inDir(at, l.run...)
			run.Env = append(
				os.Environ(),
				"SVIX_URL="+w.front(l.hostOnly),
				"SVIX_TOKEN="+w.key,
				"SVIX_APP="+w.tenant,
				"SVIX_FEED="+feed.ID,
				"SVIX_CONSUMER="+name,
				"SVIX_POLLER="+version,
				fmt.Sprintf("SVIX_TOTAL=%d", len(batch)),
				"PYTHONPATH="+filepath.Join(at, "packages"),
			)
			go func() {
				out, err := within(t, 8*time.Minute, run)
				if err != nil {
					t.Errorf("%s: %v\n%s", name, err, out[max(0, len(out)-2000):])
				}
				read[name] <- strings.Fields(out)
			}()
		}
	}
	emitted := make(chan struct{})
	go func() {
		defer close(emitted)
		w.emitAll(batch, perSecond, 40)
	}()
	for range 3 {
		before := len(w.acknowledgements())
		eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= before+len(batch)/6 })
		serve.kill()
		serve = w.launch("serve", "serve").serving()
		w.serveAt(serve)
	}
	<-emitted
	var order []string
	for name, done := range read {
		got := <-done
		if once := slices.Compact(slices.Sorted(slices.Values(got))); len(once) != len(got) || len(got) != len(batch) {
			t.Errorf("%s read %d events, %d of them different, of %d", name, len(got), len(once), len(batch))
		}
		if order == nil {
			order = got
		}
		if !slices.Equal(got, order) {
			t.Errorf("%s read in another order", name)
		}
	}
}

// laid lays a program with its library into a folder.
func (l library) laid(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/pollers", l.folder))); err != nil {
		t.Fatal(err)
	}
	for _, step := range l.prepare {
		out, err := within(t, 12*time.Minute, inDir(dir, step...))
		need.Reached(t, "the registry of "+l.name, err, []byte(out))
	}
	return dir
}

// front is an address that stays while the processes behind it are replaced.
func (w *world) front(hostOnly bool) (address string) {
	w.t.Helper()
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(w.web())
		if err != nil {
			w.t.Error(err)
			return
		}
		r.SetURL(to)
		if hostOnly {
			r.Out.Host = svixHost
		}
	}})
	w.t.Cleanup(proxy.Close)
	if hostOnly {
		return proxy.URL
	}
	return proxy.URL + "/svix"
}
