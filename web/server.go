package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"posthorn/domain/fault"
)

// Limits of a connection (SECURITY.md).
const (
	headerTime  = 5 * time.Second
	idleTime    = 2 * time.Minute // longer than load balancers keep a connection, so that they close first
	headerBytes = 32 << 10
	headerCount = 500 // values
)

// limits are the times for a request to arrive, and for its response to be made and read. The server sets these
// deadlines before it reads anything, so they hold on every path. Streams and downloads replace both by their own
// deadlines.
type limits struct {
	Request  time.Duration
	Response time.Duration // 0: unlimited
}

// publicLimits let 10 MiB, the largest batch, arrive at 1.4 Mbit/s.
var publicLimits = limits{Request: 60 * time.Second, Response: 90 * time.Second}

// newServer is the HTTP server of one address.
func newServer(handler http.Handler, within limits, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           boundHeaders(closing(handler, within.Request == 0)),
		ReadTimeout:       within.Request,
		WriteTimeout:      within.Response,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes, // for memory: net/http reads some KiB more, see boundHeaders
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// boundHeaders rejects requests with a line and headers over the documented size. The bounds of net/http depend on its
// buffers and on its version.
func boundHeaders(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, count := len(r.Method)+len(r.RequestURI)+len(r.Proto)+len(r.Host), 0
		for name, values := range r.Header {
			count += len(values)
			for _, value := range values {
				size += len(name) + len(": \r\n") + len(value)
			}
		}
		if size > headerBytes || count > headerCount {
			w.Header().Set("Connection", "close")
			http.Error(w, fmt.Sprintf("The headers of a request are at most %d KiB and %d values. Send fewer or shorter ones.",
				headerBytes>>10, headerCount), http.StatusRequestHeaderFieldsTooLarge)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// closing closes the connection after a request with a Transfer-Encoding. If such a request also has a Content-Length,
// a proxy in front can have read its end elsewhere, and take the rest for another client's request (request smuggling):
// RFC 9112 wants the connection closed then (section 6.1). net/http drops the Content-Length before a handler can see
// it, so every chunked request ends its connection. Clients that know the length of their body send it and keep theirs.
// An address that reads no bodies does not wait for one either.
func closing(next http.Handler, noBodies bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || noBodies && r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// listen takes an address; variable names the setting to change where it can't be had.
func listen(ctx context.Context, addr, variable string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err == nil {
		return l, nil
	}
	why := "can't be listened on (" + strings.ReplaceAll(err.Error(), "%", "%%") + "). Set %s to an address of this machine, as 127.0.0.1:8080."
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = "is in use by another program. Stop that one, or set %s to a free address."
		if variable == "POSTHORN_METRICS_ADDR" {
			why = "is in use by another program. Stop that one, or set %s to a free address, or to off."
		}
	case errors.Is(err, os.ErrPermission):
		why = "can't be used by this user. Set %s to a port of 1024 or above."
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		why = "isn't an address of this machine. Correct %s; :8080 means all of its addresses."
	}
	return nil, fault.New(fault.Unavailable, "address_unavailable", addr+" "+fmt.Sprintf(why, variable))
}

// serve runs a server until it is shut down.
func serve(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	}
	return nil
}

// stopServer refuses new connections, waits for running requests, and cuts off the rest when the time is up. A start
// that failed may have a listener without a server.
func stopServer(s *http.Server, l net.Listener, grace time.Duration) {
	if s != nil {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
	}
	if l != nil {
		_ = l.Close()
	}
}
