package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/need"
)

// pulled is a page of a feed.
type pulled struct {
	Data []struct {
		EventID string `json:"event_id"`
		Cursor  string `json:"cursor"`
	} `json:"data"`
	Cursor   string `json:"cursor"`
	CaughtUp bool   `json:"caught_up"`
}

// streamed reads a feed as a stream until it has so many events. A stream that ends is opened again after the last id.
func streamed(ctx context.Context, client *http.Client, url, key string, want int) (ids []string, opened int, err error) {
	last := ""
	for len(ids) < want && ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, 0, err
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Accept", "text/event-stream")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		res, err := client.Do(r)
		if err != nil {
			continue
		}
		opened++
		id := ""
		for in := bufio.NewScanner(res.Body); len(ids) < want && in.Scan(); {
			field, value, _ := strings.Cut(in.Text(), ": ")
			switch field {
			case "id":
				id = value
			case "data":
				var e struct {
					EventID string `json:"event_id"`
				}
				if json.Unmarshal([]byte(value), &e) == nil && e.EventID != "" {
					ids, last = append(ids, e.EventID), id
				}
			}
		}
		_ = res.Body.Close()
	}
	return ids, opened, ctx.Err()
}

// polled reads a feed by long polls until it has so many events.
func polled(ctx context.Context, client *http.Client, url, key string, want int) (ids []string, err error) {
	cursor := ""
	for len(ids) < want {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"?wait=5&start=oldest&cursor="+cursor, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+key)
		res, err := client.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				return ids, ctx.Err()
			}
			continue
		}
		var p pulled
		err = json.NewDecoder(res.Body).Decode(&p)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			return ids, errors.Join(fmt.Errorf("status %d", res.StatusCode), err)
		}
		for _, e := range p.Data {
			ids = append(ids, e.EventID)
		}
		cursor = p.Cursor
	}
	return ids, nil
}

// A stream and long polls go through the proxy of docs/ops/deploy.md while the processes behind it are restarted.
func TestReadersOfAFeedGoThroughTheProxyOfThePage(t *testing.T) {
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
	by := asker{t, client}
	const base = "https://posthorn.example.com/api/v1"
	var feed struct{ ID string }
	got := by.request("POST", base+"/endpoints", m.APIKey, `{"kind":"feed"}`)
	if err := json.Unmarshal([]byte(got.body), &feed); err != nil || got.status != http.StatusCreated {
		t.Fatal(got.status, got.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const each, rounds = 5, 4
	var group sync.WaitGroup
	var byStream, byPoll []string
	opened := 0
	group.Go(func() {
		var err error
		if byStream, opened, err = streamed(ctx, client, base+"/feeds/"+feed.ID, m.APIKey, each*rounds); err != nil {
			t.Errorf("the stream: %v", err)
		}
	})
	group.Go(func() {
		var err error
		if byPoll, err = polled(ctx, client, base+"/feeds/"+feed.ID, m.APIKey, each*rounds); err != nil {
			t.Errorf("long polls: %v", err)
		}
	})
	var sent []string
	for round := range rounds {
		for n := range each {
			var event struct{ ID string }
			got := by.request("POST", base+"/events", m.APIKey, fmt.Sprintf(`{"type":"order.completed","data":{"n":%d}}`, n))
			if err := json.Unmarshal([]byte(got.body), &event); err != nil || got.status != http.StatusAccepted {
				t.Fatal(got.status, got.body)
			}
			sent = append(sent, event.ID)
		}
		if round < rounds-1 {
			webs[round%2].signal(syscall.SIGTERM)
			if code := webs[round%2].exit(); code != 0 {
				t.Errorf("a web process ended with %d", code)
			}
			webs[round%2] = start(addrs[round%2])
		}
	}
	group.Wait()
	if !slices.Equal(byStream, sent) || !slices.Equal(byPoll, sent) {
		t.Errorf("%d events were sent; the stream has %d, and long polls %d", len(sent), len(byStream), len(byPoll))
	}
	if opened < 2 {
		t.Errorf("the stream was opened %d times: no restart ended it", opened)
	}
}

// The command line reads a feed for a consumer, which a rewind moves, and rewinds an endpoint: its receiver gets
// everything again in order, and a live event behind it.
func TestTheCommandLineReadsFeedsAndRewinds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var got []string
	var mu sync.Mutex
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && strings.Contains(string(body), "order.completed") { // not the verification
			got = append(got, r.Header.Get("webhook-id")+" "+r.Header.Get("webhook-replayed"))
		}
	}))
	t.Cleanup(to.Close)
	var feed, hook thing
	d.ok(&feed, "endpoints create --json --feed")
	d.ok(&hook, "endpoints create --json --ordering strict --verification simple "+to.URL)
	d.ok(nil, "feeds create "+feed.ID+" warehouse --start oldest")
	var sent []string
	emit := func() {
		var event thing
		d.ok(&event, "emit order.completed --json {}")
		sent = append(sent, event.ID)
	}
	emit()
	emit()
	read := func() string {
		t.Helper()
		r := d.run("feeds read " + feed.ID + " --consumer warehouse")
		if r.code != 0 || r.stderr != "" { // nothing was dropped
			t.Errorf("feeds read: %d %s", r.code, r.stderr)
		}
		return r.stdout
	}
	var lines string
	eventually(t, "the consumer reads both events", func() bool {
		lines += read()
		return strings.Count(lines, `"event_id"`) == 2
	})
	if !strings.Contains(lines, sent[0]) || !strings.Contains(lines, sent[1]) || read() != "" {
		t.Errorf("read: %s", lines)
	}
	d.ok(nil, "feeds rewind "+feed.ID+" warehouse oldest")
	if again := read(); strings.Count(again, `"event_id"`) != 2 {
		t.Errorf("after a rewind: %s", again)
	}
	arrived := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprint(n, " requests arrived"), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(got) == n
		})
	}
	arrived(2)
	d.ok(nil, "endpoints rewind "+hook.ID+" oldest --reason restored")
	emit()
	arrived(5)
	want := []string{sent[0] + " ", sent[1] + " ", sent[0] + " true", sent[1] + " true", sent[2]}
	mu.Lock()
	defer mu.Unlock()
	for i, one := range want {
		if !strings.HasPrefix(got[i], one) {
			t.Errorf("request %d: %s, want %s", i, got[i], one)
		}
	}
	if r := d.run("endpoints rewind " + feed.ID + " oldest"); r.code == 0 || !strings.Contains(r.stderr, "is a feed") {
		t.Errorf("a feed: %d %s", r.code, r.stderr)
	}
}

// A tenant moves while its events are emitted and read at its first home: its consumer has each once, in order.
func TestATenantMovesWithItsFeed(t *testing.T) {
	t.Parallel()
	one, two := newMovingHomes(t)
	var feed struct{ ID string }
	one.do(t, "POST", "/endpoints", map[string]any{"kind": "feed"}, &feed)
	var consumer struct{ Token string }
	one.do(t, "POST", "/feeds/"+feed.ID+"/consumers", map[string]any{"name": "warehouse", "start": "oldest"}, &consumer)
	stop := make(chan struct{})
	var mu sync.Mutex
	var sent, read []string
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, `{"type":"order.completed","data":{}}`, "Idempotency-Key", fmt.Sprint("k", n))
			var event struct{ ID string }
			switch {
			case got.status == http.StatusAccepted && json.Unmarshal([]byte(got.body), &event) == nil:
				mu.Lock()
				sent = append(sent, event.ID)
				mu.Unlock()
			case got.status == http.StatusServiceUnavailable:
				n-- // sent again with the same key
			default:
				t.Errorf("an event was answered %d %s", got.status, got.body)
			}
		}
	})
	emitted := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(sent)
	}
	// pull reads a page, and acknowledges it.
	pull := func() {
		var p pulled
		got := ask(t, "GET", one.URL()+"/api/v1/feeds/"+feed.ID+"?limit=20", consumer.Token, "")
		if got.status == http.StatusServiceUnavailable {
			return
		}
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != http.StatusOK {
			t.Errorf("a page was answered %d %s", got.status, got.body)
			return
		}
		ack := ask(t, "POST", one.URL()+"/api/v1/feeds/"+feed.ID+"/ack", consumer.Token, `{"cursor":"`+p.Cursor+`"}`)
		switch ack.status {
		case http.StatusOK:
			for _, e := range p.Data {
				read = append(read, e.EventID)
			}
		case http.StatusServiceUnavailable: // it comes again
		default:
			t.Errorf("an acknowledgment was answered %d %s", ack.status, ack.body)
		}
	}
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				pull()
			}
		}
	})
	until(t, "events flow", func() bool { return emitted() > 100 })
	succeed(t, moveEnviron(one, two), nil, "tenant", "move", one.tenant, "--to", "eu2", "--json")
	before := emitted()
	until(t, "events flow again", func() bool { return emitted() > before+100 })
	close(stop)
	group.Wait()
	until(t, "the consumer has read what was accepted", func() bool {
		pull()
		return len(read) >= len(sent)
	})
	if !slices.Equal(read, sent) {
		t.Errorf("%d events were accepted, and the consumer read %d, or in another order", len(sent), len(read))
	}
	if got := ask(t, "GET", one.URL()+"/api/v1/feeds/"+feed.ID+"/consumers", one.key, ""); got.header.Get("Posthorn-Home") != "eu2" || !strings.Contains(got.body, `"warehouse"`) {
		t.Errorf("the consumer is in %s: %s", got.header.Get("Posthorn-Home"), got.body)
	}
}
