package send

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/signature"
)

// smallRequests sends the requests of most deliveries: small ones. It writes and reads in the goroutine of the
// delivery, whereas http.Transport passes each request to two other goroutines of the connection
// (docs/adr/0022-small-requests.md). net/http parses the responses. The rules are those of httpTransport.
type smallRequests struct {
	guard *guard
	tls   *tls.Config // cloned for each connection

	mu      sync.Mutex
	idle    map[string][]*keptConn // by origin, the most recently used last
	count   int
	sweeper *time.Timer
}

const (
	// maxSmall is how much a socket takes even if the receiver reads nothing: while a request is written, no response
	// is read.
	maxSmall    = 16 << 10
	maxIdle     = 4096
	idleFor     = 30 * time.Second
	sweepEvery  = 10 * time.Second
	readBuffer  = 2 << 10
	noHeadLimit = 1 << 62
)

// keptConn is a connection that one request at a time uses.
type keptConn struct {
	net.Conn
	origin  string
	in      *bufio.Reader
	left    int64 // bytes that may still be read: of the response's head, then of everything
	expires time.Time
	usable  time.Time // until when the kept connection can be used again
	until   time.Time // the deadline of the present request
	silence silence
}

var errLongHead = errors.New("the response's head is too long")

func (c *keptConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

func newSmallRequests(g *guard, config *tls.Config) *smallRequests {
	return &smallRequests{guard: g, tls: config, idle: map[string][]*keptConn{}}
}

var messages = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// exchange writes a request and reads its response. done is false if it does not send such requests: then it has done
// nothing.
func (s *smallRequests) exchange(
	ctx context.Context,
	t *Destination,
	r *request,
	a *queue.Attempt,
) (result delivery.Result, head http.Header, done bool) {
	to := t.to.(*httpAddress)
	if len(r.body) > maxSmall {
		return result, nil, false
	}
	message := messages.Get().(*[]byte)
	defer messages.Put(message)
	var fits bool
	if *message, fits = appendRequest((*message)[:0], t, r); !fits || len(*message) > maxSmall {
		return result, nil, false
	}
	p := &phases{began: time.Now(), plain: to.plain}
	c, err := s.send(ctx, to, *message, p.began.Add(t.timeout), p)
	var answer *http.Response
	if err == nil {
		//nolint:bodyclose // receive reads what is kept; closing would read the rest
		answer, err = s.receive(ctx, c, p, a)
	}
	if answer != nil {
		if result.Status, head = answer.StatusCode, answer.Header; err != nil {
			a.Error = incompleteBody
		}
	} else {
		if cause := ctx.Err(); cause != nil {
			err = cause
		}
		result.Failure, a.Error = classify(err, p)
		if result.Stale = p.isStale(ctx, result); result.Stale {
			s.closeIdle(to.origin)
		}
	}
	p.fill(a)
	return result, head, true
}

// send writes a request on a kept connection or a new one. If a kept connection takes no byte, the other side has
// closed it, and the request goes on another. After the first byte it never does.
func (s *smallRequests) send(ctx context.Context, to *httpAddress, message []byte, until time.Time, p *phases) (*keptConn, error) {
	for {
		c := s.take(to.origin, p.began)
		kept := c != nil
		p.reused.Store(kept)
		if !kept {
			var err error
			if c, err = s.dial(ctx, to, until, p); err != nil {
				return nil, err
			}
		}
		p.mark(&p.got)
		_ = c.SetDeadline(until)
		c.left, c.until = maxAnswerHead, until
		n, err := c.Write(message)
		if err == nil {
			p.mark(&p.wrote)
			return c, nil
		}
		again := kept && n == 0 && ctx.Err() == nil && time.Now().Before(until)
		if !again {
			err = explain(c.Conn, err)
		}
		_ = c.Close()
		if !again {
			return nil, err
		}
	}
}

func (s *smallRequests) dial(ctx context.Context, to *httpAddress, until time.Time, p *phases) (*keptConn, error) {
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, phasesKey{}, p), until)
	defer cancel()
	way := dialer{guard: s.guard}
	if to.own != nil {
		way = to.own.dialer
	}
	conn, err := way.dial(ctx, "tcp", to.dialed)
	if err != nil {
		return nil, err
	}
	c := &keptConn{Conn: conn, origin: to.origin, expires: time.Now().Add(lifetime())}
	c.silence.of(conn)
	if to.url.Scheme == "https" {
		config := s.tls.Clone()
		if to.own != nil {
			config = to.own.config.Clone()
		}
		config.ServerName = to.url.Hostname()
		if c.Conn, err = encrypt(ctx, conn, config, p); err != nil {
			return nil, err
		}
	}
	c.in = bufio.NewReaderSize(c, readBuffer)
	return c, nil
}

// receive reads a response and keeps the connection if it can be used again. The response is not nil once its head was
// read; the error is then the body's.
func (s *smallRequests) receive(ctx context.Context, c *keptConn, p *phases, a *queue.Attempt) (answer *http.Response, err error) {
	// A stop ends the request.
	rest := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	usable := false
	defer func() {
		if !rest() || !usable || c.in.Buffered() > 0 {
			_ = c.Close()
			return
		}
		s.keep(c, answer.Header)
	}()
	if _, err := c.in.Peek(1); err != nil {
		return nil, err
	}
	p.mark(&p.firstByte)
	for answer == nil || isInformational(answer.StatusCode) {
		// The limit covers all parts of the head together.
		if answer, err = http.ReadResponse(c.in, postRequest); err != nil {
			if !time.Now().Before(c.until) {
				err = context.DeadlineExceeded // in the middle of a line it would be another error
			}
			return nil, err
		}
	}
	if answer.StatusCode < 100 {
		return nil, badStatusError(answer.Status)
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, nil // there is no body, only the connection itself
	}
	c.left = noHeadLimit
	var whole bool
	a.ResponseExcerpt, whole, err = readKept(answer)
	usable = err == nil && whole && !answer.Close
	return answer, err
}

// isInformational reports whether another response follows.
func isInformational(status int) bool {
	return status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
}

// postRequest tells the parser the request's method.
var postRequest = &http.Request{Method: http.MethodPost}

// readKept reads at most the stored part of a body, and returns whether that was all. It does not close the body: that
// would read the rest of it.
func readKept(answer *http.Response) (b []byte, whole bool, err error) {
	if answer.ContentLength == 0 {
		return nil, true, nil
	}
	if n := answer.ContentLength; n > 0 && n <= 512 {
		b = make([]byte, n)
		k, err := io.ReadFull(answer.Body, b)
		return b[:k], err == nil, err
	}
	b, err = io.ReadAll(io.LimitReader(answer.Body, delivery.MaxExcerpt+1))
	if len(b) > delivery.MaxExcerpt {
		return b[:delivery.MaxExcerpt], false, nil
	}
	if len(b) == 0 {
		b = nil
	}
	return b, err == nil, err
}

// take returns a connection that is still open, or nil.
func (s *smallRequests) take(origin string, now time.Time) *keptConn {
	for {
		s.mu.Lock()
		list := s.idle[origin]
		if len(list) == 0 {
			s.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		s.idle[origin] = slices.Delete(list, len(list)-1, len(list))
		s.count--
		s.mu.Unlock()
		if now.Before(c.usable) && c.silence.holds() {
			return c
		}
		_ = c.Close()
	}
}

// keep keeps a connection after a response with these headers.
func (s *smallRequests) keep(c *keptConn, answer http.Header) {
	now := time.Now()
	wait := keptFor(c.expires, now, answer)
	c.usable = now.Add(wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait <= 0 || s.count >= maxIdle || len(s.idle[c.origin]) >= maxIdlePerHost {
		_ = c.Close()
		return
	}
	s.idle[c.origin] = append(s.idle[c.origin], c)
	s.count++
	if s.sweeper == nil {
		s.sweeper = time.AfterFunc(sweepEvery, s.sweep)
	}
}

// closeIdle closes the kept connections of an origin.
func (s *smallRequests) closeIdle(origin string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle[origin] {
		_ = c.Close()
		s.count--
	}
	delete(s.idle, origin)
}

// sweep closes connections that were unused for long or were closed by the other side, as long as connections are kept.
func (s *smallRequests) sweep() {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for origin, list := range s.idle {
		rest := slices.DeleteFunc(list, func(c *keptConn) bool {
			over := !now.Before(c.usable) || !c.silence.holds()
			if over {
				_ = c.Close()
				s.count--
			}
			return over
		})
		if s.idle[origin] = rest; len(rest) == 0 {
			delete(s.idle, origin)
		}
	}
	s.sweeper = nil
	if s.count > 0 {
		s.sweeper = time.AfterFunc(sweepEvery, s.sweep)
	}
}

func (s *smallRequests) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.idle {
		for _, c := range list {
			_ = c.Close()
		}
	}
	s.idle, s.count = map[string][]*keptConn{}, 0
	if s.sweeper != nil {
		s.sweeper.Stop()
		s.sweeper = nil
	}
}

// appendRequest renders a delivery's request: the same headers as post. fits is false if http.Transport must send it,
// which knows what to reject and what a few headers require of a client.
func appendRequest(dst []byte, t *Destination, r *request) (b []byte, fits bool) {
	to := t.to.(*httpAddress)
	to.once.Do(to.prepare)
	if to.requests == "" {
		return dst, false
	}
	dst = append(dst, to.requests...)
	dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(len(r.body)), 10)
	dst = append(dst, "\r\n"...)
	for _, h := range t.headers {
		if isOurs(h.Name, r.headers) {
			continue // replaced by the format's own
		}
		if asksMore(h.Name) {
			return dst, false
		}
		if dst, fits = appendHeader(dst, h); !fits {
			return dst, false
		}
	}
	for _, h := range r.headers {
		if dst, fits = appendHeader(dst, h); !fits {
			return dst, false
		}
	}
	return append(append(dst, "\r\n"...), r.body...), true
}

func appendHeader(dst []byte, h signature.Header) ([]byte, bool) {
	if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) {
		return dst, false
	}
	dst = append(append(dst, h.Name...), ": "...)
	return append(append(dst, strings.Trim(h.Value, " \t")...), "\r\n"...), true
}

// isOurs reports whether the sender or the format sets a header of exactly this name.
func isOurs(name string, ours []signature.Header) bool {
	return name == "Content-Type" || name == "User-Agent" || name == "Accept-Encoding" ||
		slices.ContainsFunc(ours, func(h signature.Header) bool { return h.Name == name })
}

// asksMore reports whether http.Transport acts on a header instead of sending it unchanged.
func asksMore(name string) bool {
	switch strings.ToLower(name) {
	case "host", "user-agent", "content-length", "transfer-encoding", "trailer", "connection", "expect", "te", "upgrade", "keep-alive":
		return true
	}
	return strings.HasPrefix(strings.ToLower(name), "proxy-")
}
