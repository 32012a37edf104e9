package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A proxy keeps idle connections and sends its next request on one of them. If the server closes that connection at
// the same moment, the proxy can't know whether a POST was processed, and responds 502. So a server that stops
// refuses new connections, which proxies try elsewhere, and closes the others with its responses.
const (
	drainTime = 3 * time.Second
	// Without a request for this long the remaining connections are unused. A busy machine can stop a proxy for some
	// tenths of a second.
	drainQuiet = time.Second
)

// drainer counts the connections of a server and, once the server stops, closes each with its next response.
type drainer struct {
	stopping atomic.Bool
	open     atomic.Int64
	last     atomic.Int64 // when a request started, in nanoseconds since start
	start    time.Time
}

// attach makes a server's connections known to the drainer. It must be called before the server serves.
func (d *drainer) attach(s *http.Server) {
	d.start = time.Now()
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.last.Store(int64(time.Since(d.start)))
		if d.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			d.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			d.open.Add(-1)
		}
	}
}

// linger keeps accepting connections while the readiness already says that the server stops: a balancer that asks for
// it sends connections here until it has noticed. Clients that keep a connection are told to open another one.
func (d *drainer) linger(delay time.Duration) {
	d.stopping.Store(true)
	time.Sleep(delay)
}

// drain closes the listener and returns once no connection is in use, after drainTime at the latest.
func (d *drainer) drain(l net.Listener) {
	d.stopping.Store(true)
	_ = l.Close()
	for began := time.Now(); d.open.Load() > 0 && time.Since(began) < drainTime; time.Sleep(5 * time.Millisecond) {
		if quiet := time.Since(d.start) - time.Duration(d.last.Load()); min(quiet, time.Since(began)) >= drainQuiet {
			return
		}
	}
}
