package db_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/tools/schematest"
)

// silentProxy passes bytes on until it goes silent: then it keeps the connections that it has and passes nothing on, as
// a load balancer does whose server is gone. New connections work.
type silentProxy struct {
	net.Listener
	mu    sync.Mutex
	conns []*atomic.Bool // silent ones
}

// newSilentProxy listens for a database's URL and returns the URL of the proxy.
func newSilentProxy(t *testing.T, database string) (p *silentProxy, through string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	network, server := "tcp", net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
	if strings.HasPrefix(cfg.Host, "/") {
		network, server = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", cfg.Host, cfg.Port)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = &silentProxy{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			silent := &atomic.Bool{}
			p.mu.Lock()
			p.conns = append(p.conns, silent)
			p.mu.Unlock()
			go func() {
				defer func() { _ = client.Close() }()
				up, err := (&net.Dialer{}).DialContext(context.Background(), network, server)
				if err != nil {
					return
				}
				defer func() { _ = up.Close() }()
				go func() { _, _ = io.Copy(&passing{client, silent}, up) }()
				_, _ = io.Copy(&passing{up, silent}, client)
			}()
		}
	}()
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(cfg.User, cfg.Password),
		Host:     l.Addr().String(),
		Path:     "/" + cfg.Database,
		RawQuery: "sslmode=disable",
	}
	return p, u.String()
}

func (p *silentProxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Store(true)
	}
}

type passing struct {
	to     net.Conn
	silent *atomic.Bool
}

func (p *passing) Write(b []byte) (int, error) {
	if p.silent.Load() {
		return len(b), nil
	}
	return p.to.Write(b)
}

func TestASilentConnectionForNotificationsIsReplaced(t *testing.T) {
	t.Parallel()
	direct := schematest.Clone(t)
	proxy, through := newSilentProxy(t, direct)
	l := &db.Listener{Silent: 200 * time.Millisecond, Within: 2 * time.Second}
	connected, got := make(chan struct{}, 10), make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Listen(ctx, through, []string{db.ChannelJobs}, func() { connected <- struct{}{} }, func(_, payload string) { got <- payload })
	}()
	defer func() { cancel(); <-done }()
	within := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(20 * time.Second):
			t.Fatalf("not %s in time", what)
		}
	}
	notify := func(payload string) {
		t.Helper()
		conn, err := db.Connect(t.Context(), direct, db.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
		if _, err := conn.Exec(t.Context(), "SELECT pg_notify($1, $2)", db.ChannelJobs, payload); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-got:
			if text != payload {
				t.Errorf("got %q, want %q", text, payload)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q did not arrive", payload)
		}
	}
	within("connected", connected)
	// A connection on which nothing comes shows that it is alive, and stays.
	for range 3 {
		deadline := time.Now().Add(20 * time.Second)
		for before := l.Age(); before <= l.Age(); time.Sleep(time.Millisecond) {
			if before = l.Age(); time.Now().After(deadline) {
				t.Fatal("no sign of life")
			}
		}
	}
	notify("first")
	if len(connected) != 0 {
		t.Error("a connection that was alive was replaced")
	}
	proxy.silence()
	within("connected again", connected)
	notify("second")
	if l.Age() > 20*time.Second {
		t.Errorf("the last sign of life is %v old", l.Age())
	}
}
