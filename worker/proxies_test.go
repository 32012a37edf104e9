package worker

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

const proxyCanary = "canary-password-of-the-proxy"

// tunnels is an HTTP proxy that counts the tunnels which it opens.
type tunnels struct {
	net.Listener
	opened atomic.Int32
}

func newTunnels(t *testing.T) *tunnels {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &tunnels{Listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *tunnels) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	p.opened.Add(1)
	_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() { _, _ = io.Copy(to, conn) }()
	_, _ = io.Copy(conn, to)
}

func (h *house) setProxy(p egress.Proxy) {
	h.t.Helper()
	var err error
	if h.policy, err = h.policy.WithProxies("127.0.0.0/8"); err != nil {
		h.t.Fatal(err)
	}
	if err := h.db.Console(h.t.Context(), func(q *sql.Queries) error {
		_, err := endpoints.Editor{Keys: h.ring, By: db.Author{Kind: "command"}}.SetProxy(h.t.Context(), q, h.policy, p)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

// deadAddress is one at which nothing listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// A proxy that is down is the platform's fault: deliveries wait, nothing counts against their endpoint, the operators
// are told, and what waited is delivered soon after the proxy works.
func TestAFailedProxyHoldsDeliveriesAndTellsTheOperators(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var mu sync.Mutex
	var logged bytes.Buffer
	h.log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(p)
	}), nil))
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays = endpoint.Custom, []int{3600} // one retry, which the proxy must not use up
	})
	dead := egress.Proxy{Owner: id.UUID{}, Type: egress.ProxyHTTP, Address: deadAddress(t), Username: "ada", Password: proxyCanary}
	h.setProxy(dead)
	h.exec("INSERT INTO operators (id, email, name, created_at) VALUES ($1, 'ops@example.com', 'Ops', now())", db.NewID())
	h.emitN(tenant, 30) // more than what opens a breaker
	h.worker(true)
	eventually(t, 15*time.Second, "the proxy's failure is recorded", func() bool {
		return h.count("SELECT count(*) FROM egress_proxies WHERE failed_at IS NOT NULL AND failure LIKE '%not reached: connection refused'") == 1
	})
	attempts := func() int { return h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1", ep) }
	eventually(t, 15*time.Second, "what was in flight is recorded", func() bool { return attempts() > 0 })
	if n := attempts(); n > 10 {
		t.Errorf("%d attempts while the proxy is down, want those that were in flight", n)
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1 AND failure <> $2", ep, int16(delivery.FailProxy)); n != 0 || len(r.seen()) != 0 {
		t.Errorf("%d other failures, %d requests", n, len(r.seen()))
	}
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND (breaker_state <> 0 OR consecutive_failures > 0 OR last_failure_at IS NOT NULL)", ep); n != 0 {
		t.Error("the endpoint's health counts them")
	}
	now, err := h.db.ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // once a day
		if err := endpoints.AlertProxies(t.Context(), h.db, accounts.Links{}, now); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.count("SELECT count(*) FROM mails WHERE kind = 'operator_alert'"); n != 1 {
		t.Errorf("%d mails to the operator", n)
	}
	works := newTunnels(t)
	dead.Address = works.Addr().String()
	h.setProxy(dead)
	h.settled(45*time.Second, delivery.Delivered, 30)
	if works.opened.Load() == 0 {
		t.Error("the requests went past the proxy")
	}
	if n := h.count("SELECT count(*) FROM endpoint_failures WHERE endpoint_id = $1", ep); n != 0 {
		t.Error("the endpoint's statistics count them")
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(logged.String(), "canary") || !strings.Contains(logged.String(), "egress proxy failed") {
		t.Errorf("the log: %s", logged.String())
	}
	h.balanced()
}

// A change holds for the next event, and a tenant can differ from the platform.
func TestDeliveriesFollowAChangeOfTheProxy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, nil)
	platform, own := newTunnels(t), newTunnels(t)
	h.setProxy(egress.Proxy{Owner: id.UUID{}, Type: egress.ProxyHTTP, Address: platform.Addr().String()})
	h.worker(true)
	sent := 0
	through := func(stage string, atPlatform, atOwn int32) {
		t.Helper()
		h.emit(tenant, item("order.completed", "", sent))
		sent++
		h.settled(15*time.Second, delivery.Delivered, sent)
		if a, b := platform.opened.Load(), own.opened.Load(); a != atPlatform || b != atOwn {
			t.Errorf("%s: %d tunnels of the platform's proxy and %d of the tenant's, want %d and %d", stage, a, b, atPlatform, atOwn)
		}
	}
	through("the platform's", 1, 0)
	h.setProxy(egress.Proxy{Owner: tenant, Type: egress.ProxyHTTP, Address: own.Addr().String()})
	through("its own", 1, 1)
	h.setProxy(egress.Proxy{Owner: tenant, Type: egress.ProxyDirect})
	through("none", 1, 1)
}
