package db

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Channels of notifications.
const (
	ChannelWake = "posthorn_wake" // endpoint ids in hexadecimal, separated by commas, or "all"
	ChannelJobs = "posthorn_jobs"
)

// A proxy or load balancer can keep the connection to us open when its own to the server has ended. Then nothing comes
// and nothing fails, so a silent connection is asked for a sign of life: a lost one is noticed within 20 seconds.
const (
	silentAfter  = 15 * time.Second
	answerWithin = 4 * time.Second
)

// Listener is how Listen waits. The zero value has the usual times and no log.
type Listener struct {
	Log    *slog.Logger
	Silent time.Duration // after which the connection is asked for a sign of life; 0: 15 s
	Within time.Duration // in which it gives one; 0: 4 s

	alive atomic.Int64 // the last sign of life in Unix nanoseconds; 0: not started
}

// Listen passes on notifications until the context ends, over its own connection, which must not go through a pooler.
// It reconnects by itself and calls connected after each connection, since notifications in between are lost. Without
// notifications everything works up to five seconds later.
func Listen(ctx context.Context, url string, channels []string, connected func(), got func(channel, payload string)) {
	new(Listener).Listen(ctx, url, channels, connected, got)
}

// Listen is the function of that name. Call it once.
func (l *Listener) Listen(ctx context.Context, url string, channels []string, connected func(), got func(channel, payload string)) {
	l.alive.Store(time.Now().UnixNano())
	for ctx.Err() == nil {
		err := l.listen(ctx, url, channels, connected, got)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if l.Log != nil {
			l.Log.Warn("the connection for notifications is lost; until there is another, deliveries can start some seconds late",
				"error", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// Age is the time since the connection's last sign of life, or since Listen was called.
func (l *Listener) Age() time.Duration {
	if at := l.alive.Load(); at != 0 {
		return time.Since(time.Unix(0, at))
	}
	return 0
}

func (l *Listener) listen(ctx context.Context, url string, channels []string, connected func(), got func(channel, payload string)) error {
	conn, err := Connect(ctx, url, Options{Name: "listen"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, c := range channels {
		if err := l.ask(ctx, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, "LISTEN "+Identifier(c))
			return err
		}); err != nil {
			return err
		}
	}
	connected()
	for {
		n, err := l.wait(ctx, conn)
		if err != nil {
			return err
		}
		if n != nil {
			got(n.Channel, n.Payload)
		}
	}
}

// wait returns the next notification, or nil after a silence in which the connection was alive.
func (l *Listener) wait(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	silence, cancel := context.WithTimeout(ctx, or(l.Silent, silentAfter))
	defer cancel()
	n, err := conn.WaitForNotification(silence)
	if err == nil {
		l.alive.Store(time.Now().UnixNano())
		return n, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || conn.IsClosed() {
		return nil, err
	}
	return nil, l.ask(ctx, conn.Ping)
}

// ask does something that a server responds to immediately, and gives up on a connection that is silent.
func (l *Listener) ask(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, or(l.Within, answerWithin))
	defer cancel()
	if err := do(ctx); err != nil {
		return err
	}
	l.alive.Store(time.Now().UnixNano())
	return nil
}

func or(d, usual time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return usual
}
