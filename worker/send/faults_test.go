package send

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
)

func TestAMalformedResponseIsNamedAlikeOnBothPaths(t *testing.T) {
	t.Parallel()
	long := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", maxAnswerHead) + "\r\n\r\n"
	for response, want := range map[string]string{
		"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n":                                 "the status 000 does not exist",
		"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n":                                 "the status 099 does not exist",
		"HTTP/1.1 200 OK\r\nsome debug text\r\nContent-Length: 0\r\n\r\n":             "some debug text",
		"HTTP/1.1 200 OK\r\nH\xe9ader: x\r\nContent-Length: 0\r\n\r\n":                "malformed MIME header",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n":                      "identity",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n":                                  "Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":         "Content-Length",
		"SSH-2.0-OpenSSH_9.2\r\n":                                                     "SSH-2.0-OpenSSH_9.2",
		"HTTP/1.1 200 OK\r\ntls: remote error: \x1b[31m\r\nContent-Length: 0\r\n\r\n": "ls: remote error",
		long: "headers are larger than 64 KiB",
	} {
		said := map[string]string{}
		for path, body := range bothPaths {
			server := newRaw(t, func(c net.Conn, _ int) {
				_, _ = io.WriteString(c, response)
				_, _ = c.Read(make([]byte, 1))
			})
			r, a := newTestSender(t).Deliver(t.Context(), someDestination(t, server.url()), someMessage(body))
			if r.Failure != delivery.FailProtocol || r.Status != 0 || !strings.Contains(a.Error, want) {
				t.Errorf("%.60q, %s: %+v %q, want a protocol error with %q", response, path, r, a.Error, want)
			}
			if len(a.Error) > maxCause || strings.ContainsAny(a.Error, "\x1b\x00") || strings.Contains(a.Error, "127.0.0.1") {
				t.Errorf("%.60q, %s: %q", response, path, a.Error)
			}
			said[path] = a.Error
		}
		if said["small"] != said["large"] {
			t.Errorf("%.60q: the paths differ: %q", response, said)
		}
	}
}

// tlsReceiver serves each connection, and returns a sender that trusts a certificate and a destination.
func tlsReceiver(t *testing.T, trust *x509.Certificate, serve func(net.Conn)) (*Sender, *Destination) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer func() { _ = c.Close() }(); serve(c) }()
		}
	}()
	names := newNameServer(t)
	names.set("tls.test.example", "127.0.0.1")
	s := newTestSender(t)
	s.guard.resolver = names.resolver()
	pool := x509.NewCertPool()
	if trust != nil {
		pool.AddCert(trust)
	}
	stockTransport(s).TLSClientConfig.RootCAs = pool
	return s, someDestination(t, "https://tls.test.example:"+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

func TestEachTLSAlertHasItsOwnSentence(t *testing.T) {
	t.Parallel()
	alert := make(chan byte, 1)
	s, destination := tlsReceiver(t, nil, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, <-alert})
		_, _ = c.Read(make([]byte, 1))
	})
	seen := map[string]byte{}
	for code := byte(1); code < 130; code++ {
		if code == 90 {
			continue // user_canceled ends nothing
		}
		for path, body := range bothPaths {
			alert <- code
			r, a := s.Deliver(t.Context(), destination, someMessage(body))
			if r.Failure != delivery.FailTLS || !strings.Contains(a.Error, "TLS alert ") {
				t.Errorf("alert %d, %s: %+v %q", code, path, r, a.Error)
			}
			if other, ok := seen[a.Error]; ok && other != code {
				t.Errorf("alerts %d and %d have one sentence: %q", code, other, a.Error)
			}
			seen[a.Error] = code
		}
	}
}

// Some of what a server wants is checked after the client's handshake has ended: in TLS 1.3 its alert comes instead of
// the response.
func TestWhatAServerRequiresOfTLSIsNamed(t *testing.T) {
	t.Parallel()
	cert := certificate(t, nil)
	base := tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10}
	config := func(change func(*tls.Config)) *tls.Config {
		c := base.Clone()
		change(c)
		return c
	}
	for name, tt := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"client certificate in TLS 1.3": {config(func(c *tls.Config) {
			c.ClientAuth, c.MinVersion = tls.RequireAnyClientCert, tls.VersionTLS13
		}), "requires a client certificate"},
		"client certificate in TLS 1.2": {config(func(c *tls.Config) {
			c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12
		}), "requires a client certificate"},
		"TLS 1.0 only": {config(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS10 }), "older than 1.2"},
		"TLS 1.1 only": {config(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }), "older than 1.2"},
		"RSA key exchange only": {config(func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
		}), "none of the offered TLS settings"},
		"an optional client certificate": {config(func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }), ""},
	} {
		for path, body := range bothPaths {
			s, destination := tlsReceiver(t, cert.Leaf, func(c net.Conn) {
				server := tls.Server(c, tt.config)
				if server.Handshake() != nil {
					return
				}
				_, _ = server.Read(make([]byte, maxSmall+4096))
				answerOK(server)
				_, _ = io.Copy(io.Discard, server)
			})
			r, a := s.Deliver(t.Context(), destination, someMessage(body))
			refused := r.Failure == delivery.FailTLS && strings.Contains(a.Error, tt.want)
			if tt.want == "" && r.Status != 200 || tt.want != "" && !refused {
				t.Errorf("%s, %s: %+v %q, want %q", name, path, r, a.Error, tt.want)
			}
		}
	}
}

func TestAMissingIntermediateIsNamed(t *testing.T) {
	t.Parallel()
	root, leaf := certificate(t, nil), leafAlone(t)
	for name, tt := range map[string]struct {
		serve tls.Certificate
		want  string
	}{
		"a leaf alone": {leaf, "sent only its own certificate"},
		"self-signed":  {root, "self-signed"},
	} {
		s, destination := tlsReceiver(t, nil, func(c net.Conn) {
			_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{tt.serve}}).Handshake()
		})
		r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
		if r.Failure != delivery.FailTLS || !strings.Contains(a.Error, "unknown authority") ||
			!strings.Contains(a.Error, tt.want) {
			t.Errorf("%s: %+v %q, want %q", name, r, a.Error, tt.want)
		}
	}
}

// leafAlone is a certificate that an intermediate one signed, without the latter.
func leafAlone(t *testing.T) tls.Certificate {
	t.Helper()
	intermediate := certificate(t, func(c *x509.Certificate) { c.Subject.CommonName = "intermediate" })
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		DNSNames:     []string{"tls.test.example"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	template.Subject.CommonName = "leaf"
	der, err := x509.CreateCertificate(rand.Reader, template, intermediate.Leaf, &key.PublicKey, intermediate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
