//go:build (e2e || soak) && unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/tools/need"
)

// TestStrangersAndANeighborDoNotSlowATenant: while 2,000 slow connections of strangers press on forms, on Svix's API
// and on the way to another home, and another tenant emits against a costly schema, every emission of a tenant is
// accepted, about as fast as without them.
func TestStrangersAndANeighborDoNotSlowATenant(t *testing.T) {
	// Not parallel: it compares times, and the tests beside it would change them.
	need.Linux(t) // strangers have addresses of the loopback network, which other systems do not assign
	const (
		connections = 2000
		rounds      = 4
		each        = 150 // emissions of a round, without and with the others
	)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer other.Close()
	w := newWorld(t, func(*arrival) int { return 200 })
	address := net.JoinHostPort("127.0.0.1", freePort(t))
	w.environ = append(
		w.environ,
		"POSTHORN_ADDR="+address,
		"POSTHORN_HOME=eu1",
		"POSTHORN_HOMES=eu1=http://"+address+",eu2="+other.URL,
	)
	w.serveAt(w.launch("serve", "serve").ready())
	quiet := w.key
	w.makeTenant()
	hostileKey := w.key
	w.key = quiet

	measure := func(into *[]time.Duration) {
		for i := range each {
			started := time.Now()
			body := fmt.Sprintf(`{"type":"order.completed","data":{"n":%d}}`, i)
			status, answer, err := w.call("POST", w.web()+"/api/v1/events", body, "")
			if err != nil || status != http.StatusAccepted {
				t.Errorf("an emission: %d %s %v", status, answer, err)
			}
			*into = append(*into, time.Since(started))
		}
	}
	compare := func() (calm, pressed time.Duration) {
		var without, with []time.Duration
		for round := range rounds {
			measure(&without)
			stop := make(chan struct{})
			var all sync.WaitGroup
			arrived := make(chan struct{}, connections)
			for i := range connections {
				all.Go(func() { strangle(address, i, arrived, stop) })
			}
			all.Go(func() { neighbor(w, hostileKey, round, stop) })
			for range connections {
				<-arrived
			}
			measure(&with)
			close(stop)
			all.Wait()
		}
		return p99(without), p99(with)
	}
	measure(&[]time.Duration{}) // what is done once
	for try := 1; ; try++ {     // a busy machine's own time is in both, and not the same
		calm, pressed := compare()
		t.Logf("p99 of emissions: %s, and %s while the others press", calm, pressed)
		if most := 3*calm + 10*time.Millisecond; pressed <= most {
			return
		} else if try == 6 {
			t.Fatalf("p99 is %s, at most %s is promised", pressed, most)
		}
	}
}

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// strangle is a stranger who keeps a connection with a body that does not end, and comes again when it is closed.
func strangle(address string, i int, arrived chan<- struct{}, stop <-chan struct{}) {
	heads := []string{
		"POST /svix/api/v1/app HTTP/1.1\r\nContent-Length: 1048576\r\nContent-Type: application/json\r\n",
		"POST /sign-in HTTP/1.1\r\nContent-Length: 10000\r\nSec-Fetch-Site: same-origin\r\n",
		"POST /account/name HTTP/1.1\r\nContent-Length: 10000\r\nCookie: posthorn-home=eu2\r\n",
		"POST /theme HTTP/1.1\r\nContent-Length: 1000\r\n",
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 66, byte(i%8), 1)}, Timeout: 10 * time.Second}
	for first := true; ; first = false {
		c, err := dialer.Dial("tcp", address)
		if err == nil {
			_, _ = fmt.Fprintf(c, "%sHost: %s\r\n\r\n{", heads[i%len(heads)], address)
		}
		if first {
			arrived <- struct{}{}
		}
		if err == nil {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, c)
			}()
			select {
			case <-ended:
			case <-stop:
			}
			_ = c.Close()
			<-ended
		}
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Second): // a stranger's patience
		}
	}
}

// neighbor is a tenant with a schema whose pattern is costly: it emits as soon as the type is there, and again later.
func neighbor(w *world, key string, round int, stop <-chan struct{}) {
	send := func(path string, body []byte) {
		req, err := http.NewRequest(http.MethodPost, w.web()+"/api/v1"+path, bytes.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		if res, err := client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	data := strings.Repeat("a", 250_000) + "b"
	for i := 0; ; i++ {
		name := fmt.Sprintf("x.y%d_%d", round, i)
		repeats := []int{1000, 200, 60, 20}[i%4]
		schema := fmt.Sprintf(`{"items":{"pattern":"(a|aa|aaa|aaaa){1,%d}$"}}`, repeats)
		send("/event-types", fmt.Appendf(nil, `{"name":%q,"schema":%s,"schema_check":"enforce"}`, name, schema))
		for range 2 {
			send("/events", fmt.Appendf(nil, `{"type":%q,"data":[%q]}`, name, data))
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
