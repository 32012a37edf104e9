package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/need"
)

// lastPort is the last port that freeAddress returned.
var lastPort atomic.Int64

// freeAddress is an address of this machine that nothing listens on. Its port is below those that the system gives to
// connections, so that none takes it before it is used.
func freeAddress(t *testing.T) string {
	t.Helper()
	lastPort.CompareAndSwap(0, 10_000+rand.Int64N(20_000))
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+lastPort.Add(1)%20_000)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// TestARollingRestartBehindTheProxyOfThePageLosesNoRequest restarts two web processes, the second one as soon as the
// first one serves again, while a client emits 50 events a second through nginx.
func TestARollingRestartBehindTheProxyOfThePageLosesNoRequest(t *testing.T) {
	t.Parallel()
	need.Programs(t, "nginx")
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	addrs := []string{freeAddress(t), freeAddress(t)}
	start := func(addr string) *process {
		p := launch(t, append([]string{"POSTHORN_ADDR=" + addr, "POSTHORN_METRICS_ADDR=off"}, environ...), "web")
		p.serving()
		return p
	}
	webs := []*process{start(addrs[0]), start(addrs[1])}
	client := behindNginx(t, addrs[0], addrs[1])

	finish := emitSteadily(t, client, "https://posthorn.example.com", m.APIKey)
	for range 2 {
		for i, addr := range addrs {
			time.Sleep(time.Second) // under load, as far apart as an operator's script leaves them
			webs[i].signal(syscall.SIGTERM)
			if code := webs[i].exit(); code != 0 {
				t.Errorf("web process %d ended with %d", i, code)
			}
			webs[i] = start(addr)
		}
	}
	time.Sleep(time.Second)
	responses := finish()
	t.Logf("responses: %v", responses)
	if len(responses) != 1 || responses["202 Accepted"] < 100 {
		t.Errorf("responses behind the proxy: %v", responses)
	}
}

// emitSteadily emits 50 events a second, and returns what stops it and counts the responses.
func emitSteadily(t *testing.T, client *http.Client, url, key string) (finish func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	responses := map[string]int{}
	emit := func(n int) {
		body := strings.NewReader(fmt.Sprintf(`{"type":"order.completed","data":{"n":%d}}`, n))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/events", body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		var said string
		if res, err := client.Do(req); err != nil {
			said = err.Error()
		} else {
			said = res.Status
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		mu.Lock()
		defer mu.Unlock()
		responses[said]++
	}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	senders.Go(func() {
		tick := time.NewTicker(time.Second / 50)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				senders.Go(func() { emit(n) })
			}
		}
	})
	return func() map[string]int {
		close(stop)
		senders.Wait()
		return responses
	}
}

// balancer passes connections on to those processes that said a second ago at most that they are ready, as a service
// of Kubernetes or a cloud's balancer does. It tries nothing twice.
type balancer struct {
	refused atomic.Int64 // connections that no process accepted
	late    atomic.Int64 // connections to a process that was stopping
	ready   map[string]*atomic.Bool
}

func newBalancer(t *testing.T, addrs ...string) (*balancer, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{ready: map[string]*atomic.Bool{}}
	var running sync.WaitGroup
	for _, addr := range addrs {
		b.ready[addr] = new(atomic.Bool)
		b.ready[addr].Store(isReady(t, addr))
	}
	for addr := range b.ready {
		running.Go(func() { b.watch(t, addr) })
	}
	running.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.pass(t, c, addrs[n%len(addrs):], addrs) })
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(func() { _ = l.Close() })
	return b, l.Addr().String()
}

func isReady(t *testing.T, addr string) bool {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (b *balancer) watch(t *testing.T, addr string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.ready[addr].Store(isReady(t, addr))
		case <-t.Context().Done():
			return
		}
	}
}

// pass connects to the first process that is known to be ready.
func (b *balancer) pass(t *testing.T, c net.Conn, order ...[]string) {
	defer func() { _ = c.Close() }()
	for _, addrs := range order {
		for _, addr := range addrs {
			if !b.ready[addr].Load() {
				continue
			}
			to, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
			if err != nil {
				b.refused.Add(1)
				return
			}
			defer func() { _ = to.Close() }()
			if !isReady(t, addr) {
				b.late.Add(1)
			}
			go func() { _, _ = io.Copy(to, c) }()
			_, _ = io.Copy(c, to)
			return
		}
	}
	b.refused.Add(1)
}

// TestARollingRestartBehindAPlainBalancerRefusesNoConnection restarts two web processes behind a balancer that notices
// a second late, while a client opens 50 connections a second. Without POSTHORN_SHUTDOWN_DELAY some are refused.
func TestARollingRestartBehindAPlainBalancerRefusesNoConnection(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	addrs := []string{freeAddress(t), freeAddress(t)}
	start := func(addr string) *process {
		p := launch(t, append([]string{"POSTHORN_ADDR=" + addr, "POSTHORN_METRICS_ADDR=off", "POSTHORN_SHUTDOWN_DELAY=4s"}, environ...), "web")
		p.serving()
		return p
	}
	webs := []*process{start(addrs[0]), start(addrs[1])}
	b, at := newBalancer(t, addrs...)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	finish := emitSteadily(t, client, "http://"+at, m.APIKey)
	for i, addr := range addrs {
		webs[i].signal(syscall.SIGTERM)
		if code := webs[i].exit(); code != 0 {
			t.Errorf("web process %d ended with %d", i, code)
		}
		webs[i] = start(addr)
		eventually(t, "the balancer sends to the new process", func() bool { return b.ready[addr].Load() })
	}
	responses := finish()
	t.Logf("responses: %v; %d connections taken by a process that was stopping", responses, b.late.Load())
	if len(responses) != 1 || responses["202 Accepted"] < 100 || b.refused.Load() != 0 {
		t.Errorf("responses behind the balancer: %v; %d connections were refused", responses, b.refused.Load())
	}
	if b.late.Load() == 0 {
		t.Error("the balancer sent nothing to a process that was stopping, so the test shows nothing")
	}
}
