package db

import (
	"context"
	"time"
)

// Channels of notifications.
const (
	ChannelWake = "posthorn_wake" // endpoint ids in hexadecimal, comma between, or "all"
	ChannelJobs = "posthorn_jobs"
)

// Listen passes on notifications until the context ends, over its own connection, which must not go through a pooler.
// It reconnects by itself and calls connected after each connection, since notifications in between are lost. Without
// notifications everything works a second later.
func Listen(ctx context.Context, url string, channels []string, connected func(), got func(channel, payload string)) {
	for ctx.Err() == nil {
		if err := listen(ctx, url, channels, connected, got); err != nil && ctx.Err() == nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
}

func listen(ctx context.Context, url string, channels []string, connected func(),
	got func(channel, payload string),
) error {
	conn, err := Connect(ctx, url, Options{Name: "listen"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, c := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+Identifier(c)); err != nil {
			return err
		}
	}
	connected()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		got(n.Channel, n.Payload)
	}
}
