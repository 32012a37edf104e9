package send

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"posthorn/domain/delivery"
)

// maxAge is how long connections are used, within a tenth: connections of one moment don't end together. Without it a
// busy endpoint would never follow a change of its DNS records.
const maxAge = time.Minute

func lifetime() time.Duration {
	return time.Duration(float64(maxAge) * (0.9 + 0.2*rand.Float64()))
}

// keptFor is how long a connection can be kept unused after a response.
func keptFor(expires, now time.Time, answer http.Header) time.Duration {
	return min(delivery.IdleLimit(answer.Get("Keep-Alive"), idleFor), expires.Sub(now))
}

// agedConns closes idle connections of http.Transport, which knows neither their age nor how long a receiver keeps
// them.
type agedConns struct {
	mu sync.Mutex
	by map[string]map[*agedConn]struct{} // by host and port
}

// agedConn is a connection of http.Transport. It is closed only while no request has it.
type agedConn struct {
	net.Conn
	all     *agedConns
	address string
	expires time.Time

	mu    sync.Mutex
	uses  int // requests that got it
	idle  bool
	timer *time.Timer
}

func (a *agedConns) add(conn net.Conn, address string) *agedConn {
	c := &agedConn{Conn: conn, all: a, address: address, expires: time.Now().Add(lifetime())}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[string]map[*agedConn]struct{}{}
	}
	if a.by[address] == nil {
		a.by[address] = map[*agedConn]struct{}{}
	}
	a.by[address][c] = struct{}{}
	return c
}

// Close closes the connection.
func (c *agedConn) Close() error {
	c.mu.Lock()
	c.idle = false
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.all.mu.Lock()
	delete(c.all.by[c.address], c)
	if len(c.all.by[c.address]) == 0 {
		delete(c.all.by, c.address)
	}
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// take notes that a request has the connection, and returns its number.
func (c *agedConn) take() (use int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = false
	c.uses++
	return c.uses
}

// rest closes the connection after a while without a request. use is the number of the request that ended: the next one
// can have the connection already.
func (c *agedConn) rest(use int, wait time.Duration) {
	c.mu.Lock()
	if c.uses != use {
		c.mu.Unlock()
		return
	}
	c.idle = true
	if wait > 0 {
		if c.timer == nil {
			c.timer = time.AfterFunc(wait, c.expire)
		} else {
			c.timer.Reset(wait)
		}
	}
	c.mu.Unlock()
	if wait <= 0 {
		c.expire()
	}
}

func (c *agedConn) expire() {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	// A request that takes it now finds it closed before it writes a byte, and goes on another.
	if idle {
		_ = c.Close()
	}
}

// closeIdle closes what is idle of a host and port.
func (a *agedConns) closeIdle(address string) {
	a.mu.Lock()
	list := make([]*agedConn, 0, len(a.by[address]))
	for c := range a.by[address] {
		list = append(list, c)
	}
	a.mu.Unlock()
	for _, c := range list {
		c.expire()
	}
}

// agedOf finds the connection under TLS; nil: it is none of ours.
func agedOf(c net.Conn) *agedConn {
	if s, ok := c.(session); ok {
		c = s.NetConn()
	}
	aged, _ := c.(*agedConn)
	return aged
}

// dial is the dialer's, for http.Transport.
func (h *httpTransport) dial(ctx context.Context, way dialer, network, address string) (net.Conn, error) {
	conn, err := way.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return h.aged.add(conn, address), nil
}

// dialTLS is dial and the handshake.
func (h *httpTransport) dialTLS(ctx context.Context, way dialer, network, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := h.dial(ctx, way, network, address)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.ServerName = host
	encrypted, err := encrypt(ctx, conn, config, ctx.Value(phasesKey{}).(*phases))
	if err != nil {
		return nil, err
	}
	return session{encrypted.(*tls.Conn)}, nil
}
