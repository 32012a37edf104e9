package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestArrivalsAreKnownByIDAndEndpoint(t *testing.T) {
	t.Parallel()
	var a arrivals
	a.reset()
	now := time.Unix(1000, 0)
	for _, arrival := range []struct{ id, path string }{
		{"evt_1", "/0/0"},
		{"evt_1", "/0/1"}, // the same event at another endpoint is no duplicate
		{"evt_2", "/0/0"},
		{"evt_1", "/0/0"}, // this one is
	} {
		a.add(arrival.id, arrival.path, now, time.Millisecond)
	}
	got := a.stats()
	if got.N != 4 || got.Duplicates != 1 {
		t.Fatalf("%d arrivals, %d duplicates; want 4 and 1", got.N, got.Duplicates)
	}
	if want := 2*hashID("evt_1") + hashID("evt_2"); got.IDSum != want {
		t.Fatalf("sum of ids %d, want that of the distinct arrivals, %d", got.IDSum, want)
	}
}

func TestAnEventCarriesItsEmission(t *testing.T) {
	t.Parallel()
	at, ok := emittedAt([]byte(`{"id":"evt_1","data":{"emitted_ns":1700000000123456789,"pad":""}}`))
	if !ok || at.UnixNano() != 1700000000123456789 {
		t.Fatalf("found %v %t", at, ok)
	}
	if _, ok := emittedAt([]byte(`{"type":"endpoint.verification","data":{"challenge":"x"}}`)); ok {
		t.Fatal("a verification was taken for an event")
	}
}

func TestTheGeneratorReadsTheEventsID(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"id":"evt_1","created_at":"x"}`:       "evt_1",
		`{"event_id":"no", "id" : "no"}`:        "",
		`{"type":"x", "id": "evt_2"}`:           "evt_2",
		`{"id":null}`:                           "",
		`{"code":"too_large","detail":"Sorry"}`: "",
	} {
		got, err := firstID([]byte(answer))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", answer, got, err, want)
		}
	}
}

func TestTheGeneratorSpreadsEventsOverItsTargets(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	var sum uint64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		seen[key]++ // one connection: no two at once
		if key == "c" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		sum += hashID("evt_" + key)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"id":"evt_` + key + `"}`))
	}))
	defer server.Close()
	g := &generator{
		url:     server.URL,
		targets: []target{{Key: "a"}, {Key: "b"}, {Key: "c"}},
		n:       6,
		client:  server.Client(),
		began:   time.Now(),
	}
	g.emitAll()
	if seen["a"] != 2 || seen["b"] != 2 || seen["c"] != 2 {
		t.Fatalf("emitted %v", seen)
	}
	if g.accepted.Load() != 4 || g.bad.Load() != 2 || g.idSum.Load() != sum || !strings.HasPrefix(g.firstBad, "503") {
		t.Fatalf("accepted %d, refused %d (%s)", g.accepted.Load(), g.bad.Load(), g.firstBad)
	}
}

func TestAMedianHidesNoLoss(t *testing.T) {
	t.Parallel()
	got := median([]result{
		{EndToEnd: 100, P99: 3, RSS: 50},
		{EndToEnd: 300, P99: 1, RSS: 90, Lost: 2, Problem: "gone"},
		{EndToEnd: 200, P99: 2, RSS: 60, Duplicates: 1},
	})
	if got.EndToEnd != 200 || got.P99 != 2 || got.RSS != 90 || got.Lost != 2 || got.Duplicates != 1 ||
		got.Problem != "gone" || got.Repeats != 3 {
		t.Fatalf("%+v", got)
	}
}

func TestPromisesAreComparedWithTheSameRun(t *testing.T) {
	t.Parallel()
	rep := &report{}
	rep.add("one-to-one", oneToOne, result{EndToEnd: 4000, RSS: 80})
	rep.add("one-to-one", light, result{P50: 2, P99: 25})
	rep.add("history", oneToOne+without, result{EndToEnd: 4000})
	rep.add("history", light+without, result{P99: 5})
	rep.add("history", oneToOne+", 100 partitions", result{EndToEnd: 3000})
	rep.add("history", light+", 100 partitions", result{P99: 5})
	var out bytes.Buffer
	if err := rep.write(&out); err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, p := range rep.Promises {
		held[p.What] = p.Met
	}
	for what, want := range map[string]bool{
		"light load, p99 ms":                    false,
		"history, deliveries/s against without": false,
		"lost":                                  true,
	} {
		if got, said := held[what]; !said || got != want {
			t.Errorf("%s: said %t, held %t; want %t", what, said, got, want)
		}
	}
	if rep.faulty() {
		t.Error("a run without losses counts as faulty")
	}
	rep.add("one-to-one", light, result{Duplicates: 1})
	if !rep.faulty() {
		t.Error("a duplicate does not count as a fault")
	}
}
