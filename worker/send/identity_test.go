package send

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// clientOf is a certificate for clients by an authority, as an endpoint has it.
func clientOf(t testing.TB, authority tls.Certificate, name string) *endpoint.ClientTLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(3),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &endpoint.ClientTLS{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         pemKey(t, key),
	}
}

// mutual is a receiver with a certificate by its own authority, which asks for one by that of its clients.
type mutual struct {
	*httptest.Server
	authority, clients tls.Certificate
	conns              atomic.Int64
}

func newMutual(t testing.TB, serve http.HandlerFunc) *mutual {
	t.Helper()
	m := &mutual{
		authority: certificate(t, nil),
		clients:   certificate(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
	}
	m.Server = httptest.NewUnstartedServer(serve)
	pool := x509.NewCertPool()
	pool.AddCert(m.clients.Leaf)
	m.TLS = &tls.Config{
		Certificates: []tls.Certificate{issued(t, m.authority)},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
	m.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			m.conns.Add(1)
		}
	}
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

func secured(t testing.TB, s *Sender, url string, own *endpoint.ClientTLS) *Destination {
	t.Helper()
	d := someDestination(t, url)
	to, err := s.transports[endpoint.HTTP].configure(endpoint.Settings{Kind: endpoint.HTTP, URL: url, TLS: own}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.to = to
	return d
}

func TestAnEndpointHasItsOwnTLSIdentity(t *testing.T) {
	t.Parallel()
	m := newMutual(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	})
	s := newTestSender(t)
	strange := certificate(t, nil)
	trusting := func(own *endpoint.ClientTLS) *endpoint.ClientTLS {
		own.CA = pemOf(m.authority)
		return own
	}
	for name, c := range map[string]struct {
		own  *endpoint.ClientTLS
		text string
	}{
		"nothing":                      {nil, "invalid certificate"},
		"a certificate alone":          {clientOf(t, m.clients, "a"), "invalid certificate"},
		"the authority alone":          {trusting(&endpoint.ClientTLS{}), "the server requires a client certificate, which this endpoint doesn't have"},
		"another authority's":          {trusting(clientOf(t, strange, "b")), "the server rejected the endpoint's client certificate"},
		"another receiver's authority": {&endpoint.ClientTLS{CA: pemOf(strange)}, "invalid certificate"},
	} {
		d := secured(t, s, m.URL, c.own)
		for path, body := range bothPaths {
			if r, a := s.Deliver(t.Context(), d, someMessage(body)); r.Failure != delivery.FailTLS || !strings.Contains(a.Error, c.text) {
				t.Errorf("%s, %s: %+v %q", name, path, r, a.Error)
			}
		}
	}
	before := m.conns.Load()
	first, second := trusting(clientOf(t, m.clients, "first")), trusting(clientOf(t, m.clients, "second"))
	for range 3 {
		for name, own := range map[string]*endpoint.ClientTLS{"first": first, "second": second} {
			for path, body := range bothPaths {
				r, a := s.Deliver(t.Context(), secured(t, s, m.URL, own), someMessage(body))
				if r.Status != 200 || string(a.ResponseExcerpt) != name {
					t.Errorf("%s, %s: %+v %q %s", name, path, r, a.ResponseExcerpt, a.Error)
				}
			}
		}
	}
	if n := m.conns.Load() - before; n != 4 {
		t.Errorf("%d connections, want one for each identity on each path", n)
	}
	// A kept connection of one identity serves nobody else.
	if r, a := s.Deliver(t.Context(), secured(t, s, m.URL, nil), someMessage(`{}`)); r.Failure != delivery.FailTLS {
		t.Errorf("without an identity: %+v %s", r, a.Error)
	}
}

func TestAClientCertificateAuthenticatesToATokenEndpoint(t *testing.T) {
	t.Parallel()
	const token = "token-of-a-certificate"
	server := newMutual(t, func(w http.ResponseWriter, r *http.Request) {
		// RFC 8705 section 2.1.1: the request names the client, and carries no other proof.
		if r.FormValue("client_id") != r.TLS.PeerCertificates[0].Subject.CommonName || r.FormValue("grant_type") != "client_credentials" ||
			r.Form.Has("client_secret") || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"`+token+`","token_type":"bearer","expires_in":60}`)
	})
	receiver := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
	s := newTestSender(t)
	own := clientOf(t, server.clients, "posthorn")
	own.CA = pemOf(server.authority)
	client := &endpoint.OAuthClient{TokenURL: server.URL, ID: "posthorn", Auth: endpoint.TLSClientAuth}
	send := func(a *endpoint.Auth, t2 *endpoint.ClientTLS) (delivery.Result, *queue.Attempt) {
		t.Helper()
		d := someDestination(t, receiver.url())
		to, err := s.transports[endpoint.HTTP].configure(endpoint.Settings{Kind: endpoint.HTTP, URL: receiver.url(), Auth: a, TLS: t2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.to = to
		return s.Deliver(t.Context(), d, someMessage(`{}`))
	}
	if r, a := send(&endpoint.Auth{Type: endpoint.OAuth2, Client: client}, own); r.Status != 200 {
		t.Fatalf("%+v %s", r, a.Error)
	}
	receiver.mu.Lock()
	if !strings.Contains(receiver.requests[0], "\r\nAuthorization: Bearer "+token+"\r\n") {
		t.Errorf("sent %q", receiver.requests[0])
	}
	receiver.mu.Unlock()
	post := *client
	post.Auth = endpoint.ClientSecretPost
	if r, a := send(&endpoint.Auth{Type: endpoint.OAuth2, Client: &post, Secret: "x"}, own); r.Failure != delivery.FailToken || !strings.Contains(a.Error, "client certificate") {
		t.Errorf("a secret needs no certificate, and sends none: %+v %q", r, a.Error)
	}
}
