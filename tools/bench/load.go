package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// target is where one event goes: the key that emits it and its type.
type target struct {
	Key  string `json:"key"`
	Type string `json:"type"`
	Path string `json:"path,omitempty"` // below the address; empty: the address is whole
	Lead string `json:"lead,omitempty"` // the body up to the event's data; empty: as Posthorn's own API takes it
}

// loadResult is what the generator prints when it is done.
type loadResult struct {
	Accepted int64  `json:"accepted"`
	Bad      int64  `json:"bad"`
	FirstBad string `json:"first_bad,omitempty"`
	IDSum    uint64 `json:"id_sum,string"` // of the hashes of accepted events' ids
	BeganNs  int64  `json:"began_ns"`
	EndedNs  int64  `json:"ended_ns"`
	P50      int32  `json:"ack_p50_us"` // from request to 202
	P99      int32  `json:"ack_p99_us"`
	CPUPause int64  `json:"cpu_pause_ns"`  // the longest time for which the generator was due and did not run
	Sync     int64  `json:"disk_pause_ns"` // the longest write to the disk

	CPU time.Duration `json:"-"` // of the generator, as the system counted it
}

type generator struct {
	url     string
	targets []target
	n, from int64
	rate    int
	client  *http.Client
	pad     []byte
	orders  bool // events are known by their orders, not by the ids of responses
	began   time.Time

	next, accepted, bad atomic.Int64
	idSum               atomic.Uint64
	mu                  sync.Mutex
	firstBad            string
	latencies           []int32
}

// runLoad is the process that emits: -n events over -c connections, at -rate a second or as fast as they are
// accepted. It is simple, so that it leaves most of the machine to Posthorn.
func runLoad(args []string) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	g := &generator{}
	flags.StringVar(&g.url, "url", "", "where to post")
	flags.Int64Var(&g.n, "n", 1000, "events")
	flags.Int64Var(&g.from, "from", 0, "first target")
	flags.IntVar(&g.rate, "rate", 0, "events a second; 0: as fast as they are accepted")
	flags.BoolVar(&g.orders, "orders", false, "know events by their orders instead of the ids of responses")
	connections := flags.Int("c", 32, "connections")
	plan := flags.String("plan", "", "JSON file of targets; event k goes to the (from+k)th, round and round")
	disk := flags.String("disk", "", "a folder on the disk whose longest write is reported")
	size := flags.Int("pad", 400, "bytes of padding in each event")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*plan)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &g.targets); err != nil {
		return err
	}
	if len(g.targets) == 0 {
		return fmt.Errorf("%s names no target", *plan)
	}
	g.pad = bytes.Repeat([]byte("x"), *size)
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *connections}, Timeout: time.Minute}
	watch := watchPauses(*disk)
	g.began = time.Now()
	var connected sync.WaitGroup
	for range *connections {
		connected.Go(g.emitAll)
	}
	connected.Wait()
	ended := time.Now()
	cpu, sync := watch.end()
	slices.Sort(g.latencies)
	return json.NewEncoder(os.Stdout).Encode(loadResult{
		Accepted: g.accepted.Load(),
		Bad:      g.bad.Load(),
		FirstBad: g.firstBad,
		IDSum:    g.idSum.Load(),
		BeganNs:  g.began.UnixNano(),
		EndedNs:  ended.UnixNano(),
		P50:      quantile(g.latencies, 0.50),
		P99:      quantile(g.latencies, 0.99),
		CPUPause: int64(cpu),
		Sync:     int64(sync),
	})
}

// emitAll is one connection: it draws the next event's number until none is left.
func (g *generator) emitAll() {
	var latencies []int32
	for {
		k := g.next.Add(1)
		if k > g.n {
			break
		}
		if g.rate > 0 {
			time.Sleep(time.Until(g.began.Add(time.Duration(k) * time.Second / time.Duration(g.rate))))
		}
		to := g.targets[(g.from+k)%int64(len(g.targets))]
		emitted := time.Now()
		id, err := g.emit(to, to.body(emitted.UnixNano(), g.from+k, g.pad))
		if g.orders {
			id = order(g.from + k)
		}
		latencies = append(latencies, int32(time.Since(emitted).Microseconds()))
		if err != nil {
			g.bad.Add(1)
			g.mu.Lock()
			if g.firstBad == "" {
				g.firstBad = err.Error()
			}
			g.mu.Unlock()
			continue
		}
		g.accepted.Add(1)
		g.idSum.Add(hashID(id))
	}
	g.mu.Lock()
	g.latencies = append(g.latencies, latencies...)
	g.mu.Unlock()
}

// emit posts one event and returns its id; an id is empty only where the receiver itself answers (the raw hop).
func (g *generator) emit(to target, body []byte) (string, error) {
	request, err := http.NewRequest(http.MethodPost, g.url+to.Path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if to.Key != "" {
		request.Header.Set("Authorization", "Bearer "+to.Key)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode/100 != 2 {
		return "", fmt.Errorf("%d: %s", response.StatusCode, answer)
	}
	if to.Key == "" || g.orders {
		return "", nil
	}
	return firstID(answer)
}

// firstID is the value of the first "id" of an answer, without decoding the rest of it.
func firstID(answer []byte) (string, error) {
	const mark = `"id":`
	if at := bytes.Index(answer, []byte(mark)); at >= 0 {
		parts := bytes.SplitN(answer[at+len(mark):], []byte(`"`), 3)
		if len(parts) == 3 && len(bytes.TrimSpace(parts[0])) == 0 {
			return string(parts[1]), nil
		}
	}
	return "", fmt.Errorf("the answer names no id: %s", answer)
}
