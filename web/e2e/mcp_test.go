//go:build (e2e || soak) && unix

package e2e

import (
	"bytes"
	"encoding/json"
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

// puller reads the events of a server that is killed.
type puller struct {
	*world
	server *process
	cursor any // where it continues
	sent   int // how many events were emitted, each with its number
}

func newPuller(t *testing.T) *puller {
	t.Helper()
	p := &puller{world: newWorld(t, func(*arrival) int { return 200 })}
	p.restart()
	p.post("/api/v1/event-types", map[string]string{"name": "incident.created"}).Body.Close()
	return p
}

// restart kills the server, if there is one, and starts another.
func (p *puller) restart() {
	p.t.Helper()
	if p.server != nil {
		p.server.kill()
	}
	p.server = p.launch("serve", "serve").ready()
}

func (p *puller) post(path string, body any) *http.Response {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.server.url+path, bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}

// ask sends a message about the events, from the cursor on.
func (p *puller) ask(method string) *http.Response {
	p.t.Helper()
	return p.post("/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": map[string]any{
		"name":      "incident.created",
		"cursor":    p.cursor,
		"maxEvents": 7,
	}})
}

func (p *puller) emit(n int) {
	p.t.Helper()
	for range n {
		res := p.post("/api/v1/events", map[string]any{"type": "incident.created", "data": map[string]int{"n": p.sent}})
		res.Body.Close()
		if res.StatusCode != http.StatusAccepted {
			p.t.Fatal(res.Status)
		}
		p.sent++
	}
}

// occurrence is an event with its number.
type occurrence struct {
	Data   struct{ N int }
	Cursor string
}

func (p *puller) poll() (numbers []int) {
	p.t.Helper()
	res := p.ask("events/poll")
	defer res.Body.Close()
	var out struct {
		Result struct {
			Events []occurrence
			Cursor string
		}
	}
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil || out.Result.Cursor == "" {
		p.t.Fatal(err, string(text))
	}
	p.cursor = out.Result.Cursor
	for _, e := range out.Result.Events {
		numbers = append(numbers, e.Data.N)
	}
	return numbers
}

// stream reads some events of a stream, and breaks off with the server.
func (p *puller) stream(n int) (numbers []int) {
	p.t.Helper()
	res := p.ask("events/stream")
	defer res.Body.Close()
	p.emit(n + 2)
	for reader := json.NewDecoder(dataLines(res.Body)); len(numbers) < n; {
		var m struct {
			Method string
			Params occurrence
		}
		if err := reader.Decode(&m); err != nil {
			p.t.Fatal(err)
		}
		if m.Method == "notifications/events/event" {
			numbers, p.cursor = append(numbers, m.Params.Data.N), m.Params.Cursor
		}
	}
	p.restart()
	return numbers
}

// TestPollAndStreamLoseNothingWhenTheServerIsKilled polls, and reads streams, while the server is killed between two
// polls and within a stream. Each event comes once, in order, by the cursor that the client stored.
func TestPollAndStreamLoseNothingWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	if first := p.poll(); len(first) > 0 {
		t.Errorf("before the first event: %v", first)
	}
	var got []int
	all := func() {
		t.Helper()
		eventually(t, patience, "everything is read", func() bool {
			got = append(got, p.poll()...)
			return len(got) >= p.sent
		})
		for i, n := range got {
			if i != n {
				t.Fatalf("event %d came as number %d: %v", n, i, got)
			}
		}
	}
	for range 3 {
		p.emit(20)
		got = append(got, p.poll()...)
		p.restart()
	}
	all()
	for range 2 {
		got = append(got, p.stream(3)...)
	}
	all()
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
