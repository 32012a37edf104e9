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
	tool(t, "nginx")
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

	var mu sync.Mutex
	responses := map[string]int{}
	emit := func(n int) {
		body := strings.NewReader(fmt.Sprintf(`{"type":"order.completed","data":{"n":%d}}`, n))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://posthorn.example.com/api/v1/events", body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+m.APIKey)
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
	close(stop)
	senders.Wait()
	t.Logf("responses: %v", responses)
	if len(responses) != 1 || responses["202 Accepted"] < 100 {
		t.Errorf("responses behind the proxy: %v", responses)
	}
}
