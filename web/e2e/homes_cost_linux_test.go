//go:build e2e && linux

package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// used is the CPU time of processes so far. Linux counts it in hundredths of a second.
func used(t *testing.T, all ...*process) (sum time.Duration) {
	t.Helper()
	for _, p := range all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		// The name is in parentheses and can contain blanks. The fields after it are numbered from 3 in proc(5).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}

// route is a tenant and the web process that its requests come to.
type route struct {
	of *world
	by *process
}

// emits sends one event and returns how long its acknowledgment took.
func (r route) emits(t *testing.T) time.Duration {
	began := time.Now()
	status, answer, err := r.of.call(http.MethodPost, r.by.url+"/api/v1/events", `{"type":"order.completed","data":{"order":"A-1041","total":129.5,"items":[{"sku":"T-1","n":2}]}}`, "")
	if err != nil || status != http.StatusAccepted {
		t.Errorf("an event: %d %s %v", status, answer, err)
	}
	return time.Since(began)
}

// flood sends events on so many connections for some time, and returns how many were acknowledged.
func (r route) flood(t *testing.T, connections int, lasts time.Duration) int64 {
	var n atomic.Int64
	var all sync.WaitGroup
	for end := time.Now().Add(lasts); connections > 0; connections-- {
		all.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				r.emits(t)
				n.Add(1)
			}
		})
	}
	all.Wait()
	return n.Load()
}

// way is what requests of one way have cost.
type way struct {
	took []time.Duration
	cpu  time.Duration // of the web processes
	n    int64         // requests of cpu
}

func (w *way) at(q float64) time.Duration {
	slices.Sort(w.took)
	return w.took[int(q*float64(len(w.took)-1))]
}

func (w *way) each() time.Duration { return w.cpu / time.Duration(max(w.n, 1)) }

// TestWhatForwardingCosts measures emissions that come to a home that the tenant has left beside those that come to its
// own, and two homes at once beside each alone. Rounds of both alternate, so that what else the machine does burdens
// both.
func TestWhatForwardingCosts(t *testing.T) {
	const rounds, inARow, connections, lasts = 10, 100, 8, time.Second
	h := newTwoHomes(t)
	h.second.makeTenant()
	hash, tenant := sha256.Sum256([]byte(h.key)), h.tenantID()
	if _, err := h.second.sql.Exec(t.Context(), "INSERT INTO moved_tenants (tenant_id, home, hashes) VALUES ($1, 'eu1', $2)", tenant, [][]byte{hash[:]}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the second home forwards", func() bool {
		status, _, err := h.call(http.MethodGet, h.web[1].url+"/api/v1/events", "", "")
		return err == nil && status == http.StatusOK
	})
	direct, through := route{h.world, h.web[0]}, route{h.world, h.web[1]}
	var of [2]way
	for round := range rounds + 1 {
		for i, r := range []route{direct, through} {
			if round == 0 {
				r.flood(t, connections, lasts) // warm
				continue
			}
			for range inARow {
				of[i].took = append(of[i].took, r.emits(t))
			}
			before := used(t, h.web[0], h.web[1])
			of[i].n += r.flood(t, connections, lasts)
			of[i].cpu += used(t, h.web[0], h.web[1]) - before
		}
	}
	own, other := &of[0], &of[1]
	t.Logf("one after the other, p50 and p99: %v and %v at the tenant's home, %v and %v through another", own.at(0.5).Round(10*time.Microsecond), own.at(0.99).Round(10*time.Microsecond),
		other.at(0.5).Round(10*time.Microsecond), other.at(0.99).Round(10*time.Microsecond))
	t.Logf("on %d connections, CPU of the web processes for each event: %v at the tenant's home, %v through another; %d and %d events/s", connections,
		own.each().Round(time.Microsecond), other.each().Round(time.Microsecond), own.n/rounds, other.n/rounds)
	if other.at(0.5) < own.at(0.5)/2 {
		t.Error("what goes through another home is faster: the rounds do not measure what they say")
	}
	// A hop on one machine. A promise to callers is that it does not become the larger part of a second.
	if more := other.at(0.5) - own.at(0.5); more > 250*time.Millisecond {
		t.Errorf("forwarding takes %v more", more)
	}

	second := route{h.second, h.web[1]}
	var alone, together, cpuAlone, cpuTogether float64
	for range rounds {
		for _, r := range []route{direct, second} {
			before := used(t, r.by)
			n := float64(r.flood(t, connections, lasts))
			alone += n / 2
			cpuAlone += (used(t, r.by) - before).Seconds()
		}
		before := used(t, h.web[0], h.web[1])
		var sum atomic.Int64
		var all sync.WaitGroup
		for _, r := range []route{direct, second} {
			all.Go(func() { sum.Add(r.flood(t, connections, lasts)) })
		}
		all.Wait()
		together += float64(sum.Load())
		cpuTogether += (used(t, h.web[0], h.web[1]) - before).Seconds()
	}
	t.Logf("two homes on the same cores and disk: %.0f events/s each alone, %.0f events/s together, %.2f times as many; CPU of the web processes for each event %.0f µs alone, %.0f µs together",
		alone/rounds, together/rounds, together/alone, 1e6*cpuAlone/(2*alone), 1e6*cpuTogether/together)
}
