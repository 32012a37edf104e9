package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Every event carries its time of emission, so that an arrival can be timed without a table of what was sent.
var emittedMark = []byte(`"emitted_ns":`)

// arrivals counts what reached the receiver since the last reset. A delivery is known by webhook-id and path, of
// which a 64-bit hash is kept: five million deliveries take about 200 MB, and a false duplicate is less likely than 1
// in a million.
type arrivals struct {
	mu         sync.Mutex
	seen       map[uint64]struct{}
	idSum      uint64 // of the hashes of distinct arrivals' ids; compared with the generator's
	n          int64
	duplicates int64
	latencies  []int32 // µs from emission to arrival
	last       time.Time
}

// arrivalStats is the response to GET /stats.
type arrivalStats struct {
	N          int64  `json:"n"`
	Duplicates int64  `json:"duplicates"`
	IDSum      uint64 `json:"id_sum,string"`
	LastNs     int64  `json:"last_ns"`
	P50        int32  `json:"p50_us"`
	P99        int32  `json:"p99_us"`
	Max        int32  `json:"max_us"`
}

// runReceiver is the process of the endpoints. It responds with 200 immediately; with -hold after a while; with -hang
// it never responds to events. Requests that are no event (the verification) always get an immediate response.
func runReceiver(args []string) error {
	flags := flag.NewFlagSet("receiver", flag.ExitOnError)
	address := flags.String("addr", "", "listen address")
	hang := flags.Bool("hang", false, "never answer an event")
	orders := flags.Bool("orders", false, "know arrivals by the order in their body instead of webhook-id")
	hold := flags.Duration("hold", 0, "answer an event after so long")
	if err := flags.Parse(args); err != nil {
		return err
	}
	a := &arrivals{}
	a.reset()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		now := time.Now()
		emitted, isEvent := emittedAt(body)
		if err != nil || !isEvent {
			return
		}
		if *hang {
			<-r.Context().Done()
			return
		}
		if *hold > 0 {
			time.Sleep(*hold)
		}
		id := r.Header.Get("Webhook-Id")
		if *orders {
			id = orderIn(body)
		}
		a.add(id, r.URL.Path, now, now.Sub(emitted))
	})
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, _ = io.WriteString(w, strconv.FormatInt(a.n-a.duplicates, 10))
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(a.stats()); err != nil {
			log.Print(err)
		}
	})
	mux.HandleFunc("PUT /reset", func(http.ResponseWriter, *http.Request) { a.reset() })
	server := &http.Server{Addr: *address, Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	return server.ListenAndServe()
}

// emittedAt finds the emission time in an event's body, or returns false.
func emittedAt(body []byte) (time.Time, bool) {
	at := bytes.Index(body, emittedMark)
	if at < 0 {
		return time.Time{}, false
	}
	digits := body[at+len(emittedMark):]
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	ns, err := strconv.ParseInt(string(digits[:end]), 10, 64)
	return time.Unix(0, ns), err == nil
}

// orderIn finds the order in an event's body; empty: there is none.
func orderIn(body []byte) string {
	const mark = `"order_id":"`
	at := bytes.Index(body, []byte(mark))
	if at < 0 {
		return ""
	}
	id, _, _ := bytes.Cut(body[at+len(mark):], []byte(`"`))
	return string(id)
}

func (a *arrivals) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen, a.latencies = map[uint64]struct{}{}, nil
	a.n, a.duplicates, a.idSum, a.last = 0, 0, 0, time.Time{}
}

// add counts one arrival. Without an id (the raw hop) nothing can be a duplicate.
func (a *arrivals) add(id, path string, now time.Time, latency time.Duration) {
	idHash := hashID(id)
	key := hashOnto(idHash, path)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	a.last = now
	a.latencies = append(a.latencies, int32(min(latency.Microseconds(), 1<<31-1)))
	if id == "" {
		return
	}
	if _, again := a.seen[key]; again {
		a.duplicates++
		return
	}
	a.seen[key] = struct{}{}
	a.idSum += idHash
}

func (a *arrivals) stats() arrivalStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := arrivalStats{N: a.n, Duplicates: a.duplicates, IDSum: a.idSum, LastNs: a.last.UnixNano()}
	sorted := slices.Sorted(slices.Values(a.latencies))
	s.P50, s.P99, s.Max = quantile(sorted, 0.50), quantile(sorted, 0.99), quantile(sorted, 1)
	return s
}

// quantile of sorted values, 0 when there are none.
func quantile[T int32 | int64 | float64](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*q), len(sorted)-1)]
}

// hashID is FNV-1a with 64 bits: the generator and the receiver are separate processes and must agree.
func hashID(s string) uint64 { return hashOnto(14695981039346656037, s) }

func hashOnto(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
