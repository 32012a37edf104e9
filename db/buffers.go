package db

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// buffers are what a connection encodes its batches in. The driver drops its own after each statement and each flush,
// and would grow them from a kilobyte to a hundred for every batch. A connection sends one batch at a time, and a
// batch is written when SendBatch returns.
type buffers struct {
	values   []byte // the parameters of one statement
	messages []byte // a batch
	queued   int    // how many bytes of parameters the present batch has so far
}

// keepBuffers bounds what a connection keeps, in bytes for each of its two buffers.
const keepBuffers = 256 << 10

// messageBytes is about what a batch has beside its parameters.
const messageBytes = 4 << 10

const buffersKey = "posthorn.buffers"

func buffersOf(c *pgconn.PgConn) *buffers {
	if b, ok := c.CustomData()[buffersKey].(*buffers); ok {
		return b
	}
	b := &buffers{}
	c.CustomData()[buffersKey] = b
	return b
}

// Send runs a batch and discards the results that nothing reads.
func Send(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	b := buffersOf(conn.PgConn())
	b.queued = 0
	if b.messages != nil {
		conn.PgConn().Frontend().Send(startInBuffer{buffers: b})
	}
	results := conn.SendBatch(ctx, batch)
	if need := b.queued + messageBytes; need > cap(b.messages) && need <= keepBuffers {
		b.messages = make([]byte, 0, min(2*need, keepBuffers))
	}
	return results.Close()
}

// room returns buf with room for n more bytes. A new statement starts in the connection's buffer.
func (b *buffers) room(buf []byte, n int) []byte {
	b.queued += n
	if cap(buf)-len(buf) >= n {
		return buf
	}
	need := len(buf) + n
	if need > keepBuffers {
		return slices.Grow(buf, n)
	}
	if need > cap(b.values) {
		b.values = make([]byte, 0, min(2*need, keepBuffers))
	}
	return append(b.values[:0], buf...)
}

// startInBuffer makes the driver write what follows into the connection's buffer. It is no message and sends nothing.
type startInBuffer struct {
	pgproto3.FrontendMessage // nil: the driver calls Encode alone
	*buffers
}

// Encode returns a larger buffer with the messages that were queued before.
func (b startInBuffer) Encode(queued []byte) ([]byte, error) {
	if cap(queued) >= cap(b.messages) || len(queued) > cap(b.messages) {
		return queued, nil
	}
	return append(b.messages[:0], queued...), nil
}
