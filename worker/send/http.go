package send

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// maxAnswerHead bounds a response's headers, in bytes.
const maxAnswerHead = 64 << 10

// maxIdlePerHost lets all in-flight requests of a worker go to one host and keep their connections.
const maxIdlePerHost = 1024

// httpTransport sends requests. It follows no redirect, uses the proxies of the operators alone, speaks HTTP/1.1, and
// never sends twice by itself.
type httpTransport struct {
	transport *http.Transport
	guard     *guard
	small     *smallRequests // nil: every request goes through transport
	aged      agedConns      // of transport
	tokens    tokenSources
	own       profiles
}

func newHTTPTransport(g *guard) *httpTransport {
	h := &httpTransport{guard: g, tokens: tokenSources{client: boundedClient(g.dial, nil)}}
	h.transport = &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return h.dial(ctx, dialer{guard: g}, network, address)
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return h.dialTLS(ctx, dialer{guard: g}, network, address, h.transport.TLSClientConfig)
		},
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(1024),
		},
		// HTTP/1.1 only: HTTP/2 resends by itself after GOAWAY
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxResponseHeaderBytes: maxAnswerHead,
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleFor,
		ReadBufferSize:         2 << 10,
		WriteBufferSize:        2 << 10,
	}
	h.small = newSmallRequests(g, h.transport.TLSClientConfig)
	return h
}

// httpAddress is the destination of an endpoint's requests.
type httpAddress struct {
	url   *url.URL
	plain bool // http: only to addresses that the operator allows

	tokens *tokenSource // nil: requests need no access token
	own    *profile     // nil: connections are direct and have the usual TLS

	// For smallRequests; prepare fills it.
	once     sync.Once
	origin   string // identifies connections that can be used again
	dialed   string // host and port
	requests string // the start of each request; empty: they go through http.Transport
}

func (a *httpAddress) prepare() {
	port := a.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[a.url.Scheme]
	}
	a.dialed = net.JoinHostPort(a.url.Hostname(), port)
	a.origin = a.url.Scheme + "://" + a.dialed
	if a.own != nil {
		a.origin += "#" + a.own.name
	}
	host, path := a.url.Host, a.url.RequestURI()
	if a.url.Opaque != "" || port == "" || !isPlainText(host) || !isPlainText(path) || strings.ContainsAny(host, "%@/\\") {
		return
	}
	a.requests = "POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: " + signature.UserAgent +
		"\r\nContent-Type: " + signature.ContentType + "\r\nAccept-Encoding: " + signature.AcceptEncoding + "\r\n"
}

// isPlainText reports whether a text can be written unescaped into a request's first lines.
func isPlainText(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}

// configure accepts a URL that the policy rejects, since the policy is possibly stricter now than when the endpoint was
// saved: nothing is sent, and the attempt says why.
func (h *httpTransport) configure(s endpoint.Settings, proxy *egress.Proxy) (any, error) {
	u, err := h.guard.policy.CheckURL(s.URL)
	if err != nil {
		if u, err = url.Parse(s.URL); err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
	}
	a := &httpAddress{url: u, plain: u.Scheme == "http"}
	if own := s.TLS.Connects(); own != nil || proxy != nil {
		if a.own, err = h.own.of(own, proxy, h); err != nil {
			return nil, err
		}
	}
	if s.Auth.Tokens() {
		if a.tokens, err = h.tokens.of(s, proxy, func() (*http.Client, error) { return h.tokenClient(s, proxy) }); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (h *httpTransport) close() {
	h.transport.CloseIdleConnections()
	h.tokens.close()
	h.own.close()
	if h.small != nil {
		h.small.close()
	}
}

func (h *httpTransport) deliver(ctx context.Context, t *Destination, p *request, a *queue.Attempt) delivery.Result {
	var r delivery.Result
	var answer http.Header
	if tokens := t.to.(*httpAddress).tokens; tokens == nil {
		r, answer = h.send(ctx, t, p, a)
	} else {
		r, answer = tokens.deliver(ctx, p, a, func() (delivery.Result, http.Header) { return h.send(ctx, t, p, a) })
	}
	if answer != nil {
		r.RetryAfter = delivery.ParseRetryAfter(strings.Join(answer.Values("Retry-After"), ","), answer.Get("Date"), time.Now())
		a.ResponseHeaders = delivery.HeaderText(answer)
		refuseChallenge(&r, a, answer)
	}
	return r
}

// refuseChallenge makes a failure of a success that a bot filter wrote: the receiver did not get the request.
func refuseChallenge(r *delivery.Result, a *queue.Attempt, answer http.Header) {
	if r.Failure != delivery.FailNone || r.Status < 200 || r.Status > 299 {
		return
	}
	if filter, _ := delivery.FilterOf(r.Status, answer, a.ResponseExcerpt); filter != "" {
		r.Failure = delivery.FailProtocol
		a.Error = fmt.Sprintf("%s in front of the receiver returned a challenge with status %d", filter, r.Status)
	}
}

// send writes a delivery's request and reads its response.
func (h *httpTransport) send(ctx context.Context, t *Destination, p *request, a *queue.Attempt) (delivery.Result, http.Header) {
	if h.small != nil && p.contentType == signature.ContentType && p.method == "" && p.made == nil && t.batch == nil {
		if r, answer, done := h.small.exchange(ctx, t, p, a); done {
			return r, answer
		}
	}
	return h.exchange(ctx, t, func(ctx context.Context) *http.Request {
		return post(ctx, t, p)
	}, a)
}

// exchange writes a request and reads its response, within the endpoint's timeout.
func (h *httpTransport) exchange(
	ctx context.Context,
	t *Destination,
	request func(context.Context) *http.Request,
	a *queue.Attempt,
) (delivery.Result, http.Header) {
	to, transport := t.to.(*httpAddress), h.transport
	if to.own != nil {
		transport = to.own.transport
	}
	p := &phases{began: time.Now(), plain: to.plain}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, phasesKey{}, p), t.timeout)
	defer cancel()
	var conn usedConn
	answer, err := transport.RoundTrip(request(httptrace.WithClientTrace(ctx, p.trace(&conn))))
	var r delivery.Result
	if err == nil && answer.StatusCode < 100 {
		_ = answer.Body.Close()
		answer, err = nil, badStatusError(answer.Status)
	}
	if err == nil {
		r.Status = answer.StatusCode
		most := delivery.MaxExcerpt
		if t.batch != nil && r.Status == http.StatusMultiStatus {
			most = delivery.MaxResults
		}
		if a.ResponseExcerpt, err = readExcerpt(ctx, answer, most); err != nil {
			a.Error = incompleteBody
		} else if conn.aged != nil {
			conn.aged.rest(conn.use, keptFor(conn.aged.expires, time.Now(), answer.Header))
		}
	} else {
		r.Failure, a.Error = classify(err, p)
		if r.Stale = p.isStale(ctx, r); r.Stale && conn.aged != nil {
			h.aged.closeIdle(conn.aged.address)
		}
	}
	p.fill(a)
	if answer == nil {
		return r, nil
	}
	return r, answer.Header
}

// isStale reports whether a request was lost because the connection that was kept from an earlier one had ended.
func (p *phases) isStale(ctx context.Context, r delivery.Result) bool {
	return r.Failure == delivery.FailReset && p.reused.Load() && p.firstByte.Load() == 0 && ctx.Err() == nil
}

const incompleteBody = "the response body was incomplete or timed out"

// post builds a delivery's request. The format's own headers come last: nothing that a tenant chose replaces them.
func post(ctx context.Context, t *Destination, p *request) *http.Request {
	body := p.body
	h := make(http.Header, len(p.headers)+len(p.made)+len(t.headers)+4)
	for _, c := range t.headers {
		h[c.Name] = []string{c.Value}
	}
	for _, c := range p.made {
		h[http.CanonicalHeaderKey(c.Name)] = []string{c.Value}
	}
	h["Content-Type"] = []string{p.contentType}
	h["User-Agent"] = userAgent
	h["Accept-Encoding"] = identity
	for _, c := range p.headers {
		h[c.Name] = []string{c.Value}
	}
	u := t.to.(*httpAddress).url
	req := &http.Request{
		Method:        cmp.Or(p.method, http.MethodPost),
		URL:           u,
		Host:          u.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        h,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		// With it the transport can try another connection if the first was closed before a byte was written: that is
		// no second send. It has no other use, since redirects are not followed.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
	if h["Idempotency-Key"] != nil || h["X-Idempotency-Key"] != nil {
		req.GetBody = nil // otherwise the transport would send again after a reset because of the header
	}
	return req.WithContext(ctx)
}

var (
	userAgent = []string{signature.UserAgent}
	identity  = []string{signature.AcceptEncoding}
)

// usedConn is the connection that http.Transport chose for a request.
type usedConn struct {
	aged *agedConn
	use  int
}

func (p *phases) trace(conn *usedConn) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			p.mark(&p.got)
			p.reused.Store(got.Reused)
			if conn.aged = agedOf(got.Conn); conn.aged != nil {
				conn.use = conn.aged.take()
			}
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { p.mark(&p.wrote) },
		GotFirstResponseByte: func() { p.mark(&p.firstByte) },
	}
}

// fill converts times into durations of phases.
func (p *phases) fill(a *queue.Attempt) {
	total := max(time.Since(p.began).Microseconds(), 1)
	dns, connected, tlsBegun, tlsDone := p.dns.Load(), p.connected.Load(), p.tlsBegun.Load(), p.tlsDone.Load()
	wrote, first := p.wrote.Load(), p.firstByte.Load()
	a.Total, a.DNS = int32(total), int32(dns)
	if connected > 0 {
		a.Connect = int32(connected - dns)
	}
	if tlsDone > 0 {
		a.TLS = int32(tlsDone - tlsBegun)
	}
	if first > 0 {
		a.Wait, a.Read = int32(max(first-wrote, 0)), int32(max(total-first, 0))
	} else if wrote > 0 {
		a.Wait = int32(max(total-wrote, 0))
	}
}

// readExcerpt reads at most the excerpt. The connection of a longer response is not reused.
func readExcerpt(ctx context.Context, answer *http.Response, most int) ([]byte, error) {
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return nil, nil // after an upgrade there is no body, only the connection itself
	}
	// The transport ends a body with its request; this is a second safeguard.
	defer context.AfterFunc(ctx, func() { _ = answer.Body.Close() })()
	b, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if len(b) > most {
		return b[:most], nil
	}
	if len(b) == 0 {
		b = nil
	}
	return b, err
}

// classify returns the phase that failed, and a sentence in plain words without an address.
func classify(err error, p *phases) (delivery.Failure, string) {
	var dial *dialError
	var network net.Error
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	switch {
	case errors.As(err, &dial):
		return dial.failure, dial.text
	case errors.Is(err, context.Canceled):
		return delivery.FailReset, "interrupted: this worker was stopped before a response arrived"
	case timedOut && p.got.Load() == 0:
		return p.noConnection()
	case timedOut:
		return delivery.FailTimeout, "no response in time"
	case isTLS(err):
		return delivery.FailTLS, tlsText(err, p.clientCertificate())
	case isClosed(err) && p.reused.Load() && p.firstByte.Load() == 0:
		return delivery.FailReset, "the connection, kept from an earlier request, was closed before a response arrived"
	case isClosed(err), strings.Contains(err.Error(), "server closed idle connection"):
		return delivery.FailReset, "the connection was closed before a response arrived"
	}
	return delivery.FailProtocol, protocolText(err)
}

// noConnection is what took so long that there is no connection. The endpoint's timeout can be shorter than the dial's
// own, which has not expired then.
func (p *phases) noConnection() (delivery.Failure, string) {
	switch {
	case p.tlsBegun.Load() > 0:
		return delivery.FailTLS, "the TLS handshake timed out"
	case p.resolving.Load() && p.dns.Load() == 0:
		return delivery.FailDNS, "the name server did not respond in time"
	case p.proxied.Load() && p.reached.Load() == 0:
		return delivery.FailProxy, "the egress proxy failed: it did not respond in time"
	}
	return delivery.FailConnect, "no connection in time"
}

// badStatusError is the status of a response that HTTP does not have. It is three digits and a reason.
type badStatusError string

func (e badStatusError) Error() string { return "the status " + string(e)[:3] + " does not exist" }

// protocolText says what is wrong with a response, in the parser's own words. Errors of the connection are not quoted,
// since they contain addresses.
func protocolText(err error) string {
	var network net.Error
	text := strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
	text = strings.TrimPrefix(text, "net/http: ")
	switch {
	case errors.Is(err, errLongHead), strings.HasPrefix(text, "server response headers exceeded"):
		return "the response's headers are larger than 64 KiB"
	case errors.As(err, &network):
		return "the response is not valid HTTP"
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	return delivery.Clip("the response is not valid HTTP: "+text, maxCause)
}
