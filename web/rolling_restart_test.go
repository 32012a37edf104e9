package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// freeAddress is an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
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
