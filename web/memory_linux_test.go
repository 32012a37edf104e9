package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const largestBatch = 10 << 20

func TestTheMemoryLimitFollowsTheUseBothWays(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		limit, live int64
		busy, calm  bool
		want        int64
	}{
		{quietMemoryLimit, 10 * mib, false, false, quietMemoryLimit},
		{quietMemoryLimit, 60 * mib, false, false, quietMemoryLimit}, // little garbage: more collections cost nothing
		{quietMemoryLimit, 10 * mib, true, false, busyMemoryLimit},
		{quietMemoryLimit, 60 * mib, true, false, fullMemoryLimit},
		{quietMemoryLimit, 70 * mib, false, true, fullMemoryLimit},
		{busyMemoryLimit, 25 * mib, true, false, busyMemoryLimit},
		{busyMemoryLimit, 35 * mib, true, false, 140 * mib},
		{busyMemoryLimit, 60 * mib, true, false, fullMemoryLimit},
		{fullMemoryLimit, 40 * mib, false, true, quietMemoryLimit},
		{busyMemoryLimit, 30 * mib, false, false, busyMemoryLimit},
		{busyMemoryLimit, 30 * mib, false, true, quietMemoryLimit},
		{busyMemoryLimit, 100 * mib, true, false, 200 * mib},
		{200 * mib, 60 * mib, false, true, 200 * mib}, // no swinging
		{200 * mib, 60 * mib, true, false, 200 * mib},
		{2000 * mib, 300 * mib, false, false, 600 * mib},
		{2000 * mib, 20 * mib, false, true, quietMemoryLimit},
	} {
		if got := memoryLimit(c.limit, c.live, c.busy, c.calm); got != c.want {
			t.Errorf("limit %d MiB, %d MiB live, busy %v, calm %v: %d MiB, want %d", c.limit/mib, c.live/mib, c.busy, c.calm, got/mib, c.want/mib)
		}
	}
}

// resident is how much memory a process holds, in bytes. Pages of its program are not counted: they become resident as
// they are first used, and belong to the page cache.
func (p *process) resident() int64 {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		p.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "RssAnon:")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kib << 10
}

// measured is the program with the measured memory: this one, or one without the race detector, as it is released.
var measured = sync.OnceValues(func() (string, error) {
	if raceFactor == 1 {
		return os.Executable()
	}
	dir, err := os.MkdirTemp("", "posthorn-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "posthorn")
	build := exec.Command("go", "build", "-trimpath", "-tags", "nomsgpack", "-ldflags", "-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
})

// launchMeasured starts a process to measure its memory.
func launchMeasured(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	binary, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	return launchBinary(t, binary, environ, args...)
}

// declare opens a connection that declares the largest batch, and sends the first bytes of it.
func declare(t *testing.T, url, key string, sent int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "POST /api/v1/events/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", key, largestBatch)
	go func() { _, _ = io.Copy(c, io.LimitReader(zeros{}, int64(sent))) }()
	return c
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// goroutines is how many a process has: one more for each request in flight.
func goroutines(t *testing.T, metrics string) int {
	t.Helper()
	_, body := fetch(t, metrics, "")
	_, after, _ := strings.Cut(body, "\ngo_goroutines ")
	n, err := strconv.Atoi(strings.Fields(after + " x")[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestADeclaredBodyCostsNothingBeforeItArrives(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	p := launchMeasured(t, append(environ, anyPorts...), "web")
	at := p.serving()
	const connections = 1600
	before, idle := p.resident(), goroutines(t, at.Metrics)
	// A fresh heap's pages are untouched, and cost nothing the first time. Later rounds find what the ones before them
	// left.
	for round := range 6 {
		open := make([]net.Conn, connections)
		for i := range open {
			open[i] = declare(t, at.URL, m.APIKey, 1)
		}
		eventually(t, "all requests are in flight", func() bool { return goroutines(t, at.Metrics) >= idle+connections })
		grown := p.resident() - before
		t.Logf("round %d: %d connections cost %d MiB beyond %d", round, connections, grown>>20, before>>20)
		if grown > 64<<20 {
			t.Errorf("round %d: %d connections cost %d MiB", round, connections, grown>>20)
		}
		for _, c := range open {
			_ = c.Close()
		}
		eventually(t, "all requests have ended", func() bool { return goroutines(t, at.Metrics) < idle+connections/10 })
	}
	eventually(t, "the memory has returned", func() bool { return p.resident()-before < 32<<20 })
}

func TestBodiesInFlightAreBoundedBySenderAndMemoryReturns(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m, other made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	succeed(t, environ, &other, "tenant", "create", "--name", "Other", "--json")
	p := launchMeasured(t, slices.Concat(environ, anyPorts, []string{"POSTHORN_BODY_MEMORY=400", "POSTHORN_BODY_MEMORY_PER_SENDER=195"}), "web")
	at := p.serving()
	before := p.resident()
	open := make([]net.Conn, 24)
	refused := make(chan *http.Response, len(open))
	for i := range open {
		open[i] = declare(t, at.URL, m.APIKey, largestBatch-1)
		go func() {
			if res, err := http.ReadResponse(bufio.NewReader(open[i]), nil); err == nil {
				refused <- res
			}
		}()
	}
	// The 24 batches are 240 MiB: at least 5 of them exceed the tenant's 195.
	for range 5 {
		select {
		case res := <-refused:
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				t.Errorf("%d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
			}
		case <-time.After(patience):
			t.Fatal("a body over the bound was not refused")
		}
	}
	if status, body := fetch(t, at.URL+"/api/v1/tenant", other.APIKey); status != http.StatusOK {
		t.Errorf("another tenant: %d %s", status, body)
	}
	// A body of another tenant finds room.
	if res := post(t, at.URL+"/api/v1/events", other.APIKey, `{"type":"a.b","data":1}`); res != http.StatusAccepted {
		t.Errorf("another tenant's event: %d", res)
	}
	if peak := p.resident() - before; peak < 100<<20 {
		t.Errorf("the peak is %d MiB: no peak", peak>>20)
	}
	for _, c := range open {
		_ = c.Close()
	}
	eventually(t, "the memory has returned", func() bool { return p.resident()-before < 64<<20 })
	if res := post(t, at.URL+"/api/v1/events", m.APIKey, `{"type":"a.b","data":1}`); res != http.StatusAccepted {
		t.Errorf("after the peak: %d", res)
	}
}

// post sends a body and returns the status.
func post(t *testing.T, url, key, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
