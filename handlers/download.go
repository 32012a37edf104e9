package handlers

import (
	"io"
	"net/http"
	"time"
)

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
