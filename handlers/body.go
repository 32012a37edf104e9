package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"posthorn/domain/fault"
)

// The Content-Length is the sender's claim, so the buffer of a body grows with what has arrived. Most bodies are
// small and fit into their first buffer. A larger one starts with less, which is all that a waiting connection holds.
const (
	smallBody = 2 << 10
	firstRead = 512
)

// Body reads the whole request body, up to the route's limit.
func (c *Call) Body() ([]byte, error) {
	if enc := c.Request.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, fault.New(fault.Invalid, "content_encoding_unsupported", "Send the body without Content-Encoding.")
	}
	return readBody(c.Writer, c.Request, c.Request.Body, c.maxBody)
}

// readBody reads the whole body of a request, of at most so many bytes.
func readBody(w http.ResponseWriter, r *http.Request, from io.ReadCloser, most int64) ([]byte, error) {
	length := r.ContentLength
	if length > most {
		// The rest of the body is not read.
		w.Header().Set("Connection", "close")
		return nil, tooLarge(most)
	}
	body, err := readAll(http.MaxBytesReader(w, from, most), length)
	if err == nil {
		return body, nil
	}
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return nil, tooLarge(most)
	}
	if full := fault.As(err); full != nil {
		discardBody(w, from, most)
		return nil, full
	}
	return nil, &fault.Error{
		Kind:   fault.Invalid,
		Code:   "body_incomplete",
		Cause:  err,
		Detail: "The body ended early or came too slowly. Send the request again.",
	}
}

// discardTime is how long a sender whose body is rejected has to finish it. A sender that is cut off while it writes
// sees a reset connection instead of the response.
const discardTime = 2 * time.Second

// discardBody reads and discards the rest of the body for a short time, and closes the connection after the response.
func discardBody(w http.ResponseWriter, body io.ReadCloser, most int64) {
	w.Header().Set("Connection", "close")
	if counted, ok := body.(*countedBody); ok {
		body = counted.ReadCloser
	}
	// in tests there is no connection
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTime))
	_, _ = io.Copy(io.Discard, io.LimitReader(body, most))
}

// readAll reads to the end. A length of 0 or more is the size that the sender declared; the buffer never exceeds it.
func readAll(r io.Reader, length int64) ([]byte, error) {
	size := int64(firstRead)
	if length >= 0 && length <= smallBody {
		size = length
	}
	body := make([]byte, 0, size)
	for {
		if length >= 0 && int64(len(body)) == length {
			return body, nil
		}
		if len(body) == cap(body) {
			grown := 2 * int64(cap(body))
			if length >= 0 {
				grown = min(grown, length)
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF && length > int64(len(body)):
			return nil, io.ErrUnexpectedEOF
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, err
		}
	}
}

func tooLarge(most int64) error {
	detail := fmt.Sprintf("The body is larger than %d bytes, the maximum for this request. Send a smaller body.", most)
	return fault.New(fault.TooLarge, "body_too_large", detail)
}

var errNotJSONType = fault.New(
	fault.UnsupportedType,
	"content_type_unsupported",
	"The body's Content-Type is not JSON. Send `Content-Type: application/json`.",
)

// JSONBody is Body for JSON. A Content-Type that names another type is rejected. Without one the body is read as
// JSON.
func (c *Call) JSONBody() ([]byte, error) {
	if !isJSON(c.Request.Header.Get("Content-Type")) && c.Request.ContentLength != 0 {
		discardBody(c.Writer, c.Request.Body, c.maxBody)
		return nil, errNotJSONType
	}
	return c.Body()
}

// isJSON reports whether a Content-Type is absent, application/json, or a type with the +json suffix (RFC 6839).
func isJSON(header string) bool {
	if header == "" || header == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(header)
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

// Decode reads a JSON object into a struct. It rejects, by name, unknown and repeated fields, nulls where the
// contract has none, and values of another type. It also rejects bodies that are not JSON or not UTF-8.
func (c *Call) Decode(into any) error {
	body, err := c.JSONBody()
	if err != nil {
		return err
	}
	return decode(body, into)
}

// DecodeOptional is Decode for a body that can be left out.
func (c *Call) DecodeOptional(into any) error {
	body, err := c.JSONBody()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return decode(body, into)
}

// NoBody rejects a body where the contract has none. An empty object is permitted.
func (c *Call) NoBody() error { return c.DecodeOptional(&struct{}{}) }
