package send

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// bothPaths are bodies that go through the small client and through http.Transport.
var bothPaths = map[string]string{"small": `{}`, "large": `"` + strings.Repeat("x", maxSmall) + `"`}

// expireConnections makes the connections of a sender as old as they may get, while they are kept.
func expireConnections(s *Sender) {
	h := s.transports[endpoint.HTTP].(*httpTransport)
	now := time.Now()
	h.small.mu.Lock()
	for _, list := range h.small.idle {
		for _, c := range list {
			c.expires = now
		}
	}
	h.small.mu.Unlock()
	h.aged.mu.Lock()
	defer h.aged.mu.Unlock()
	for _, list := range h.aged.by {
		for c := range list {
			c.expires = now
		}
	}
}

func TestABusyConnectionEndsAtItsAge(t *testing.T) {
	t.Parallel()
	for path, body := range bothPaths {
		server := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
		s := newTestSender(t)
		destination := someDestination(t, server.url())
		send := func() {
			t.Helper()
			if r, a := s.Deliver(t.Context(), destination, someMessage(body)); r.Status != 200 {
				t.Fatalf("%s: %+v %q", path, r, a.Error)
			}
		}
		send()
		send()
		expireConnections(s)
		send() // the last request of the first connection
		send()
		if n, conns := server.count(); n != 4 || conns != 2 {
			t.Errorf("%s: %d requests on %d connections, want 4 on 2", path, n, conns)
		}
	}
	for range 1000 {
		if l := lifetime(); l < maxAge*9/10 || l > maxAge*11/10 {
			t.Fatalf("a connection lives for %v", l)
		}
	}
}

func TestAConnectionIsKeptForLessThanTheReceiverSays(t *testing.T) {
	t.Parallel()
	for header, conns := range map[string]int{"": 1, "timeout=60": 1, "timeout=5, max=100": 1, "timeout=1": 3, "max=3, timeout=0": 3} {
		for path, body := range bothPaths {
			server := newRaw(t, func(c net.Conn, _ int) {
				line := ""
				if header != "" {
					line = "Keep-Alive: " + header + "\r\n"
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+line+"Content-Length: 2\r\n\r\nok")
			})
			s := newTestSender(t)
			destination := someDestination(t, server.url())
			for range 3 {
				if r, a := s.Deliver(t.Context(), destination, someMessage(body)); r.Status != 200 {
					t.Fatalf("%q, %s: %+v %q", header, path, r, a.Error)
				}
			}
			if n, got := server.count(); n != 3 || got != conns {
				t.Errorf("%q, %s: %d requests on %d connections, want %d", header, path, n, got, conns)
			}
		}
	}
}

func TestARestingConnectionIsClosedAtItsTimeAndNeverUnderARequest(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	var all agedConns
	c := all.add(ours, "receiver:80")
	first := c.take()
	second := c.take()
	c.rest(first, 0) // another request has it already
	c.rest(second, time.Hour)
	third := c.take()
	all.closeIdle("receiver:80")
	c.expire()
	if err := ours.SetDeadline(time.Time{}); err != nil {
		t.Fatalf("closed under a request: %v", err)
	}
	c.rest(third, time.Nanosecond)
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("it is open after its time")
	}
	eventuallyEmpty(t, &all)
}

func eventuallyEmpty(t *testing.T, all *agedConns) {
	t.Helper()
	for range 1000 {
		all.mu.Lock()
		n := len(all.by)
		all.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a closed connection is remembered")
}

// A receiver that closes a kept connection when a request is on its way has most likely not read it. The attempt says
// so, and the next one uses none of the connections that were kept as long.
func TestALostRequestOnAKeptConnectionIsToldApart(t *testing.T) {
	t.Parallel()
	for path, body := range bothPaths {
		for end, hangUp := range map[string]func(net.Conn){"closes": func(c net.Conn) { _ = c.Close() }, "resets": resetConn} {
			var mu sync.Mutex
			served := map[net.Conn]int{}
			together := make(chan struct{})
			server := newRaw(t, func(c net.Conn, n int) {
				mu.Lock()
				served[c]++
				again := served[c] > 1
				mu.Unlock()
				if again {
					hangUp(c)
					return
				}
				if n == 3 {
					close(together)
				}
				<-together // so that three connections are kept
				answerOK(c)
			})
			s := newTestSender(t)
			destination := someDestination(t, server.url())
			var first sync.WaitGroup
			for range 3 {
				first.Go(func() {
					if r, a := s.Deliver(t.Context(), destination, someMessage(body)); r.Status != 200 {
						t.Errorf("%s, %s: %+v %q", path, end, r, a.Error)
					}
				})
			}
			first.Wait()
			r, a := s.Deliver(t.Context(), destination, someMessage(body))
			if !r.Stale || r.Failure != delivery.FailReset || !strings.Contains(a.Error, "kept from an earlier request") {
				t.Errorf("%s, %s: %+v %q, want a reset of a kept connection", path, end, r, a.Error)
			}
			if r, a = s.Deliver(t.Context(), destination, someMessage(body)); r.Status != 200 {
				t.Errorf("%s, %s: the next attempt: %+v %q", path, end, r, a.Error)
			}
			if n, conns := server.count(); n != 5 || conns != 4 {
				t.Errorf("%s, %s: %d requests on %d connections, want 5 on 4", path, end, n, conns)
			}
		}
	}
}

func TestOnlyAnEndWithoutAByteOnAKeptConnectionIsALostRequest(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Conn, int){
		"a new connection": func(c net.Conn, _ int) { _ = c.Close() },
		"a byte was read": func(c net.Conn, n int) {
			if n == 1 {
				answerOK(c)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 2")
			_ = c.Close()
		},
		"a timeout": func(c net.Conn, n int) {
			if n == 1 {
				answerOK(c)
				return
			}
			_, _ = c.Read(make([]byte, 1))
		},
	} {
		for path, body := range bothPaths {
			server := newRaw(t, serve)
			s := newTestSender(t)
			destination := someDestination(t, server.url())
			destination.timeout = 500 * time.Millisecond
			for range 2 {
				r, a := s.Deliver(t.Context(), destination, someMessage(body))
				if r.Stale {
					t.Errorf("%s, %s: %+v %q", name, path, r, a.Error)
				}
			}
		}
	}
}
