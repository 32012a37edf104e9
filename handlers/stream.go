package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// streamWrite is how long a reader of a stream can take for one event.
const streamWrite = 10 * time.Second

// Stream is a response without end: server-sent events. One goroutine writes it.
type Stream struct {
	call       *Call
	connection *http.ResponseController
}

// BeginStream starts a stream. The route has no timeout (Timeout less than 0).
func (c *Call) BeginStream() (*Stream, error) {
	s := &Stream{call: c, connection: http.NewResponseController(c.Writer)}
	// The deadlines of other requests would end this one. A writer that can set no deadline is no connection, as in
	// tests.
	_ = s.connection.SetReadDeadline(time.Time{})
	c.Writer.Header().Set("Content-Type", "text/event-stream")
	c.Writer.Header().Set("X-Accel-Buffering", "no") // a buffering proxy would hold events back
	c.Writer.WriteHeader(http.StatusOK)
	return s, s.write("retry: 500\n\n")
}

// Event sends an event. Number 0 is none: the client's position does not change.
func (s *Stream) Event(number int64, name string, data any) error {
	text, err := json.Marshal(data) // on one line
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if number > 0 {
		return s.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", number, name, text))
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

// EventAt is Event for a stream whose positions are texts.
func (s *Stream) EventAt(position, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", position, name, text))
}

// Beat sends a comment, so that both sides and the proxies between them know that the stream is alive.
func (s *Stream) Beat() error { return s.write(": beat\n\n") }

func (s *Stream) write(text string) error {
	_ = s.connection.SetWriteDeadline(time.Now().Add(streamWrite))
	if _, err := s.call.Writer.WriteString(text); err != nil {
		return fmt.Errorf("write to stream: %w", err)
	}
	if err := s.connection.Flush(); err != nil {
		return fmt.Errorf("write to stream: %w", err)
	}
	return nil
}

// Still reports whether the caller of a stream would be admitted now: its key was possibly revoked since, its session
// ended, or its tenant deleted.
func (c *Call) Still() error {
	if c.access.page() {
		return c.stillSignedIn()
	}
	who, err := c.kit.auth.caller(c)
	if err != nil {
		return err
	}
	return permit(who, c.access, c.FullPath())
}

// stillSignedIn admits the page again. A request remembers the session that it found, so this is another one.
func (c *Call) stillSignedIn() error {
	ctx, cancel := context.WithTimeout(context.Background(), DefaultTimeout)
	defer cancel()
	defer context.AfterFunc(c.Ctx(), cancel)()
	again := &Call{Context: c.Copy(), kit: c.kit, ctx: ctx, access: c.access, Actor: Actor{Address: c.Actor.Address, RequestID: c.Actor.RequestID}}
	again.Request = c.Request.Clone(ctx)
	return c.kit.admitPage(again, c.access)
}

// Download responds with a file that is made while it is sent, however long that takes: the route has no timeout
// (Timeout less than 0). An error of write before anything was written becomes the call's error. After that, the
// connection breaks, so that nobody takes a part for the whole.
func (c *Call) Download(name, contentType string, write func(io.Writer) error) error {
	d := &download{call: c, name: name, contentType: contentType, connection: http.NewResponseController(c.Writer)}
	// A writer that can set no deadline is no connection, as in tests.
	_ = d.connection.SetReadDeadline(time.Time{})
	err := write(d)
	if err != nil && d.started {
		panic(http.ErrAbortHandler)
	}
	return err
}

// downloadWrite is how long a reader can pause in a file: a browser possibly asks where to save it first.
const downloadWrite = time.Minute

type download struct {
	call              *Call
	name, contentType string
	connection        *http.ResponseController
	started           bool
}

func (d *download) Write(b []byte) (int, error) {
	if !d.started {
		d.started = true
		h := d.call.Writer.Header()
		h.Set("Content-Type", d.contentType)
		h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
		d.call.Writer.WriteHeader(http.StatusOK)
	}
	_ = d.connection.SetWriteDeadline(time.Now().Add(downloadWrite))
	return d.call.Writer.Write(b)
}
