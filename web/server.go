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

// Limits of a connection (SECURITY: ingress). There is no limit for a whole answer here, since streams have none: each
// route sets its own deadlines, see limitTime.
const (
	headerTime  = 5 * time.Second
	idleTime    = 2 * time.Minute // longer than load balancers keep a connection, so that they close first
	headerBytes = 32 << 10
	headerCount = 500 // values
)

// newServer is the HTTP server of one address.
func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           boundHeaders(handler),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes, // for memory: net/http reads some KiB more, see boundHeaders
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// boundHeaders rejects requests whose line and headers are larger than promised. The bounds of net/http depend on its
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

// stopServer refuses new connections, waits for requests that run, and cuts off what is left when the time is up. A
// start that failed may have a listener that no server served.
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
