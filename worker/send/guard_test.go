package send

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/tools/need"
)

// nameServer responds as the test says, over UDP on this machine.
type nameServer struct {
	address string
	mu      sync.Mutex
	zone    map[string][]netip.Addr // by name with its final dot
	aliases map[string]string       // CNAMEs
	silent  atomic.Bool
	asked   int
}

func newNameServer(t testing.TB) *nameServer {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n := &nameServer{address: conn.LocalAddr().String(), zone: map[string][]netip.Addr{}, aliases: map[string]string{}}
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := n.answer(buf[:size]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return n
}

// set makes a name resolve to addresses from now on.
func (n *nameServer) set(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		list[i] = netip.MustParseAddr(a)
	}
	n.zone[name+"."] = list
}

func (n *nameServer) answer(query []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	var m dnsmessage.Message
	if n.silent.Load() || m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Header.Response, m.Header.RecursionAvailable, m.Additionals = true, true, nil
	name := q.Name.String()
	for range 10 {
		alias, ok := n.aliases[name]
		if !ok {
			break
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(alias)},
		})
		name = alias
	}
	addrs, known := n.zone[name]
	if !known {
		m.Header.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: h,
				Body:   &dnsmessage.AAAAResource{AAAA: a.As16()},
			})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// resolver asks this name server alone.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", n.address)
		},
	}
}

// canary counts connections that must not be opened.
type canary struct {
	net.Listener
	mu    sync.Mutex
	conns int
}

func newCanary(t testing.TB, network, address string) *canary {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		need.Missing(t, "the address "+address, "%v", err)
	}
	c := &canary{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.conns++
			c.mu.Unlock()
			_ = conn.Close()
		}
	}()
	return c
}

func (c *canary) silent(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns != 0 {
		t.Errorf("%d connections came to %s, which is not allowed", c.conns, c.Addr())
	}
}

// The receiver is at 127.0.0.2 on a port of its own, the one address that the operator allows; canaries listen on the
// same port of the other addresses.
func guarded(t *testing.T) (s *Sender, names *nameServer, port string, canaries []*canary) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		need.Missing(t, "the address 127.0.0.2", "%v", err)
	}
	server := &raw{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go server.handle(c, func(c net.Conn, _ int) { answerOK(c) })
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	policy, err := egress.ParseAllow("127.0.0.2:" + port)
	if err != nil {
		t.Fatal(err)
	}
	canaries = append(canaries, newCanary(t, "tcp4", "127.0.0.1:"+port), newCanary(t, "tcp4", "127.0.0.3:"+port))
	if l6, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp6", "[::1]:"+port); err == nil {
		_ = l6.Close()
		canaries = append(canaries, newCanary(t, "tcp6", "[::1]:"+port))
	}
	names = newNameServer(t)
	s = New(policy)
	s.guard.resolver = names.resolver()
	t.Cleanup(s.Close)
	return s, names, port, canaries
}

func TestAddressesAreDialedOnlyIfTheWholeDNSResponseIsAllowed(t *testing.T) {
	t.Parallel()
	s, names, port, canaries := guarded(t)
	for _, tt := range []struct {
		name    string
		addrs   []string
		failure delivery.Failure
	}{
		{"fine.test.example", []string{"127.0.0.2"}, delivery.FailNone},
		{"loopback.test.example", []string{"127.0.0.1"}, delivery.FailBlocked},
		{"mixed.test.example", []string{"127.0.0.2", "127.0.0.1"}, delivery.FailBlocked},
		{"mixed-last.test.example", []string{"127.0.0.1", "127.0.0.2"}, delivery.FailBlocked},
		{"six.test.example", []string{"::1"}, delivery.FailBlocked},
		{"mixed-six.test.example", []string{"127.0.0.2", "::1"}, delivery.FailBlocked},
		{"mapped.test.example", []string{"::ffff:127.0.0.1"}, delivery.FailBlocked},
		{"nat64.test.example", []string{"64:ff9b::7f00:1"}, delivery.FailBlocked},
		{"metadata.test.example", []string{"169.254.169.254"}, delivery.FailBlocked},
		{"zero.test.example", []string{"0.0.0.0"}, delivery.FailBlocked},
		{"zero-six.test.example", []string{"::"}, delivery.FailBlocked},
		{"nowhere.test.example", []string{}, delivery.FailDNS},
	} {
		names.set(tt.name, tt.addrs...)
		r, a := s.Deliver(t.Context(), someDestination(t, "http://"+net.JoinHostPort(tt.name, port)), someMessage(`{}`))
		if r.Failure != tt.failure || r.Failure == delivery.FailNone && r.Status != 200 {
			t.Errorf("%s (%v): %s %d %q, want %s", tt.name, tt.addrs, r.Failure, r.Status, a.Error, tt.failure)
		}
		if r.Failure == delivery.FailBlocked && a.Error != "blocked address" {
			t.Errorf("%s: the tenant is told %q", tt.name, a.Error)
		}
		if r.Failure == delivery.FailNone && a.DNS == 0 {
			t.Errorf("%s: no time for DNS is on record", tt.name)
		}
	}
	names.mu.Lock()
	names.aliases["one.test.example."] = "two.test.example."
	names.aliases["two.test.example."] = "loopback.test.example."
	names.aliases["three.test.example."] = "fine.test.example."
	names.mu.Unlock()
	for name, want := range map[string]delivery.Failure{
		"one.test.example":     delivery.FailBlocked,
		"three.test.example":   delivery.FailNone,
		"unknown.test.example": delivery.FailDNS,
	} {
		if r, a := s.Deliver(t.Context(), someDestination(t, "http://"+net.JoinHostPort(name, port)), someMessage(`{}`)); r.Failure != want {
			t.Errorf("%s: %s %q, want %s", name, r.Failure, a.Error, want)
		}
	}
	for _, c := range canaries {
		c.silent(t)
	}
}

func TestADNSResponseThatChangesIsCheckedAtEveryConnection(t *testing.T) {
	t.Parallel()
	s, names, port, canaries := guarded(t)
	destination := someDestination(t, "http://"+net.JoinHostPort("rebind.test.example", port))
	names.set("rebind.test.example", "127.0.0.2")
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
		t.Fatalf("%+v %q", r, a.Error)
	}
	names.set("rebind.test.example", "127.0.0.1")
	// The checked connection can be used again: it is still the same machine.
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 || a.Connect != 0 || a.DNS != 0 {
		t.Errorf("on the open connection: %+v %q", r, a.Error)
	}
	s.Close()
	for range 3 {
		if r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Failure != delivery.FailBlocked {
			t.Errorf("on a new connection: %+v, want a blocked address", r)
		}
	}
	names.set("rebind.test.example", "127.0.0.2")
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
		t.Errorf("after it healed: %+v %q", r, a.Error)
	}
	for _, c := range canaries {
		c.silent(t)
	}
}

// A name with another address at each lookup: the checked address is the dialed one.
func TestAlternatingDNSResponsesNeverReachABlockedAddress(t *testing.T) {
	t.Parallel()
	s, names, port, canaries := guarded(t)
	destination := someDestination(t, "http://"+net.JoinHostPort("flip.test.example", port))
	reached, blocked := 0, 0
	for i := range 60 {
		names.set("flip.test.example", []string{"127.0.0.2", "127.0.0.1", "127.0.0.3"}[i%3])
		r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`))
		switch {
		case r.Status == 200:
			reached++
		case r.Failure == delivery.FailBlocked:
			blocked++
		}
		s.Close()
	}
	if reached != 20 || blocked != 40 {
		t.Errorf("%d reached and %d blocked, want 20 and 40", reached, blocked)
	}
	for _, c := range canaries {
		c.silent(t)
	}
}

func TestLiteralsAreCheckedLikeNames(t *testing.T) {
	t.Parallel()
	s, _, port, canaries := guarded(t)
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "[fd00:ec2::254]", "[fe80::1%25lo]",
		"127.0.0.3", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1",
	} {
		destination := someDestination(t, "http://"+host+":"+port)
		if r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Failure == delivery.FailNone {
			t.Errorf("%s: answered %d", host, r.Status)
		}
	}
	empty := someDestination(t, "http://x:"+port)
	empty.to.(*httpAddress).url.Host = ":" + port
	if r, _ := s.Deliver(t.Context(), empty, someMessage(`{}`)); r.Failure == delivery.FailNone {
		t.Error("no host at all was dialled")
	}
	for _, c := range canaries {
		c.silent(t)
	}
}

// Plain http reaches only listed addresses: a public address that is allowed for TLS is not allowed for http.
func TestPlainHTTPReachesOnlyListedAddresses(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	names.set("public.test.example", "93.184.216.34")
	s := New(egress.Policy{})
	s.guard.resolver = names.resolver()
	destination := someDestination(t, "http://public.test.example")
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Failure != delivery.FailBlocked {
		t.Errorf("%+v %q, want a blocked address", r, a.Error)
	}
}

func TestASilentNameServerIsADNSErrorWithinItsTime(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	names.silent.Store(true)
	s := New(loopback(t))
	s.guard.resolver = names.resolver()
	for _, limit := range []time.Duration{time.Second, 15 * time.Second} {
		destination := someDestination(t, "http://silent.test.example")
		destination.timeout = limit
		began := time.Now()
		r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
		if took := time.Since(began); r.Failure != delivery.FailDNS || took > min(limit, dnsTimeout)+time.Second {
			t.Errorf("with a time-out of %v: %s %q after %v", limit, r.Failure, a.Error, took)
		}
	}
}

func TestIPv6IsDialed(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp6", "[::1]:0")
	if err != nil {
		need.Missing(t, "IPv6", "%v", err)
	}
	server := &raw{Listener: l}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go server.handle(c, func(c net.Conn, _ int) { answerOK(c) })
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	names := newNameServer(t)
	names.set("six.test.example", "::1")
	s := newTestSender(t)
	s.guard.resolver = names.resolver()
	for _, host := range []string{"[::1]", "six.test.example"} {
		if r, a := s.Deliver(t.Context(), someDestination(t, "http://"+host+":"+port), someMessage(`{}`)); r.Status != 200 {
			t.Errorf("%s: %+v %q", host, r, a.Error)
		}
	}
}

// certificate makes a certificate for names, signed by itself or by another.
func certificate(t testing.TB, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		DNSNames:              []string{"tls.test.example"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}
}

func TestTLSErrorsAreNamed(t *testing.T) {
	t.Parallel()
	good := certificate(t, nil)
	expired := certificate(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	other := certificate(t, func(c *x509.Certificate) { c.DNSNames = []string{"other.test.example"} })
	withTLS := func(cfg *tls.Config) func(net.Conn) {
		return func(c net.Conn) {
			s := tls.Server(c, cfg)
			defer func() { _ = s.Close() }()
			buf := make([]byte, 4096)
			if n, _ := s.Read(buf); n > 0 {
				_, _ = io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			_, _ = s.Read(buf)
		}
	}
	for _, tt := range []struct {
		name    string
		serve   func(net.Conn)
		trust   []tls.Certificate
		failure delivery.Failure
		text    string
	}{
		{"trusted", withTLS(&tls.Config{Certificates: []tls.Certificate{good}}), []tls.Certificate{good}, delivery.FailNone, ""},
		{
			"HTTP/2 on offer", withTLS(&tls.Config{Certificates: []tls.Certificate{good}, NextProtos: []string{"h2", "http/1.1"}}),
			[]tls.Certificate{good},
			delivery.FailNone, "",
		},
		{"unknown issuer", withTLS(&tls.Config{Certificates: []tls.Certificate{good}}), nil, delivery.FailTLS, "invalid certificate"},
		{
			"expired", withTLS(&tls.Config{Certificates: []tls.Certificate{expired}}),
			[]tls.Certificate{expired},
			delivery.FailTLS,
			"expired",
		},
		{"another name", withTLS(&tls.Config{Certificates: []tls.Certificate{other}}), []tls.Certificate{other}, delivery.FailTLS, "other.test.example"},
		{"TLS 1.1", withTLS(&tls.Config{
			Certificates: []tls.Certificate{good},
			MinVersion:   tls.VersionTLS10,
			MaxVersion:   tls.VersionTLS11,
		}), []tls.Certificate{good}, delivery.FailTLS, "older than 1.2"},
		{"plain HTTP", func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad request\r\nContent-Length: 0\r\n\r\n")
		}, nil, delivery.FailTLS, "plain HTTP instead of TLS"},
		{"hangs up", func(c net.Conn) { _, _ = c.Read(make([]byte, 1000)); _ = c.Close() }, nil, delivery.FailTLS, "handshake failed"},
		{"resets", func(c net.Conn) { _, _ = c.Read(make([]byte, 1000)); resetConn(c) }, nil, delivery.FailTLS, "handshake failed"},
		{"stalls", func(net.Conn) { time.Sleep(3 * time.Second) }, nil, delivery.FailTLS, "timed out"},
		{"closes after the handshake", func(c net.Conn) {
			s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{good}})
			_ = s.Handshake()
			_, _ = s.Read(make([]byte, 1))
			_ = s.Close()
		}, []tls.Certificate{good}, delivery.FailReset, "closed before a response"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() { defer func() { _ = c.Close() }(); tt.serve(c) }()
				}
			}()
			names := newNameServer(t)
			names.set("tls.test.example", "127.0.0.1")
			s := newTestSender(t)
			s.guard.resolver = names.resolver()
			pool := x509.NewCertPool()
			for _, c := range tt.trust {
				pool.AddCert(c.Leaf)
			}
			stockTransport(s).TLSClientConfig.RootCAs = pool
			destination := someDestination(t, "https://tls.test.example:"+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
			destination.timeout = 1500 * time.Millisecond
			began := time.Now()
			r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
			if r.Failure != tt.failure || !strings.Contains(a.Error, tt.text) || tt.failure == delivery.FailNone &&
				(r.Status != 200 || a.TLS == 0) {
				t.Errorf("%s (status %d): %q; want %s: %q", r.Failure, r.Status, a.Error, tt.failure, tt.text)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("ended after %v", took)
			}
			if strings.Contains(a.Error, "127.0.0.1") {
				t.Errorf("the tenant is told an address: %q", a.Error)
			}
		})
	}
}
