package send

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/retry"
	"posthorn/domain/signature"
)

// raw is a server of bytes: it reads each complete request and passes it with its number, from 1, to serve.
type raw struct {
	net.Listener
	mu       sync.Mutex
	requests []string // head and body, as they came
	conns    int
}

func newRaw(t testing.TB, serve func(c net.Conn, request int)) *raw {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.conns++
			r.mu.Unlock()
			go r.handle(c, serve)
		}
	}()
	return r
}

func (r *raw) handle(c net.Conn, serve func(net.Conn, int)) {
	defer func() { _ = c.Close() }()
	buffered := bufio.NewReader(c)
	for {
		var seen bytes.Buffer
		req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(oneByOne{buffered}, &seen)))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.requests = append(r.requests, seen.String()+"\x00"+string(body))
		n := len(r.requests)
		r.mu.Unlock()
		serve(c, n)
	}
}

// oneByOne keeps a reader from taking more than it needs.
type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

func (r *raw) url() string { return "http://" + r.Addr().String() + "/hook" }

func (r *raw) count() (requests, conns int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests), r.conns
}

func newTestSender(t testing.TB) *Sender {
	s := New(loopback(t))
	t.Cleanup(s.Close)
	return s
}

func answerOK(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }

// resetConn closes a connection so that the other side sees a reset.
func resetConn(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func TestAFailedAttemptNamesItsPhase(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		serve   func(c net.Conn, n int)
		url     string
		status  int
		failure delivery.Failure
		text    string
		within  time.Duration // at most; the endpoint's timeout is a second
	}{
		{"never answers", func(c net.Conn, _ int) { time.Sleep(3 * time.Second) }, "", 0, delivery.FailTimeout, "no response in time", 2 * time.Second},
		{"head drips", func(c net.Conn, _ int) {
			for range 60 {
				if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX: y"[:1]); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}, "", 0, delivery.FailTimeout, "no response in time", 2 * time.Second},
		{"body drips", func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			for range 60 {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}, "", 200, delivery.FailNone, "timed out", 2 * time.Second},
		{"resets", func(c net.Conn, _ int) { resetConn(c) }, "", 0, delivery.FailReset, "connection was closed", time.Second},
		{"closes", func(c net.Conn, _ int) { _ = c.Close() }, "", 0, delivery.FailReset, "connection was closed", time.Second},
		{
			"resets in the head", func(c net.Conn, _ int) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: b\r\n"); resetConn(c) }, "", 0, delivery.FailReset, "connection was closed",
			time.Second,
		},
		{
			"is no HTTP", func(c net.Conn, _ int) { _, _ = io.WriteString(c, "220 mail.example.com ESMTP\r\n"); _ = c.Close() }, "", 0, delivery.FailProtocol, `not valid HTTP: malformed HTTP status code`,
			time.Second,
		},
		{"head without end", func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("a", 1000)); err != nil {
					return
				}
			}
		}, "", 0, delivery.FailProtocol, "larger than 64 KiB", time.Second},
		{"one header without end", func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			for {
				if _, err := io.WriteString(c, strings.Repeat("a", 4096)); err != nil {
					return
				}
			}
		}, "", 0, delivery.FailProtocol, "larger than 64 KiB", time.Second},
		{"early hints without end", func(c net.Conn, _ int) {
			for {
				if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"); err != nil {
					return
				}
			}
		}, "", 0, delivery.FailProtocol, "larger than 64 KiB", 2 * time.Second},
		{"refuses", nil, "http://127.0.0.1:1025", 0, delivery.FailConnect, "connection refused", time.Second},
		{"redirects", func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
		}, "", 307, delivery.FailNone, "", time.Second},
		{"switches protocols", func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			time.Sleep(3 * time.Second)
		}, "", 101, delivery.FailNone, "", 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := tt.url
			var server *raw
			if tt.serve != nil {
				server = newRaw(t, tt.serve)
				address = server.url()
			}
			destination := someDestination(t, address)
			destination.timeout = time.Second
			began := time.Now()
			r, a := newTestSender(t).Deliver(t.Context(), destination, someMessage(`{}`))
			if took := time.Since(began); took > tt.within+time.Second {
				t.Errorf("ended after %v", took)
			}
			if r.Status != tt.status || r.Failure != tt.failure || !strings.Contains(a.Error, tt.text) || tt.text == "" &&
				a.Error != "" {
				t.Errorf("status %d, %s: %q; want status %d, %s: %q", r.Status, r.Failure, a.Error, tt.status, tt.failure, tt.text)
			}
			if strings.Contains(a.Error, "127.0.0.1") {
				t.Errorf("the tenant is told an address: %q", a.Error)
			}
			if server == nil {
				return
			}
			if n, _ := server.count(); n != 1 {
				t.Errorf("%d requests were sent, want 1", n)
			}
		})
	}
}

// alone runs a test in a process of its own, where nothing else uses memory. It returns true in that process.
func alone(t *testing.T) bool {
	const variable = "POSTHORN_TEST_ALONE"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func TestResponseBombsEndAtTheirLimitWithinBoundedMemory(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	const gigabyte = 1 << 30
	var sent atomic.Int64
	flood := func(c net.Conn, most int, piece []byte) {
		for n := 0; n < most; n += len(piece) {
			k, err := c.Write(piece)
			sent.Add(int64(k))
			if err != nil {
				return
			}
		}
	}
	var bomb bytes.Buffer // 64 MiB in 64 KiB
	z := gzip.NewWriter(&bomb)
	for range 1024 {
		_, _ = z.Write(make([]byte, 64<<10))
	}
	_ = z.Close()
	piece := bytes.Repeat([]byte("a"), 64<<10)
	bombs := map[string]func(c net.Conn, n int){
		"a gigabyte": func(c net.Conn, _ int) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", gigabyte)
			flood(c, gigabyte, piece)
		},
		"chunks without end": func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			flood(c, gigabyte, append([]byte("10000\r\n"), append(piece, "\r\n"...)...))
		},
		"one chunk of 2^60": func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n")
			flood(c, gigabyte, piece)
		},
		"gzip, unasked": func(c net.Conn, _ int) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb.Len())
			_, _ = c.Write(bomb.Bytes())
		},
		"a head without end": func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			flood(c, gigabyte, piece)
		},
		"a chunk's extension without end": func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")
			flood(c, gigabyte, piece)
		},
		"trailers without end": func(c net.Conn, _ int) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\na\r\n0\r\nX: ")
			flood(c, gigabyte, piece)
		},
	}
	s := newTestSender(t)
	var peak atomic.Uint64
	stop := make(chan struct{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	runtime.GC()
	before := heap()
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				peak.Store(max(peak.Load(), heap()))
			case <-stop:
				return
			}
		}
	})
	var all sync.WaitGroup
	for name, serve := range bombs {
		server := newRaw(t, serve)
		for range 8 { // concurrently
			all.Go(func() {
				destination := someDestination(t, server.url())
				destination.timeout = 2 * time.Second
				began := time.Now()
				_, a := s.Deliver(context.Background(), destination, someMessage(`{}`))
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s: ended after %v", name, took)
				}
				if len(a.ResponseExcerpt) > delivery.MaxExcerpt || len(a.ResponseHeaders) > delivery.MaxHeaderText {
					t.Errorf("%s: %d bytes of the body and %d of the head are kept", name, len(a.ResponseExcerpt), len(a.ResponseHeaders))
				}
			})
		}
	}
	all.Wait()
	close(stop)
	watching.Wait()
	if grown := int64(peak.Load()) - int64(before); grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if n := sent.Load(); n > 512<<20 {
		t.Errorf("%d MiB were taken in", n>>20)
	}
}

func TestAResponseIsKeptInPartAndAsText(t *testing.T) {
	t.Parallel()
	server := newRaw(t, func(c net.Conn, _ int) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Bad: a\xffb\r\nX-Long: "+strings.Repeat("ä", 4000)+"\r\nContent-Length: 20000\r\n\r\n"+strings.Repeat("x", 20000))
	})
	_, a := newTestSender(t).Deliver(t.Context(), someDestination(t, server.url()), someMessage(`{}`))
	if len(a.ResponseExcerpt) != delivery.MaxExcerpt {
		t.Errorf("%d bytes of the body are kept, want %d", len(a.ResponseExcerpt), delivery.MaxExcerpt)
	}
	if len(a.ResponseHeaders) > delivery.MaxHeaderText || strings.ContainsRune(a.ResponseHeaders, 0) ||
		!strings.HasPrefix(a.ResponseHeaders, "Content-Length: 20000\n") {
		t.Errorf("headers kept as %.60q, %d bytes", a.ResponseHeaders, len(a.ResponseHeaders))
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	server := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
	s := newTestSender(t)
	destination := someDestination(t, server.url())
	var first, last *queue.Attempt
	for i := range 5 {
		r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
		if r.Status != 200 {
			t.Fatalf("%+v: %s", r, a.Error)
		}
		if i == 0 {
			first = a
		}
		last = a
	}
	if n, conns := server.count(); n != 5 || conns != 1 {
		t.Errorf("%d requests on %d connections, want 5 on 1", n, conns)
	}
	if first.Connect == 0 || last.Connect != 0 {
		t.Errorf("the first attempt connected for %d µs and the last for %d: want the first alone", first.Connect, last.Connect)
	}
}

// A reused connection that is reset after the request was written: the transport must not send again by itself.
func TestAResetConnectionIsOneAttempt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		headers []signature.Header
		get     bool
	}{
		{"plain", nil, false},
		{"with an idempotency key", []signature.Header{{Name: "Idempotency-Key", Value: "abc"}}, false},
		{"with another", []signature.Header{{Name: "X-Idempotency-Key", Value: "abc"}}, false},
		{"a challenge by GET", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := newRaw(t, func(c net.Conn, n int) {
				if n == 2 {
					_ = c.Close() // the request is read, no byte is answered
					return
				}
				answerOK(c)
			})
			s := newTestSender(t)
			destination := someDestination(t, server.url())
			destination.headers = tt.headers
			send := func() delivery.Result {
				if tt.get {
					status, _, _, _ := s.Verify(t.Context(), destination, Ask{Mode: "challenge_get"}, sql.PendingVerificationsRow{
						ID:        db.NewID(),
						Challenge: "abc",
						Tries:     1,
					})
					return delivery.Result{Status: status}
				}
				r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`))
				return r
			}
			if r := send(); r.Status != 200 {
				t.Fatalf("the first: %+v", r)
			}
			if r := send(); r.Status == 200 {
				t.Errorf("the second: %+v, although its connection was closed", r)
			}
			if n, conns := server.count(); n != 2 || conns != 1 {
				t.Errorf("%d requests on %d connections, want 2 on 1: the transport sent again by itself", n, conns)
			}
			if tt.get && !strings.HasPrefix(server.requests[0], "GET /hook?challenge=abc HTTP/1.1\r\n") {
				t.Errorf("%q", server.requests[0])
			}
		})
	}
}

func TestNoHeaderCanBeInjected(t *testing.T) {
	t.Parallel()
	server := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
	s := newTestSender(t)
	for _, value := range []string{"a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\x00b", "a\r\n\r\nPOST /evil HTTP/1.1"} {
		destination := someDestination(t, server.url())
		destination.headers = []signature.Header{{Name: "X-Shop", Value: value}}
		if r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status == 200 {
			t.Errorf("%q was sent", value)
		}
		destination.headers = []signature.Header{{Name: value, Value: "x"}}
		if r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status == 200 {
			t.Errorf("a header named %q was sent", value)
		}
	}
	for i, got := range server.requests {
		if strings.Contains(strings.ToLower(got), "evil") {
			t.Errorf("request %d: %q", i, got)
		}
	}
}

func TestPhasesAreRecorded(t *testing.T) {
	t.Parallel()
	server := newRaw(t, func(c net.Conn, _ int) {
		time.Sleep(60 * time.Millisecond)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
		time.Sleep(60 * time.Millisecond)
		_, _ = io.WriteString(c, "ok")
	})
	_, a := newTestSender(t).Deliver(t.Context(), someDestination(t, server.url()), someMessage(`{}`))
	// A client that notices the first byte late counts the time as waiting, so only the sum has a lower bound for
	// reading.
	if a.Wait < 50000 || a.Read <= 0 || a.Wait+a.Read < 110000 || a.Total < 110000 {
		t.Errorf("waited %d, read %d, %d µs in all", a.Wait, a.Read, a.Total)
	}
	if sum := a.DNS + a.Connect + a.TLS + a.Wait + a.Read; sum > a.Total {
		t.Errorf("the phases make %d µs of %d", sum, a.Total)
	}
	if a.TLS != 0 || a.DNS != 0 {
		t.Errorf("TLS %d and DNS %d µs without either", a.TLS, a.DNS)
	}
}

// A host that accepts no connection: its queue is full.
func TestAHostThatDoesNotAnswerIsAConnectError(t *testing.T) {
	t.Parallel()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for range 4 {
		if c, err := net.DialTimeout("tcp", address, 200*time.Millisecond); err == nil {
			defer func() { _ = c.Close() }()
		}
	}
	destination := someDestination(t, "http://"+address)
	destination.timeout = time.Second
	began := time.Now()
	r, a := newTestSender(t).Deliver(t.Context(), destination, someMessage(`{}`))
	if r.Failure != delivery.FailConnect || a.Error != "no connection in time" {
		t.Errorf("%s: %q, want a connect error", r.Failure, a.Error)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("ended after %v", took)
	}
}

func TestARequestCanceledByAStopSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := newRaw(t, func(net.Conn, int) { cancel(); time.Sleep(time.Second) })
	r, a := newTestSender(t).Deliver(ctx, someDestination(t, server.url()), someMessage(`{}`))
	if r.Failure != delivery.FailReset || !strings.Contains(a.Error, "stopped") {
		t.Errorf("%s: %q", r.Failure, a.Error)
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	s := New(loopback(t))
	if stockTransport(s).Proxy != nil {
		t.Error("the sender asks the environment for a proxy")
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	if r, a := s.Deliver(t.Context(), someDestination(t, server.URL), someMessage(`{}`)); r.Status != 200 {
		t.Errorf("%+v: %s", r, a.Error)
	}
}

// The wait that a response requests, from the wire to the decision.
func TestRetryAfterIsReadFromTheAnswer(t *testing.T) {
	t.Parallel()
	var value string
	r := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Retry-After"] = []string{value}
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer r.Close()
	s := New(loopback(t))
	defer s.Close()
	for _, tt := range []struct {
		value    string
		min, max time.Duration
	}{
		{"120", 2 * time.Minute, 2 * time.Minute},
		{time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59 * time.Minute, time.Hour},
		{time.Now().Add(time.Hour).UTC().Format(time.RFC1123), 59 * time.Minute, time.Hour},
		{strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10), 59 * time.Minute, time.Hour},
		{strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), 59 * time.Minute, time.Hour + time.Second},
		{"40.5", 41 * time.Second, 41 * time.Second},
		{"40, 50", 50 * time.Second, 50 * time.Second},
		{"0", 0, 0},
		{"-1", 0, 0},
		{"1e12", 0, 0},
		{"1000000000000", delivery.MaxRetryAfter, delivery.MaxRetryAfter},
		{"soon", 0, 0},
		{"", 0, 0},
	} {
		value = tt.value
		result, _ := s.Deliver(t.Context(), someDestination(t, r.URL), someMessage(`{}`))
		schedule, _ := retry.Named("five")
		d := delivery.Decide(delivery.Policy{Schedule: schedule}, 1, result, 0.5)
		if d.Status != delivery.Retrying || d.LaneWait < tt.min || d.LaneWait > tt.max {
			t.Errorf("%q: the lane waits %v, want %v to %v", tt.value, d.LaneWait, tt.min, tt.max)
		}
	}
}
