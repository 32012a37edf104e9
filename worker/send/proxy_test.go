package send

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/show"
	"posthorn/tools/proxytest"
)

// proxied is a policy under which endpoints and proxies can be on this machine.
func proxied(t testing.TB) egress.Policy {
	t.Helper()
	p, err := egress.ParseAllow("127.0.0.0/8")
	if err == nil {
		p, err = p.WithProxies("127.0.0.0/8")
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// through is a sender and the function that makes its destinations, which go through a proxy.
func through(t testing.TB, proxy *egress.Proxy, names *nameServer) (*Sender, func(url string, change func(*endpoint.Settings)) *Destination) {
	t.Helper()
	s := New(proxied(t))
	t.Cleanup(s.Close)
	if names != nil {
		s.guard.resolver = names.resolver()
	}
	return s, func(url string, change func(*endpoint.Settings)) *Destination {
		settings := endpoint.ReadDefaults(50, nil, nil).Settings
		settings.URL, settings.TimeoutSeconds = url, 10
		if change != nil {
			change(&settings)
		}
		d, err := newDestination(endpoints.Facts{
			Endpoint: "ep_1",
			Settings: settings,
			Secrets:  []endpoints.Secret{{Text: "whsec_bmV3ZXN0LXNlY3JldC1vZi0zMi1ieXRlcy0wMDAwMDE="}},
			Proxy:    proxy,
		}, s.transports[endpoint.HTTP])
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func proxyAt(kind egress.ProxyType, address string) *egress.Proxy {
	return &egress.Proxy{Type: kind, Address: address, Username: proxytest.User, Password: proxytest.Password}
}

// realProxies runs a test with each real proxy.
func realProxies(t *testing.T, test func(t *testing.T, p *proxytest.Proxy, own *egress.Proxy)) {
	t.Helper()
	for kind, start := range map[egress.ProxyType]func(testing.TB) *proxytest.Proxy{
		egress.ProxyHTTP: proxytest.Squid, egress.ProxySOCKS5: proxytest.Dante,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := start(t)
			test(t, p, proxyAt(kind, p.Address))
		})
	}
}

// The receiver's certificate and ours are checked through the tunnel, and connections are kept.
func TestDeliveriesGoThroughRealProxiesWithTLSEndToEnd(t *testing.T) {
	t.Parallel()
	realProxies(t, func(t *testing.T, p *proxytest.Proxy, own *egress.Proxy) {
		m := newMutual(t, func(out http.ResponseWriter, r *http.Request) {
			if len(r.TLS.PeerCertificates) != 1 {
				out.WriteHeader(http.StatusForbidden)
			}
		})
		client := clientOf(t, m.clients, "a")
		client.CA = pemOf(m.authority)
		plain := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(out, r.Body)
		}))
		t.Cleanup(plain.Close)
		s, to := through(t, own, nil)
		for range 3 {
			for url, tls := range map[string]*endpoint.ClientTLS{m.URL: client, plain.URL: nil} {
				d := to(url, func(s *endpoint.Settings) { s.TLS = tls })
				for _, body := range []string{`{}`, `"` + strings.Repeat("x", 64<<10) + `"`} { // the small client, and http.Transport
					if r, a := s.Deliver(t.Context(), d, someMessage(body)); r.Status != http.StatusOK {
						t.Fatalf("%s: %+v %s", url, r, a.Error)
					}
				}
			}
		}
		if n := m.conns.Load(); n != 2 { // one of each client
			t.Errorf("%d connections to the receiver through %s, want 2 that are kept", n, p.Address)
		}
		p.Stop()
		direct, toDirect := through(t, nil, nil)
		if r, _ := direct.Deliver(t.Context(), toDirect(plain.URL, nil), someMessage(`{}`)); r.Status != http.StatusOK {
			t.Errorf("an endpoint without a proxy: %+v", r)
		}
		again, toProxy := through(t, own, nil)
		r, a := again.Deliver(t.Context(), toProxy(plain.URL, nil), someMessage(`{}`))
		if r.Failure != delivery.FailProxy || !strings.Contains(a.Error, "egress proxy failed") {
			t.Errorf("a proxy that is down: %+v %s", r, a.Error)
		}
	})
}

// A refusal of the receiver is the receiver's, what the proxy itself refuses is the proxy's.
func TestFailuresOfProxiesAndOfReceiversAreToldApart(t *testing.T) {
	t.Parallel()
	realProxies(t, func(t *testing.T, p *proxytest.Proxy, own *egress.Proxy) {
		receiver := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(receiver.Close)
		wrong := *own
		wrong.Password = "canary-wrong-password"
		anonymous := *own
		anonymous.Username, anonymous.Password = "", ""
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(receiver.URL, "http://"))
		for name, c := range map[string]struct {
			proxy   *egress.Proxy
			url     string
			failure delivery.Failure
			says    string
		}{
			"nothing listens":    {own, fmt.Sprintf("http://127.0.0.1:%d", unusedPort(t)), delivery.FailConnect, "egress proxy"},
			"its rules":          {own, "http://" + net.JoinHostPort(proxytest.Refused, port), delivery.FailProxy, "refuse"},
			"a wrong password":   {&wrong, receiver.URL, delivery.FailProxy, "did not accept the username and password"},
			"no credentials":     {&anonymous, receiver.URL, delivery.FailProxy, "username and password"},
			"a response is one":  {own, receiver.URL, delivery.FailNone, ""},
			"a blocked address":  {own, "https://10.0.0.1/", delivery.FailBlocked, "blocked address"},
			"a metadata address": {own, "https://169.254.169.254/", delivery.FailBlocked, "blocked address"},
		} {
			s, to := through(t, c.proxy, nil)
			r, a := s.Deliver(t.Context(), to(c.url, nil), someMessage(`{}`))
			if r.Failure != c.failure || !strings.Contains(a.Error, c.says) || strings.Contains(a.Error, "canary") || strings.Contains(a.Error, "127.0.0.1") {
				t.Errorf("%s: %+v %q", name, r, a.Error)
			}
			if c.failure == delivery.FailProxy && delivery.Classify(r, false) != delivery.Neutral {
				t.Errorf("%s counts against the endpoint", name)
			}
		}
		p.Freeze()
		s, to := through(t, own, nil)
		r, a := s.Deliver(t.Context(), to(receiver.URL, nil), someMessage(`{}`))
		if r.Failure != delivery.FailProxy || !strings.Contains(a.Error, "respond in time") {
			t.Errorf("a proxy that hangs: %+v %s", r, a.Error)
		}
	})
}

// The name is resolved and judged here, and the proxy gets the address: one that resolves names needs an approval.
func TestAProxyGetsTheAddressThatWasJudged(t *testing.T) {
	t.Parallel()
	for _, kind := range []egress.ProxyType{egress.ProxyHTTP, egress.ProxySOCKS5} {
		fake := newFakeProxy(t, kind)
		names := newNameServer(t)
		names.set("public.test.example", "127.0.0.7", "127.0.0.8")
		names.set("private.test.example", "127.0.0.7", "10.0.0.1")
		own := &egress.Proxy{Type: kind, Address: fake.Addr().String()}
		s, to := through(t, own, names)
		s.Deliver(t.Context(), to("https://public.test.example:8443/", nil), someMessage(`{}`))
		if asked := fake.asked(); len(asked) == 0 || asked[0] != "127.0.0.7:8443" {
			t.Errorf("%s was asked for %v", kind, asked)
		}
		for _, url := range []string{"https://private.test.example:8443/", "https://10.1.2.3/", "https://[::ffff:10.0.0.1]/"} {
			if r, _ := s.Deliver(t.Context(), to(url, nil), someMessage(`{}`)); r.Failure != delivery.FailBlocked || len(fake.asked()) > 0 {
				t.Errorf("%s of %s: %+v", url, kind, r)
			}
		}
		approved := *own
		approved.ResolveNames = true
		s, to = through(t, &approved, names)
		s.Deliver(t.Context(), to("https://receiver.posthorn.dev:8443/", nil), someMessage(`{}`))
		if asked := fake.asked(); len(asked) != 1 || asked[0] != "receiver.posthorn.dev:8443" {
			t.Errorf("%s, which resolves names, was asked for %v", kind, asked)
		}
		for _, url := range []string{"https://10.1.2.3/", "https://localhost/", "https://metadata.google.internal/", "http://receiver.posthorn.dev/", "https://server.local/"} {
			if r, _ := s.Deliver(t.Context(), to(url, nil), someMessage(`{}`)); r.Failure != delivery.FailBlocked || len(fake.asked()) > 0 {
				t.Errorf("%s of %s, which resolves names: %+v", url, kind, r)
			}
		}
	}
}

// The list of addresses that are never reached holds for proxies too, and what is allowed for one is not for the other.
func TestAProxyIsDialedUnderItsOwnAllowance(t *testing.T) {
	t.Parallel()
	fake := newFakeProxy(t, egress.ProxyHTTP)
	own := &egress.Proxy{Type: egress.ProxyHTTP, Address: fake.Addr().String()}
	endpointsOnly := loopback(t)
	s := New(endpointsOnly)
	t.Cleanup(s.Close)
	d := dialer{guard: s.guard, proxy: own}
	if _, err := d.dial(t.Context(), "tcp", "127.0.0.1:443"); !isOf(err, delivery.FailProxy) || len(fake.asked()) > 0 {
		t.Errorf("a proxy at an address that only endpoints can have: %v", err)
	}
	proxiesOnly, err := egress.Policy{}.WithProxies(own.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := proxiesOnly.CheckAddr(netip.MustParseAddrPort(own.Address)); err == nil {
		t.Error("an endpoint can have the address of a proxy")
	}
}

// Endpoints share connections by proxy, too, and the token endpoint is reached through it.
func TestTokensAreRequestedThroughTheProxy(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	fake := newFakeProxy(t, egress.ProxyHTTP)
	s, to := through(t, &egress.Proxy{Type: egress.ProxyHTTP, Address: fake.Addr().String()}, nil)
	d := to(w.receiver.URL+"/hook", func(s *endpoint.Settings) { s.Auth = w.auth() })
	r, a := s.Deliver(t.Context(), d, someMessage(`{}`))
	if r.Failure != delivery.FailProxy || !strings.Contains(a.Error, "egress proxy") {
		t.Errorf("%+v %s", r, a.Error)
	}
	if asked := fake.asked(); len(asked) != 1 || !strings.Contains(w.auth().Client.TokenURL, asked[0]) {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

// What each answer of a proxy means.
func TestEachAnswerOfAProxyHasItsMeaning(t *testing.T) {
	t.Parallel()
	receivers, proxys := delivery.FailConnect, delivery.FailProxy
	for answer, want := range map[string]delivery.Failure{
		"HTTP/1.1 502 Bad Gateway\r\n\r\n":                                                                         receivers,
		"HTTP/1.1 504 Gateway Timeout\r\n\r\n":                                                                     receivers,
		"HTTP/1.1 503 Service Unavailable\r\n\r\n":                                                                 proxys,
		"HTTP/1.1 503 Service Unavailable\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\n\r\n":                          receivers,
		"HTTP/1.1 503 Service Unavailable\r\nProxy-Status: envoy; error=connection_refused; details=\"x\"\r\n\r\n": receivers,
		"HTTP/1.1 502 Bad Gateway\r\nProxy-Status: envoy; error=proxy_internal_error\r\n\r\n":                      proxys,
		"HTTP/1.1 403 Forbidden\r\n\r\n":                                                                           proxys,
		"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n":                                                       proxys,
		"HTTP/1.1 200 OK\r\n\r\nmore":                                                                              proxys,
		"SSH-2.0-OpenSSH\r\n":                                                                                      proxys,
		"\x05\x00":                                                                                                 proxys,
		"":                                                                                                         proxys,
	} {
		fake := newFakeProxy(t, egress.ProxyHTTP)
		fake.answer = answer
		s, to := through(t, &egress.Proxy{Type: egress.ProxyHTTP, Address: fake.Addr().String()}, nil)
		if r, a := s.Deliver(t.Context(), to("http://127.0.0.1:8999/", nil), someMessage(`{}`)); r.Failure != want || strings.Contains(a.Error, "127.0.0.1") {
			t.Errorf("%q: %+v %s", answer, r, a.Error)
		}
	}
	for reply, want := range map[byte]delivery.Failure{1: proxys, 2: proxys, 3: receivers, 4: receivers, 5: receivers, 6: receivers, 7: proxys, 8: proxys, 0x77: proxys} {
		fake := newFakeProxy(t, egress.ProxySOCKS5)
		fake.answer = string([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
		s, to := through(t, &egress.Proxy{Type: egress.ProxySOCKS5, Address: fake.Addr().String()}, nil)
		if r, a := s.Deliver(t.Context(), to("http://127.0.0.1:8999/", nil), someMessage(`{}`)); r.Failure != want {
			t.Errorf("reply %d: %+v %s", reply, r, a.Error)
		}
	}
}

func TestAConnectionTestShowsTheStepOfTheProxy(t *testing.T) {
	t.Parallel()
	realProxies(t, func(t *testing.T, _ *proxytest.Proxy, own *egress.Proxy) {
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(receiver.Close)
		wrong := *own
		wrong.Password = "canary-wrong-password"
		for want, c := range map[string]struct {
			proxy *egress.Proxy
			url   string
		}{
			"dns skipped, proxy ok, connect ok, tls skipped, token skipped, request ok":               {own, receiver.URL},
			"dns skipped, proxy ok, connect failed, tls skipped, token skipped, request skipped":      {own, fmt.Sprintf("http://127.0.0.1:%d", unusedPort(t))},
			"dns skipped, proxy failed, connect skipped, tls skipped, token skipped, request skipped": {&wrong, receiver.URL},
		} {
			settings := endpoint.ReadDefaults(50, nil, nil).Settings
			settings.URL = c.url
			steps, err := NewTester(proxied(t)).Test(t.Context(), endpoints.Facts{Settings: settings, Proxy: c.proxy})
			if err != nil || shown(steps) != want || strings.Contains(fmt.Sprint(steps), "canary") {
				t.Errorf("%v %+v, want %s", err, steps, want)
			}
			for _, s := range steps {
				if s.Name == show.StepProxy && s.Took <= 0 {
					t.Errorf("the step has no time: %+v", s)
				}
			}
		}
	})
}

// fakeProxy records what it is asked for, and responds as it is told.
type fakeProxy struct {
	net.Listener
	targets chan string
	answer  string
}

func newFakeProxy(t testing.TB, kind egress.ProxyType) *fakeProxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := &fakeProxy{Listener: l, targets: make(chan string, 100)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				if kind == egress.ProxySOCKS5 {
					f.socks(conn)
					return
				}
				buffer := make([]byte, 4096)
				n, err := conn.Read(buffer)
				if method, rest, ok := strings.Cut(string(buffer[:n]), " "); err == nil && ok && method == "CONNECT" {
					target, _, _ := strings.Cut(rest, " ")
					f.targets <- target
				}
				_, _ = io.WriteString(conn, f.answer)
			}()
		}
	}()
	return f
}

func (f *fakeProxy) socks(conn net.Conn) {
	buffer := make([]byte, 300)
	if _, err := io.ReadFull(conn, buffer[:3]); err != nil {
		return
	}
	_, _ = conn.Write([]byte{5, 0})
	n, err := io.ReadAtLeast(conn, buffer, 7)
	if err != nil {
		return
	}
	request := buffer[:n]
	port := fmt.Sprint(int(request[n-2])<<8 | int(request[n-1]))
	if request[3] == socksName {
		f.targets <- net.JoinHostPort(string(request[5:n-2]), port)
	} else if addr, ok := netip.AddrFromSlice(request[4 : n-2]); ok {
		f.targets <- net.JoinHostPort(addr.String(), port)
	}
	_, _ = io.WriteString(conn, f.answer)
}

// asked takes what was asked for.
func (f *fakeProxy) asked() (all []string) {
	for {
		select {
		case target := <-f.targets:
			all = append(all, target)
		default:
			return all
		}
	}
}
