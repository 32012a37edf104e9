//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

// TestTheAISDKSubscribesUnmodified runs the client of the AI SDK, as its registry has it, against a server that runs.
func TestTheAISDKSubscribesUnmodified(t *testing.T) {
	t.Parallel()
	need.Programs(t, "npm", "node")
	w := newWorld(t, func(*arrival) int { return 200 })
	server := w.launch("serve", "serve").ready()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/mcp")); err != nil {
		t.Fatal(err)
	}
	out, err := within(t, 12*time.Minute, inDir(dir, npm("@ai-sdk/mcp@2.0.99")...))
	need.Reached(t, "the registry of npm", err, []byte(out))
	run := inDir(dir, "node", "scenario.mjs")
	run.Env = append(os.Environ(), "POSTHORN_URL="+server.url, "POSTHORN_KEY="+w.key)
	if out, err := within(t, 5*time.Minute, run); err != nil || !strings.Contains(out, "scenario done") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPollAndStreamLoseNothingWhenTheServerIsKilled polls, and reads streams, while the server is killed between two
// polls and within a stream. Each event comes once, in order, by the cursor that the client stored.
func TestPollAndStreamLoseNothingWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*arrival) int { return 200 })
	server := w.launch("serve", "serve").ready()
	post := func(path string, body any) *http.Response {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.url+path, strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.key)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	emit := func(n int) {
		res := post("/api/v1/events", map[string]any{"type": "incident.created", "data": map[string]int{"n": n}})
		defer res.Body.Close()
		if res.StatusCode != http.StatusAccepted {
			t.Fatal(res.Status)
		}
	}
	made := post("/api/v1/event-types", map[string]string{"name": "incident.created"})
	made.Body.Close()
	type occurrence struct {
		Data struct{ N int } `json:"data"`
	}
	var cursor any
	poll := func() (list []occurrence, more bool) {
		res := post("/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "events/poll", "params": map[string]any{
			"name":      "incident.created",
			"cursor":    cursor,
			"maxEvents": 7,
		}})
		defer res.Body.Close()
		var out struct {
			Result struct {
				Events  []occurrence
				Cursor  string
				HasMore bool
			}
		}
		text, err := io.ReadAll(res.Body)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil || out.Result.Cursor == "" {
			t.Fatal(err, string(text))
		}
		cursor = out.Result.Cursor
		return out.Result.Events, out.Result.HasMore
	}
	poll() // from now on
	var got []int
	next := 0
	for range 3 {
		for range 20 {
			emit(next)
			next++
		}
		list, _ := poll()
		for _, e := range list {
			got = append(got, e.Data.N)
		}
		server.kill()
		server = w.launch("serve", "serve").ready()
	}
	eventually(t, patience, "everything is polled", func() bool {
		list, _ := poll()
		for _, e := range list {
			got = append(got, e.Data.N)
		}
		return len(got) >= next
	})
	for i, n := range got {
		if i != n {
			t.Fatalf("event %d came as number %d: %v", n, i, got)
		}
	}
	first := next
	for range 2 {
		res := post("/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "events/stream", "params": map[string]any{"name": "incident.created", "cursor": cursor}})
		for range 5 {
			emit(next)
			next++
		}
		seen := 0
		reader := json.NewDecoder(dataLines(res.Body))
		for seen < 3 {
			var m struct {
				Method string
				Params struct {
					Cursor string
					Data   struct{ N int }
				}
			}
			if err := reader.Decode(&m); err != nil {
				t.Fatal(err)
			}
			if m.Method == "notifications/events/event" {
				if m.Params.Data.N != first {
					t.Errorf("the stream has %d instead of %d", m.Params.Data.N, first)
				}
				cursor, first, seen = m.Params.Cursor, first+1, seen+1
			}
		}
		server.kill()
		res.Body.Close()
		server = w.launch("serve", "serve").ready()
	}
	rest, _ := poll()
	if len(rest) != next-first || rest[0].Data.N != first {
		t.Errorf("after the streams: %v, want %s", rest, fmt.Sprint(first, " to ", next-1))
	}
}

// dataLines are the data of server-sent events.
func dataLines(from io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		var line []byte
		one := make([]byte, 1)
		for {
			if _, err := from.Read(one); err != nil {
				_ = w.CloseWithError(err)
				return
			}
			if line = append(line, one[0]); one[0] == '\n' {
				if data, is := strings.CutPrefix(string(line), "data: "); is {
					_, _ = io.WriteString(w, data)
				}
				line = nil
			}
		}
	}()
	return r
}
