//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestBatchesLoseNothingThroughKills: the owner of two endpoints with batches, one ordered by key and one strictly, is
// killed again and again, while a part of the requests fails whole and another by a 207. Each acknowledged event is
// delivered, and what is accepted of a key is in order.
func TestBatchesLoseNothingThroughKills(t *testing.T) {
	t.Parallel()
	const keys, perKey = 10, 150
	var mu sync.Mutex
	accepted := map[string][]int{} // by path and key
	requests, events := 0, 0
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var batch []struct {
			ID   string  `json:"id"`
			Type string  `json:"type"`
			Data payload `json:"data"`
		}
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Errorf("%v: %.100s", err, body)
		}
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		requests, events = requests+1, events+len(batch)
		failed, results := map[string]bool{}, []map[string]any{}
		fails := rand.IntN(12)
		for _, e := range batch {
			of := r.URL.Path + " " + e.Data.Key
			if r.URL.Path == "/strict" {
				of = r.URL.Path
			}
			switch {
			case e.Type == "endpoint.verification" || fails == 0:
			case failed[of] || fails == 1 && rand.IntN(10) == 0:
				failed[of] = true
				results = append(results, map[string]any{"id": e.ID, "status": 503})
			default:
				accepted[of] = append(accepted[of], e.Data.N)
			}
		}
		switch fails {
		case 0:
			rw.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			rw.WriteHeader(http.StatusMultiStatus)
			_ = json.NewEncoder(rw).Encode(map[string]any{"results": results})
		}
	}))
	defer receiver.Close()
	w := newWorld(t, nil)
	w.serveAt(w.launch("web", "web").ready())
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	for _, ordering := range []string{"key", "strict"} {
		w.endpoint("/"+ordering, settings{
			"url": receiver.URL + "/" + ordering, "ordering": ordering, "circuit_breaker": false, "batch_max_events": 20, "batch_max_wait_ms": 30,
			"retry_policy": settings{"name": "custom", "delays": slices.Repeat([]int{1}, 20)},
		})
	}
	var clients sync.WaitGroup
	clients.Go(func() { // one client: its order is that of all
		for n := range keys * perKey {
			key := fmt.Sprint("key-", n%keys)
			w.emit(emission{Type: "batched.event", Key: key, Data: payload{Key: key, N: n}, idemp: fmt.Sprint("batched/", n)})
		}
	})
	for i := range 4 {
		victim := -1
		eventually(t, patience, "a worker owns a lane", func() bool {
			victim = slices.IndexFunc(workers, func(p *process) bool {
				return w.ask("SELECT count(*) FROM lanes l JOIN workers w ON w.id = l.owner WHERE w.name = $1 AND NOT w.dead", p.name) > 0
			})
			mu.Lock()
			defer mu.Unlock()
			return victim >= 0 && requests > 10*(i+1)
		})
		workers[victim].kill()
		workers[victim] = w.launch(workers[victim].name, "worker").ready()
	}
	clients.Wait()
	w.settled(2*keys*perKey, 4*time.Minute)
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status = 2"); n != 2*keys*perKey {
		t.Errorf("%d of %d are delivered", n, 2*keys*perKey)
	}
	mu.Lock()
	defer mu.Unlock()
	doubled := 0
	for of, numbers := range accepted {
		first, seen := []int{}, map[int]bool{}
		for _, n := range numbers {
			if seen[n] {
				doubled++
				continue
			}
			seen[n] = true
			first = append(first, n)
		}
		if !slices.IsSorted(first) {
			t.Errorf("%s was accepted as %v", of, first)
		}
		if want := map[bool]int{true: keys * perKey, false: perKey}[of == "/strict"]; len(first) != want {
			t.Errorf("%s: %d of %d events were accepted", of, len(first), want)
		}
	}
	t.Logf("%d requests with %d events, %d came twice", requests, events, doubled)
	if events < 3*requests {
		t.Errorf("%d requests had %d events", requests, events)
	}
}
