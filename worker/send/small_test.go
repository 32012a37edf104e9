package send

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// smallOf is the sender's small requests.
func smallOf(s *Sender) *smallRequests { return s.transports[endpoint.HTTP].(*httpTransport).small }

// keptConns counts the connections that wait for the next request.
func keptConns(s *Sender) int {
	small := smallOf(s)
	small.mu.Lock()
	defer small.mu.Unlock()
	return small.count
}

// A receiver can't distinguish which of the two sent a request.
func TestSmallRequestsAreThoseOfTheStandardTransport(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]signature.Header{
		nil,
		{{Name: "X-Shop", Value: " north "}, {Name: "Authorization", Value: "Bearer a"}},
		{{Name: "Content-Type", Value: "text/plain"}, {Name: "User-Agent", Value: "curl"}, {Name: "Webhook-Id", Value: "mine"}, {Name: "webhook-id", Value: "mine"}},
		{{Name: "Connection", Value: "close"}},
		{{Name: "Expect", Value: "100-continue"}},
	} {
		server := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
		small, stock := newTestSender(t), newTestSender(t)
		stock.transports[endpoint.HTTP].(*httpTransport).small = nil
		destination := someDestination(t, server.url()+"?a=%20b&c=d")
		destination.headers = headers
		m := someMessage(`{"n":1}`)
		var attempts []*queue.Attempt
		for _, s := range []*Sender{small, stock} {
			r, a := s.Deliver(t.Context(), destination, m)
			if r.Status != 200 {
				t.Fatalf("%v: %+v %s", headers, r, a.Error)
			}
			attempts = append(attempts, a)
		}
		var lines [2][]string
		for i := range lines {
			lines[i] = strings.Split(strings.ReplaceAll(server.requests[i], "\x00", "\r\n"), "\r\n")
			slices.Sort(lines[i])
			// The two were sent and signed one after the other.
			lines[i] = slices.DeleteFunc(lines[i], func(l string) bool {
				return strings.HasPrefix(l, "webhook-signature") || strings.HasPrefix(l, "webhook-timestamp")
			})
		}
		if !slices.Equal(lines[0], lines[1]) {
			t.Errorf("%v: small\n%q\nand stock\n%q", headers, lines[0], lines[1])
		}
		if attempts[0].ResponseHeaders != attempts[1].ResponseHeaders || string(attempts[0].ResponseExcerpt) != "ok" ||
			string(attempts[1].ResponseExcerpt) != "ok" {
			t.Errorf("%v: on record are %+v and %+v", headers, attempts[0], attempts[1])
		}
	}
}

// Data that arrived on an idle connection is not a response.
func TestAConnectionThatDidNotStaySilentIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(net.Conn){
		"closed":  func(c net.Conn) { _ = c.Close() },
		"reset":   resetConn,
		"unasked": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := make(chan struct{})
			server := newRaw(t, func(c net.Conn, n int) {
				answerOK(c)
				if n == 1 {
					<-kept
					after(c)
				}
			})
			s := newTestSender(t)
			destination := someDestination(t, server.url())
			if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
				t.Fatalf("the first: %+v %s", r, a.Error)
			}
			if keptConns(s) != 1 {
				t.Fatalf("%d connections are kept, want 1", keptConns(s))
			}
			close(kept)
			// The sweep closes it as soon as the data has arrived.
			for deadline := time.Now().Add(5 * time.Second); keptConns(s) != 0; smallOf(s).sweep() {
				if time.Now().After(deadline) {
					t.Fatal("the sweep keeps the connection")
				}
			}
			if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
				t.Errorf("the second: %+v %s", r, a.Error)
			}
			if requests, conns := server.count(); requests != 2 || conns != 2 {
				t.Errorf("%d requests on %d connections, want 2 on 2", requests, conns)
			}
		})
	}
}

// The same without the sweep, which runs every ten seconds: each use checks first.
func TestAKeptConnectionIsLookedAtBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	server := newRaw(t, func(c net.Conn, n int) {
		answerOK(c)
		if n == 1 {
			_ = c.Close()
		}
	})
	s := newTestSender(t)
	destination := someDestination(t, server.url())
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
		t.Fatalf("the first: %+v %s", r, a.Error)
	}
	kept := smallOf(s).idle[destination.to.(*httpAddress).origin][0]
	for deadline := time.Now().Add(5 * time.Second); kept.silence.holds(); {
		if time.Now().After(deadline) {
			t.Fatal("the end of the connection does not come")
		}
	}
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
		t.Errorf("the second: %+v %s", r, a.Error)
	}
}

func TestLargeRequestsUseTheStandardTransport(t *testing.T) {
	t.Parallel()
	server := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
	s := newTestSender(t)
	destination := someDestination(t, server.url())
	for _, size := range []int{100, maxSmall} {
		if r, a := s.Deliver(t.Context(), destination, someMessage(`"`+strings.Repeat("x", size)+`"`)); r.Status != 200 {
			t.Fatalf("%d bytes: %+v %s", size, r, a.Error)
		}
	}
	if _, conns := server.count(); conns != 2 || keptConns(s) != 1 {
		t.Errorf("%d connections, of which %d are those of small requests; want 2 and 1", conns, keptConns(s))
	}
}

func TestKeptConnectionsAreBoundedInNumberAndTime(t *testing.T) {
	t.Parallel()
	s := newSmallRequests(nil, nil)
	ends := make([]net.Conn, 0, maxIdlePerHost+1)
	for range cap(ends) {
		ours, theirs := net.Pipe()
		ends = append(ends, theirs)
		s.keep(&keptConn{Conn: ours, origin: "http://a", expires: time.Now().Add(maxAge)}, http.Header{})
	}
	if s.count != maxIdlePerHost {
		t.Errorf("%d are kept of one receiver, want %d", s.count, maxIdlePerHost)
	}
	if _, err := ends[maxIdlePerHost].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the last is open still: %v", err)
	}
	for _, c := range s.idle["http://a"] {
		c.usable = c.usable.Add(-idleFor)
	}
	s.sweep()
	if s.count != 0 || len(s.idle) != 0 || s.sweeper != nil {
		t.Errorf("%d are kept after %v", s.count, idleFor)
	}
	if _, err := ends[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the first is open still: %v", err)
	}
}

func TestAnEncryptedConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	var conns int
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns++ // the server calls it from the goroutine that accepts
		}
	}
	server.StartTLS()
	defer server.Close()
	s := newTestSender(t)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	stockTransport(s).TLSClientConfig.RootCAs = pool
	destination := someDestination(t, server.URL)
	var last *queue.Attempt
	for range 5 {
		var r delivery.Result
		if r, last = s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != http.StatusNoContent {
			t.Fatalf("%+v: %s", r, last.Error)
		}
	}
	server.Close() // no connection is counted after it
	if conns != 1 || last.TLS != 0 || last.Connect != 0 {
		t.Errorf("%d connections for 5 requests; the last took %d µs to connect and %d to encrypt", conns, last.Connect, last.TLS)
	}
}
