//go:build (e2e || soak) && unix

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/tools/need"
)

// hostile are receivers that take a webhook and answer badly. Each writes to the connection itself.
var hostile = map[string]func(c net.Conn, ended <-chan struct{}){
	"/never": func(_ net.Conn, ended <-chan struct{}) { <-ended },
	"/reset": func(c net.Conn, _ <-chan struct{}) {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	},
	"/slow-head": func(c net.Conn, ended <-chan struct{}) {
		drip(c, ended, "HTTP/1.1 200 OK\r\nX-Long: "+strings.Repeat("a", 1000))
	},
	"/slow-body": func(c net.Conn, ended <-chan struct{}) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
		drip(c, ended, strings.Repeat("a", 1000))
	},
	"/huge": func(c net.Conn, ended <-chan struct{}) {
		_, _ = io.WriteString(c, "HTTP/1.1 500 Oh\r\nContent-Length: 1073741824\r\n\r\n")
		flood(c, ended, bytes.Repeat([]byte("a"), 64<<10))
	},
	"/gzip": func(c net.Conn, ended <-chan struct{}) {
		_, _ = io.WriteString(c, "HTTP/1.1 500 Oh\r\nContent-Encoding: gzip\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
		flood(c, ended, zipped())
	},
	"/head": func(c net.Conn, ended <-chan struct{}) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		flood(c, ended, bytes.Repeat([]byte("X-More: "+strings.Repeat("b", 1000)+"\r\n"), 64))
	},
	"/noise": func(c net.Conn, ended <-chan struct{}) { flood(c, ended, []byte("SSH-2.0-OpenSSH_9.2\r\n")) },
}

// drip sends a text a byte at a time.
func drip(c net.Conn, ended <-chan struct{}, text string) {
	for i := range len(text) {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(100 * time.Millisecond): // the drip
		}
	}
}

// flood sends until the other side has had enough.
func flood(c net.Conn, ended <-chan struct{}, text []byte) {
	for {
		select {
		case <-ended:
			return
		default:
		}
		if _, err := c.Write(text); err != nil {
			return
		}
	}
}

// zipped is a megabyte of zeros, a thousandth as long.
func zipped() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	return b.Bytes()
}

// newHostileReceiver proves itself where it is asked to, and is hostile to everything else.
func newHostileReceiver(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	ended := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var event struct {
			Type string
			Data json.RawMessage
		}
		if json.Unmarshal(body, &event) == nil && event.Type == "endpoint.verification" {
			_, _ = w.Write(event.Data)
			return
		}
		requests.Add(1)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		hostile[r.URL.Path](c, ended)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		close(ended)
		_ = server.Close()
	})
	return "http://" + l.Addr().String(), requests
}

// resident is the memory of a process, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestHostileReceiversHurtOnlyThemselves: receivers that drip, flood, reset or never answer end at their limits, in
// bounded memory, and the others' events arrive as if they were not there.
func TestHostileReceiversHurtOnlyThemselves(t *testing.T) {
	// Not parallel: it compares times, and the tests beside it would change them.
	need.Linux(t)
	const (
		each    = 10 // as many as are sent before a breaker opens
		timeout = 2 * time.Second
		good    = 200
	)
	w := newWorld(t, nil)
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	w.endpoint("/good", settings{"event_types": []string{"good"}})
	at, requests := newHostileReceiver(t)
	for path := range hostile {
		w.endpoint(path, settings{
			"url":             at + path,
			"event_types":     []string{"bad" + path[1:]},
			"timeout_seconds": int(timeout.Seconds()),
			"max_in_flight":   10,
			"retry_policy":    settings{"name": "custom", "delays": []int{3600}},
		})
	}
	measure := func(from int) time.Duration {
		batch := make([]emission, good)
		for i := range batch {
			batch[i] = event("good", from+i)
		}
		w.emitAll(batch, 50, 8)
		eventually(t, patience, "the good arrive", func() bool { return w.receiver.count() == from+good })
		arrived := w.receiver.seen()[from:]
		slices.SortFunc(arrived, func(a, b arrival) int { return int(a.late() - b.late()) })
		return arrived[good*95/100].late()
	}
	alone := measure(0)
	before, most := resident(t, worker.cmd.Process.Pid), int64(0)
	var batch []emission
	for path := range hostile {
		for i := range each {
			batch = append(batch, event("bad"+path[1:], i))
		}
	}
	w.emitAll(batch, 0, 16)
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				most = max(most, resident(t, worker.cmd.Process.Pid))
			}
		}
	}()
	beside := measure(good)
	eventually(t, patience, "every hostile receiver had its requests", func() bool {
		return w.ask("SELECT count(*) FROM deliveries d WHERE attempts > 0 AND event_type LIKE 'bad%'") == len(batch)
	})
	close(stop)
	<-watched
	// Other tests run on this machine: what it did before and after tells what it costs without hostile receivers.
	alone = max(alone, measure(2*good))
	t.Logf("p95 %v alone, %v beside; the worker grew from %d to %d MiB", alone.Round(100*time.Microsecond), beside.Round(100*time.Microsecond), before>>20, most>>20)
	if grown := most - before; grown > 64<<20 {
		t.Errorf("the worker grew by %d MiB; 64 are promised", grown>>20)
	}
	// Twice as long as alone; in the first 150 ms all that is seen is what the machine does besides.
	if beside > max(2*alone, 150*time.Millisecond) {
		t.Errorf("the others' p95 was %v beside hostile receivers and %v alone", beside, alone)
	}
	if longest := time.Duration(w.ask("SELECT max(total_us) FROM attempts")) * time.Microsecond; longest > timeout+time.Second {
		t.Errorf("an attempt took %v with a time-out of %v", longest, timeout)
	}
	if longest := w.ask("SELECT coalesce(max(octet_length(response_excerpt)), 0) FROM attempts"); longest == 0 || longest > 16<<10 {
		t.Errorf("the longest stored excerpt has %d bytes; 16 KiB are allowed", longest)
	}
	// No request was sent twice on the quiet.
	if n := w.ask("SELECT count(*) FROM attempts WHERE url NOT LIKE '%/good'"); int64(n) != requests.Load() || n != len(batch) {
		t.Errorf("%d attempts are on record, %d requests came for %d events", n, requests.Load(), len(batch))
	}
	for path, failure := range map[string]int{"/never": 4, "/slow-head": 4, "/reset": 5, "/head": 7, "/noise": 7} {
		if n := w.ask("SELECT count(*) FROM attempts WHERE url LIKE '%' || $1 AND failure = $2", path, failure); n != each {
			t.Errorf("%s: %d of %d attempts failed as %d", path, n, each, failure)
		}
	}
}

// late is how long after its event's making a request arrived, by the clock that both processes share.
func (a *arrival) late() time.Duration { return a.started.Sub(a.made) }
