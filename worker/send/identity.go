package send

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
)

// maxIdentities bounds the profiles that a process keeps.
const maxIdentities = 10_000

// profiles are the ways in which endpoints connect that have TLS settings of their own or a proxy. Endpoints with the
// same share connections.
type profiles struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]*profile
}

// profile is how the connections of some endpoints differ: a certificate of ours, whom they trust, and the proxy. It
// has its own sessions, since a session that is resumed was judged by its first handshake, and its own pool in
// http.Transport, which knows only hosts.
type profile struct {
	name      string // a part of what identifies connections that can be used again
	dialer    dialer
	config    *tls.Config
	transport *http.Transport
}

// of returns the identity for an endpoint's TLS settings, nil for the usual, and its proxy, nil for none.
func (is *profiles) of(t *endpoint.ClientTLS, proxy *egress.Proxy, h *httpTransport) (*profile, error) {
	text, err := json.Marshal([]any{t, proxy.Identity()})
	if err != nil {
		return nil, errors.New("the endpoint's TLS settings can't be read")
	}
	name := sha256.Sum256(text)
	is.mu.Lock()
	defer is.mu.Unlock()
	if i := is.by[name]; i != nil {
		return i, nil
	}
	config, err := tlsConfig(t, h.transport.TLSClientConfig)
	if err != nil {
		return nil, err
	}
	i := &profile{
		name:      base64.RawStdEncoding.EncodeToString(name[:]),
		dialer:    dialer{guard: h.guard, proxy: proxy},
		config:    config,
		transport: h.transport.Clone(),
	}
	i.transport.TLSClientConfig = config
	i.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return h.dial(ctx, i.dialer, network, address)
	}
	i.transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return h.dialTLS(ctx, i.dialer, network, address, config)
	}
	if len(is.by) >= maxIdentities {
		for other, old := range is.by { // any one: it costs its endpoint a handshake
			old.transport.CloseIdleConnections()
			delete(is.by, other)
			break
		}
	}
	if is.by == nil {
		is.by = map[[sha256.Size]byte]*profile{}
	}
	is.by[name] = i
	return i, nil
}

func (is *profiles) close() {
	is.mu.Lock()
	defer is.mu.Unlock()
	for _, i := range is.by {
		i.transport.CloseIdleConnections()
	}
}

// tlsConfig is the usual configuration with an endpoint's own settings, nil for none. The error contains no part of
// them.
func tlsConfig(t *endpoint.ClientTLS, usual *tls.Config) (*tls.Config, error) {
	config := usual.Clone()
	if t == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
		return config, nil
	}
	config.ClientSessionCache = tls.NewLRUClientSessionCache(16)
	if t.CA != "" {
		all, _, refusal := endpoint.Certificates(t.CA)
		if refusal != "" {
			return nil, errors.New("the endpoint's certificate authorities can't be read")
		}
		config.RootCAs = x509.NewCertPool()
		for _, c := range all {
			config.RootCAs.AddCert(c)
		}
	}
	if t.Certificate == "" {
		return config, nil
	}
	own, err := tls.X509KeyPair([]byte(t.Certificate), []byte(t.Key))
	if err != nil {
		return nil, errors.New("the endpoint's client certificate can't be read")
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}

// tokenClient is the client for the token endpoint of an endpoint with TLS settings or a proxy. It trusts the
// endpoint's authorities beside the usual ones, since authorization servers are often public where receivers are not,
// and has the client certificate where that authenticates it.
func (h *httpTransport) tokenClient(s endpoint.Settings, proxy *egress.Proxy) (*http.Client, error) {
	dial := dialer{guard: h.guard, proxy: proxy}.dial
	own := s.TLS.Connects()
	if own == nil {
		return boundedClient(dial, nil), nil
	}
	t := *own
	if s.Auth.Client.Auth != endpoint.TLSClientAuth {
		t.Certificate, t.Key = "", ""
	}
	usual := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: h.transport.TLSClientConfig.RootCAs}
	config, err := tlsConfig(&t, usual)
	if err != nil || t.CA == "" {
		return boundedClient(dial, config), err
	}
	all, _, _ := endpoint.Certificates(t.CA) // read by tlsConfig
	if usual.RootCAs != nil {
		config.RootCAs = usual.RootCAs.Clone()
	} else if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	for _, c := range all {
		config.RootCAs.AddCert(c)
	}
	return boundedClient(dial, config), nil
}
