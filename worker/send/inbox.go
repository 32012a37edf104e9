package send

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
)

// inboxDoor connects to the receiver of test inboxes in the same process. It is a listener without an address: a dialer
// gets one end of a pipe in memory, and the receiver the other. So a delivery to an inbox opens no socket, needs no
// connection to the web process, and can arrive nowhere else, whatever its URL is (docs/adr/0011-inbox.md).
type inboxDoor struct {
	conns  chan net.Conn
	shut   chan struct{}
	once   sync.Once
	isOpen atomic.Bool
}

func newInboxDoor() *inboxDoor {
	return &inboxDoor{conns: make(chan net.Conn), shut: make(chan struct{})}
}

// open lets a receiver respond until the returned function is called. It is called once.
func (d *inboxDoor) open(receiver http.Handler) (shut func()) {
	server := &http.Server{
		Handler:           receiver,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(d) }) // ends with http.ErrServerClosed
	d.isOpen.Store(true)
	return func() {
		_ = server.Close() // closes the listener too
		serving.Wait()
	}
}

// newInboxTransport sends over HTTP as to any URL, but only through the door. It has its own transport: the other one
// keeps connections by host, and an inbox's host is this server's public one.
func newInboxTransport(g *guard) *inboxTransport {
	c := &inboxTransport{newHTTPTransport(g), newInboxDoor()}
	c.transport.DialContext, c.transport.DialTLSContext, c.small = c.door.dial, nil, nil
	return c
}

type inboxTransport struct {
	*httpTransport
	door *inboxDoor
}

// configure ignores the URL's host, except for the Host header that the receiver gets.
func (*inboxTransport) configure(s endpoint.Settings, _ *egress.Proxy) (any, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	u.Scheme = "http" // nothing leaves the process
	return &httpAddress{url: u, plain: true}, nil
}

var errDoorShut = errors.New("the receiver of test inboxes is closed")

func (d *inboxDoor) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if !d.isOpen.Load() {
		return nil, errDoorShut // no receiver in this process
	}
	ours, theirs := net.Pipe()
	select {
	case d.conns <- theirs:
		if p, ok := ctx.Value(phasesKey{}).(*phases); ok {
			p.mark(&p.connected)
		}
		return ours, nil
	case <-d.shut:
		return nil, errDoorShut
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept makes the door a net.Listener.
func (d *inboxDoor) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.shut:
		return nil, net.ErrClosed
	}
}

// Close closes it.
func (d *inboxDoor) Close() error {
	d.once.Do(func() { close(d.shut) })
	return nil
}

// Addr names it in logs.
func (d *inboxDoor) Addr() net.Addr { return &net.UnixAddr{Name: "inbox", Net: "pipe"} }
