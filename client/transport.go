package client

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

// request is one operation before it is sent.
type request struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   any // nil: none
	safe   bool
	err    error
}

// newRequest fills path's %s with ids.
func newRequest(method, path string, ids ...string) *request {
	r := &request{method: method, query: url.Values{}, header: http.Header{}}
	r.safe = method == http.MethodGet || method == http.MethodHead
	escaped := make([]any, len(ids))
	for i, id := range ids {
		if id == "" || id == "." || id == ".." {
			r.err = fmt.Errorf("posthorn: %q is not an id", id) // it would name another path
		}
		escaped[i] = url.PathEscape(id)
	}
	r.path = fmt.Sprintf(path, escaped...)
	return r
}

// setQuery adds a parameter unless it is absent: a nil pointer, or an empty list.
func (r *request) setQuery(name string, value any) {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			r.setQuery(name, v.Index(i).Interface())
		}
		return
	}
	if text, ok := r.text(name, v); ok {
		r.query.Add(name, text)
	}
}

// setHeader is setQuery for a header.
func (r *request) setHeader(name string, value any) {
	if text, ok := r.text(name, reflect.ValueOf(value)); ok {
		r.header.Set(name, text)
		r.safe = r.safe || name == "Idempotency-Key"
	}
}

func (r *request) text(name string, v reflect.Value) (string, bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", false
		}
		v = v.Elem()
	}
	if t, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := t.MarshalText()
		if err != nil {
			r.err = fmt.Errorf("posthorn: %s: %w", name, err)
		}
		return string(text), true
	}
	return fmt.Sprint(v.Interface()), true
}

// maxResponse bounds how many bytes of a response are read: more than any page of the API.
const maxResponse = 64 << 20

// result sends a request and reads a JSON response.
func result[T any](ctx context.Context, c *Client, r *request) (T, error) {
	var into T
	body, err := c.send(ctx, r)
	if err != nil {
		return into, err
	}
	if err := json.Unmarshal(body, &into); err != nil {
		return into, fmt.Errorf("posthorn: the response to %s %s is not what the API promises: %w", r.method, r.path, err)
	}
	return into, nil
}

// finish sends a request whose response has no body.
func (c *Client) finish(ctx context.Context, r *request) error {
	_, err := c.send(ctx, r)
	return err
}

// send sends a request, repeats it where that is safe and useful, and returns the body of a 2xx.
func (c *Client) send(ctx context.Context, r *request) ([]byte, error) {
	encoded, err := r.encode()
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		body, err := c.once(ctx, r, encoded)
		if err == nil {
			return body, nil
		}
		pause, again := c.again(r, err, try)
		if !again || ctx.Err() != nil {
			return nil, err
		}
		if !c.wait(ctx, pause) {
			return nil, err
		}
	}
}

func (r *request) encode() ([]byte, error) {
	if r.err != nil || r.body == nil {
		return nil, r.err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // data stays as it is
	if err := enc.Encode(r.body); err != nil {
		return nil, fmt.Errorf("posthorn: the request can't be written as JSON: %w", err)
	}
	return b.Bytes(), nil
}

// once is one try.
func (c *Client) once(ctx context.Context, r *request, encoded []byte) ([]byte, error) {
	if c.perTry > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.perTry)
		defer cancel()
	}
	res, err := c.do(ctx, r, encoded)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("posthorn: %s %s: %w", r.method, r.path, err)
	case len(body) > maxResponse:
		return nil, fmt.Errorf("posthorn: the response to %s %s has more than %d bytes", r.method, r.path, maxResponse)
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, refusal(res.StatusCode, res.Header, body)
	}
	return body, nil
}

// for operations of the contract that do not respond with JSON
var _ = (*Client).stream

// stream sends a request once and returns a 2xx response. The caller closes its body.
func (c *Client) stream(ctx context.Context, r *request) (*http.Response, error) {
	encoded, err := r.encode()
	if err != nil {
		return nil, err
	}
	res, err := c.do(ctx, r, encoded)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return nil, refusal(res.StatusCode, res.Header, body)
}

func (c *Client) do(ctx context.Context, r *request, encoded []byte) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body io.Reader
	if encoded != nil {
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("posthorn: %w", err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("User-Agent", c.userAgent)
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if encoded != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("posthorn: %w", err)
	}
	return res, nil
}

// again says whether a failed request is worth repeating, and after which pause.
func (c *Client) again(r *request, err error, try int) (time.Duration, bool) {
	if try >= c.retries {
		return 0, false
	}
	pause := backoff(try, c.longest)
	var refused *Error
	if !errors.As(err, &refused) {
		return pause, r.safe || neverSent(err)
	}
	if refused.RetryAfter > c.longest {
		return 0, false
	}
	pause = max(pause, refused.RetryAfter)
	switch refused.Status {
	case http.StatusTooManyRequests:
		return pause, true // rejected before anything happened
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return pause, r.safe
	}
	return 0, false
}

// neverSent reports whether no connection was established.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// The limit of the first pause; each further one is twice as long.
const firstPause = 200 * time.Millisecond

// backoff is a random part of a limit that doubles, so that many clients do not come back together.
func backoff(try int, longest time.Duration) time.Duration {
	bound := longest
	if try < 30 {
		bound = min(firstPause<<try, longest)
	}
	if bound <= 0 {
		return 0
	}
	return bound/2 + rand.N(bound/2+1)
}

// retryAfter reads seconds. Posthorn never sends dates, and 0 says nothing.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < 0 || seconds > 1<<31-1 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// waiter pauses, and reports whether the pause ended before the context.
type waiter func(context.Context, time.Duration) bool

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
