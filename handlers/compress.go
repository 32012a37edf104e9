package handlers

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"posthorn/static"
)

// compressFrom is the length in bytes from which a response is compressed. A shorter one fits into one packet.
const compressFrom = 1400

// compressors are reused: each one allocates several hundred kilobytes.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// Uncompressed keeps this call's page from being compressed. Pages that show a secret call it: the length of a
// compressed page tells something about its content.
func (c *Call) Uncompressed() { c.plain = true }

// send writes a whole response, compressed if that helps and the client accepts it. Only responses to GET are
// compressed: a new secret is in a response to POST. Streams and downloads do not use send.
func (c *Call) send(status int, contentType string, body []byte) {
	if c.Request.Method != http.MethodGet || c.plain || len(body) < compressFrom {
		c.Data(status, contentType, body)
		return
	}
	h := c.Writer.Header()
	h.Add("Vary", "Accept-Encoding")
	if static.AcceptsGzip(c.Request.Header.Get("Accept-Encoding")) && h.Get("Content-Encoding") == "" {
		var small bytes.Buffer
		w := compressors.Get().(*gzip.Writer)
		w.Reset(&small)
		_, err := w.Write(body)
		if err == nil {
			err = w.Close()
		}
		compressors.Put(w)
		if err == nil && small.Len() < len(body) {
			body = small.Bytes()
			h.Set("Content-Encoding", "gzip")
			if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
				h.Set("ETag", "W/"+tag) // a strong tag names the exact bytes of one encoding
			}
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.Data(status, contentType, body)
}
