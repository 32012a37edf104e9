//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver is a customer: it verifies every webhook with the official library and keeps what arrives.
type receiver struct {
	t      *testing.T
	url    string
	answer func(*arrival) int // the status to answer with; may block, which holds the answer. Nil: 200

	mu       sync.Mutex
	secrets  map[string]*standardwebhooks.Webhook // by path
	arrivals []*arrival
	byID     map[string]int
	inFlight int
}

// arrival is one request. Times are of this process's clock.
type arrival struct {
	r       *receiver
	path    string
	from    string // the sender's address
	id      string // webhook-id
	attempt string // webhook-attempt
	nth     int    // 1: the first arrival of this id on this path
	typ     string
	text    []byte // the event's data; of an arrival that is being answered
	data    payload
	made    time.Time // of the event, by Posthorn's clock
	started time.Time
	gone    <-chan struct{} // closed when the sender has hung up

	// guarded by the receiver's mutex
	ended  time.Time // zero: not answered yet
	status int
	cut    bool // the sender hung up before the response
}

// payload is what the tests emit.
type payload struct {
	Key  string `json:"key"`
	N    int    `json:"n"`
	Text string `json:"text,omitempty"` // to make it large
}

// newReceiver serves until the test ends, on all the listeners. Its URL is that of the first.
func newReceiver(t *testing.T, l net.Listener, answer func(*arrival) int, more ...net.Listener) *receiver {
	t.Helper()
	r := &receiver{
		t:       t,
		url:     "http://" + l.Addr().String(),
		answer:  answer,
		secrets: map[string]*standardwebhooks.Webhook{},
		byID:    map[string]int{},
	}
	server := &http.Server{Handler: r}
	for _, l := range append([]net.Listener{l}, more...) {
		go func() { _ = server.Serve(l) }()
	}
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// trust makes the receiver verify what comes to a path.
func (r *receiver) trust(path, secret string) {
	r.t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[path] = verifier
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	started := time.Now()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed in the middle of it
	}
	var event struct {
		ID, Type  string
		Timestamp time.Time
		Data      json.RawMessage
	}
	if err := json.Unmarshal(body, &event); err != nil {
		r.t.Errorf("a body that is no JSON came to %s: %s", req.URL.Path, body)
		return
	}
	if event.Type == "endpoint.verification" {
		_, _ = w.Write(event.Data)
		return
	}
	from, _, _ := net.SplitHostPort(req.RemoteAddr)
	a := &arrival{
		r:       r,
		path:    req.URL.Path,
		from:    from,
		typ:     event.Type,
		text:    event.Data,
		id:      req.Header.Get("webhook-id"),
		attempt: req.Header.Get("webhook-attempt"),
		made:    event.Timestamp,
		started: started,
		gone:    req.Context().Done(),
	}
	r.mu.Lock()
	verifier := r.secrets[req.URL.Path]
	r.mu.Unlock()
	if verifier == nil {
		r.t.Errorf("an event came to %s before its endpoint was made", req.URL.Path)
	} else if err := verifier.Verify(body, req.Header); err != nil {
		r.t.Errorf("event %s: %v", a.id, err)
	}
	if err := json.Unmarshal(event.Data, &a.data); err != nil || event.ID != a.id {
		r.t.Errorf("event %s came with the body %s", a.id, body)
	}
	a.data.Text = ""
	r.mu.Lock()
	r.arrivals = append(r.arrivals, a)
	r.byID[a.path+" "+a.id]++
	a.nth = r.byID[a.path+" "+a.id]
	r.inFlight++
	r.mu.Unlock()
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(a)
	}
	r.mu.Lock()
	a.ended, a.status, a.text, a.cut = time.Now(), status, nil, req.Context().Err() != nil
	r.inFlight--
	r.mu.Unlock()
	w.WriteHeader(status)
}

// hold keeps an answer back, but not longer than the sender waits for it.
func (a *arrival) hold(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.gone:
	}
}

// seen is a copy of what has arrived, in the order of arrival.
func (r *receiver) seen() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]arrival, len(r.arrivals))
	for i, a := range r.arrivals {
		all[i] = *a
	}
	return all
}

func (r *receiver) busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inFlight
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals)
}

// tally counts arrivals by event and endpoint ("path id").
func (r *receiver) tally() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]int, len(r.byID))
	for k, n := range r.byID {
		all[k] = n
	}
	return all
}

// expectOnce checks that every acknowledged event arrived at every one of the paths, and exactly once.
func (r *receiver) expectOnce(ids map[string]string, paths func(key string) []string) {
	r.t.Helper()
	r.expect(ids, paths, func(string) int { return 1 })
}

// expect checks that every acknowledged event arrived at every one of its paths, at most so often, and nothing else
// did. ids are the events by idempotency key; what is complained about names the first few.
func (r *receiver) expect(ids map[string]string, paths func(key string) []string, most func(arrived string) int) {
	r.t.Helper()
	tally := r.tally()
	var lost, often, strange []string
	for key, id := range ids {
		for _, path := range paths(key) {
			what := path + " " + id
			n := tally[what]
			delete(tally, what)
			switch {
			case n == 0:
				lost = append(lost, key+" = "+what)
			case n > most(what):
				often = append(often, fmt.Sprintf("%s = %s (%d times, at most %d expected)", key, what, n, most(what)))
			}
		}
	}
	for what := range tally {
		strange = append(strange, what)
	}
	for what, list := range map[string][]string{"lost": lost, "arrived too often": often, "arrived though no client was told of it": strange} {
		if len(list) > 0 {
			r.t.Errorf("%d events %s:\n  %s", len(list), what, strings.Join(list[:min(len(list), 10)], "\n  "))
		}
	}
}
