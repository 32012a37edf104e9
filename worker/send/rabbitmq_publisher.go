package send

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// The bounds of one connection.
const (
	rabbitHeartbeat = 10 * time.Second
	rabbitFrame     = 128 << 10 // bytes
	rabbitGoodbye   = 2 * time.Second
)

// publisher is an endpoint's connection to its broker. Each concurrent attempt has a channel of its own: a broker
// closes a channel for one message that it rejects, and the other messages on it would be lost.
type publisher struct {
	lease
	to      *endpoint.RabbitMQConnection
	dialer  *brokerDialer
	reads   func(net.Conn) net.Conn // wraps connections; nil: nothing does
	blocked atomic.Bool             // the broker accepts no messages at present
	turn    chan struct{}           // holds one token while a connection is opened

	mu       sync.Mutex
	conn     *amqp.Connection
	unused   []*rabbitChannel
	failed   error // of the last try to connect
	failedAt time.Time
	dialled  dialled
}

// rabbitChannel has room for everything that the broker says about one message.
type rabbitChannel struct {
	*amqp.Channel
	returned chan amqp.Return
	closed   chan *amqp.Error
}

// watchedConn remembers why its last read failed, which the client keeps to itself.
type watchedConn struct {
	net.Conn
	cause atomic.Pointer[error]
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.cause.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (r *rabbitTransport) newPublisher(_ string, connection endpoint.Connection) (*publisher, error) {
	to := connection.(*endpoint.RabbitMQConnection)
	dialer, err := newBrokerDialer(r.guard, to.TLS(), to.CA, r.roots, r.sessions)
	return &publisher{to: to, dialer: dialer, turn: make(chan struct{}, 1)}, err
}

func (p *publisher) close() {
	p.mu.Lock()
	conn := p.conn
	p.mu.Unlock()
	if conn != nil {
		_ = conn.CloseDeadline(time.Now().Add(rabbitGoodbye)) // closes the socket in any case
	}
}

// connection returns the open connection, or opens one. Those who waited for a try that failed share its error.
func (p *publisher) connection(ctx context.Context) (*amqp.Connection, error) {
	asked := time.Now()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	conn, failed, failedAt := p.conn, p.failed, p.failedAt
	p.mu.Unlock()
	switch {
	case conn != nil && !conn.IsClosed():
		return conn, nil
	case failed != nil && failedAt.After(asked):
		return nil, failed
	}
	conn, err := p.open(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed, p.failedAt = err, time.Now()
		return nil, err
	}
	p.conn, p.unused = conn, nil
	return conn, nil
}

// open connects and logs in.
func (p *publisher) open(ctx context.Context) (*amqp.Connection, error) {
	address, vhost := p.to.Server()
	began := time.Now()
	raw, took, err := p.dialer.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.dialled = dialled{began, took}
	p.mu.Unlock()
	if p.reads != nil {
		raw = p.reads(raw)
	}
	watched := &watchedConn{Conn: raw}
	if deadline, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(deadline) // the client ends it after the login
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("posthorn")
	conn, err := amqp.Open(watched, amqp.Config{
		SASL:       []amqp.Authentication{&amqp.PlainAuth{Username: p.to.Username, Password: p.to.Password}},
		Vhost:      vhost,
		Heartbeat:  rabbitHeartbeat,
		FrameSize:  rabbitFrame,
		Locale:     "en_US",
		Properties: properties,
	})
	stop()
	if err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &loginError{err, watched.cause.Load()}
	}
	p.blocked.Store(false)
	go func(states <-chan amqp.Blocking) {
		for s := range states {
			p.blocked.Store(s.Active)
		}
	}(conn.NotifyBlocked(make(chan amqp.Blocking)))
	return conn, nil
}

// channel returns an unused channel of the open connection, or opens one. kept: the connection was there before.
func (p *publisher) channel(ctx context.Context) (c *rabbitChannel, kept bool, err error) {
	began := time.Now()
	conn, err := p.connection(ctx)
	if err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	kept = p.dialled.at.Before(began)
	for len(p.unused) > 0 && c == nil {
		last := len(p.unused) - 1
		c, p.unused = p.unused[last], p.unused[:last]
		if c.IsClosed() {
			c = nil
		}
	}
	p.mu.Unlock()
	if c != nil {
		return c, kept, nil
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, kept, err
	}
	c = &rabbitChannel{
		Channel:  ch,
		returned: ch.NotifyReturn(make(chan amqp.Return, 1)),
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
	}
	return c, kept, ch.Confirm(false)
}

// write publishes a message and waits for its confirmation. A connection that was closed in a pause is opened again.
func (p *publisher) write(ctx context.Context, key string, m amqp.Publishing) said {
	for {
		s, kept := p.publish(ctx, key, m)
		if s.result.Failure != delivery.FailReset || !kept || ctx.Err() != nil {
			return s
		}
	}
}

func (p *publisher) publish(ctx context.Context, key string, m amqp.Publishing) (s said, kept bool) {
	c, kept, err := p.channel(ctx)
	if err != nil {
		return rabbitSaid(err), kept
	}
	confirmation, err := c.PublishWithDeferredConfirmWithContext(ctx, p.to.Exchange, key, true, false, m)
	if err != nil {
		return rabbitSaid(c.cause(err)), kept
	}
	select {
	case <-confirmation.Done():
	case <-ctx.Done():
		go func() { _ = c.Close() }()
		return rabbitSaid(ctx.Err()), kept
	}
	if !confirmation.Acked() {
		if err := c.cause(nil); err != nil {
			return rabbitSaid(err), kept
		}
		p.giveBack(c)
		return rabbitRejected("NACK", "the broker could not take the message"), kept
	}
	defer p.giveBack(c)
	select {
	case r := <-c.returned: // a broker returns a message before it confirms it
		return rabbitRejected("NO_ROUTE", r.ReplyText), kept
	default:
	}
	return rabbitConfirmed(p.to.Exchange, key), kept
}

func (p *publisher) giveBack(c *rabbitChannel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unused = append(p.unused, c)
}

// cause is why the channel was closed, else err.
func (c *rabbitChannel) cause(err error) error {
	select {
	case e := <-c.closed:
		if e != nil {
			return e
		}
		return amqp.ErrClosed
	default:
	}
	return err
}

// spentSince is how long the connection took that was opened since a moment.
func (p *publisher) spentSince(began time.Time) spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dialled.at.Before(began) {
		return spent{}
	}
	return p.dialled.spent
}
