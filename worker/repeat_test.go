package worker

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/emit"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
)

// oneRequestReceiver responds to the first request of each connection and resets the second one without reading it: an
// idle connection that the receiver closed when the request was on its way.
type oneRequestReceiver struct {
	URL      string
	mu       sync.Mutex
	attempts []string // of the requests with a response, by the header
}

func newOneRequestReceiver(t *testing.T) *oneRequestReceiver {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := &oneRequestReceiver{URL: "http://" + l.Addr().String() + "/hook"}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c.(*net.TCPConn))
		}
	}()
	return r
}

func (r *oneRequestReceiver) serve(c *net.TCPConn) {
	in := bufio.NewReader(c)
	request, err := http.ReadRequest(in)
	if err != nil {
		_ = c.Close()
		return
	}
	_, _ = io.Copy(io.Discard, request.Body)
	r.mu.Lock()
	r.attempts = append(r.attempts, request.Header.Get("Webhook-Attempt"))
	r.mu.Unlock()
	_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	_, _ = in.Peek(1)
	_ = c.SetLinger(0)
	_ = c.Close()
}

func TestARequestLostOnAKeptConnectionIsRepeatedAsARecordedAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ordering string
		body     string
	}{
		"small":            {"", `1`},
		"large":            {"", `"` + strings.Repeat("x", 20<<10) + `"`},
		"in strict order":  {"strict", `1`},
		"large and strict": {"strict", `"` + strings.Repeat("x", 20<<10) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := newOneRequestReceiver(t)
			tenant := h.tenant()
			ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
				s.RetryPolicy, s.MaxInFlight = "once", 1
				if tt.ordering != "" {
					s.Ordering = tt.ordering
				}
			})
			h.worker(true)
			const events = 6
			for i := range events {
				h.emit(tenant, emit.Item{Emission: event.Emission{Type: "order.completed", Data: []byte(tt.body)}})
				h.settled(10*time.Second, delivery.Delivered, i+1)
			}
			// Every send is on record, and the receiver saw the number of each.
			lost := h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1 AND NOT late AND number = 1 AND failure = $2 AND status = 0",
				ep, int16(delivery.FailReset))
			again := h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1 AND NOT late AND number = 2 AND status = 204", ep)
			if lost == 0 || lost != again {
				t.Errorf("%d lost attempts and %d repeats on record, want as many and some", lost, again)
			}
			if n := h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1", ep); n != events+lost {
				t.Errorf("%d attempts on record, want %d", n, events+lost)
			}
			if n := h.count("SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND attempts = 2", ep); n != lost {
				t.Errorf("%d deliveries count two attempts, want %d", n, lost)
			}
			if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND consecutive_failures > 0", ep); n != 0 {
				t.Error("a lost request counts against the endpoint")
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := fmt.Sprint(r.attempts); strings.Count(got, "2") != lost || len(r.attempts) != events {
				t.Errorf("the receiver saw the attempts %s, of which %d are repeats", got, lost)
			}
			h.balanced()
		})
	}
}

func TestAProbeThatWasLostOnAKeptConnectionIsGivenBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newOneRequestReceiver(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "once" })
	w, _ := h.worker(true)
	h.emitN(tenant, 1)
	h.settled(10*time.Second, delivery.Delivered, 1) // its connection is kept
	h.openBreaker(tenant, ep, 0)
	h.followed(w, ep)
	h.emitN(tenant, 1)
	h.settled(15*time.Second, delivery.Delivered, 2)
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND breaker_state = 0 AND consecutive_failures = 0", ep); n != 1 {
		t.Error("the breaker is not closed")
	}
	h.balanced()
}
