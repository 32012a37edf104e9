package send

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/signature"
)

// Bounds of a Client's responses.
const (
	clientTimeout = 4 * time.Second // shorter than the timeout of a page
	maxDocument   = 512 << 10
)

// NewClient is an HTTP client for small documents at URLs that a tenant chose, such as those of an identity provider.
// It connects through the guard of deliveries, follows no redirect, uses no proxy, and reads at most 512 KiB of a
// response in at most 4 s.
func NewClient(policy egress.Policy) *http.Client {
	g := newGuard(policy)
	return boundedClient(g.dial, nil)
}

// NewTrustedClient is NewClient for URLs that the operator chose: it can connect to private addresses.
func NewTrustedClient() *http.Client {
	return boundedClient((&net.Dialer{Timeout: connectTimeout}).DialContext, nil)
}

// boundedClient dials by a function; config is its TLS, nil for the usual.
func boundedClient(dial func(ctx context.Context, network, address string) (net.Conn, error), config *tls.Config) *http.Client {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Timeout: clientTimeout,
		Transport: &documents{next: &http.Transport{
			Proxy:                  nil,
			DialContext:            dial,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    tlsTimeout,
			MaxResponseHeaderBytes: maxAnswerHead,
			DisableCompression:     true,
			MaxIdleConns:           20,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        10 * time.Second,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// documents bounds the size of responses and the age of connections, and tells the guard which requests are
// unencrypted.
type documents struct {
	next    *http.Transport
	renewed atomic.Int64 // when unused connections were last closed, in Unix milliseconds
}

// renew closes unused connections once in their greatest age, so that a change of DNS records is followed.
func (d *documents) renew(now time.Time) {
	last := d.renewed.Load()
	if now.UnixMilli()-last >= maxAge.Milliseconds() && d.renewed.CompareAndSwap(last, now.UnixMilli()) {
		d.next.CloseIdleConnections()
	}
}

// CloseIdleConnections closes unused connections.
func (d *documents) CloseIdleConnections() { d.next.CloseIdleConnections() }

func (d *documents) RoundTrip(r *http.Request) (*http.Response, error) {
	p := &phases{began: time.Now(), plain: r.URL.Scheme == "http"}
	d.renew(p.began)
	r = r.Clone(context.WithValue(r.Context(), phasesKey{}, p))
	r.Header.Set("User-Agent", signature.UserAgent)
	answer, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &boundedBody{answer.Body, maxDocument}
	return answer, nil
}

var errDocumentTooLarge = errors.New("the response is larger than 512 KiB")

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errDocumentTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// clientText says why a Client got no response, in plain words without an address.
func clientText(err error) string {
	var dial *dialError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &dial):
		return dial.text
	case errors.As(err, &certificate), isTLS(err):
		return tlsText(err, delivery.CertificateNotAsked)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "no response in time"
	case isClosed(err):
		return "the connection was closed before a response arrived"
	}
	return "the response is not valid HTTP"
}
