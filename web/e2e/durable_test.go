//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/tools/need"
)

// suite is the conformance suite of Durable Streams, as npm has it.
var suite = []string{"@durable-streams/server-conformance-tests@0.3.6", "vitest@4"}

// readGroups are the groups of the suite that read, and the tests of others that do.
const readGroups = `Read Operations|Long-Poll|HTTP Protocol should (return correct headers on GET|return empty body with up-to-date|read from offset)|` +
	`Browser Security Headers .*(GET|HEAD|SSE|long-poll)|Content-Type Validation should return stream|HEAD Metadata should|Offset Validation|` +
	`Protocol Edge Cases should (preserve data|generate unique|reject empty offset|reject multiple offset|ignore unknown)|` +
	`Caching and ETag|Read-Your-Writes|SSE Mode|JSON Mode should (wrap|concatenate|preserve|work with client)|Immutability`

// notRead are tests of these groups that need what no feed has.
var notRead = regexp.MustCompile(`closed|TTL|Expires-At|binary|base64|protobuf|image/png|CORS preflight|multiple chunks|chunk-size`)

// TestTheReadGroupsOfDurableStreamsPass runs the conformance suite of Durable Streams against feeds. The suite writes
// what it reads, and a feed can't be appended to: a program in front creates a feed for each stream, emits what is
// appended, and takes each event's data out of its envelope. Offsets, headers, statuses, waits, and control events are
// the feed's.
func TestTheReadGroupsOfDurableStreamsPass(t *testing.T) {
	t.Parallel()
	need.Programs(t, "npm")
	dir := dataDir(t)
	w := newWorldAt(t, []string{"POSTHORN_DATA_DIR=" + dir}, nil)
	w.serveAt(w.launch("serve", "serve").ready())
	var made struct {
		Key string `json:"api_key"`
	}
	command(t, w.environ, w.at, &made, "key", "create", "--platform", "--scopes", "all", "--json")
	writer := &streamWriter{t: t, server: w.web(), key: made.Key, streams: map[string]*stream{}}
	front := httptest.NewServer(writer)
	t.Cleanup(front.Close)

	at := t.TempDir()
	out, err := within(t, 5*time.Minute, inDir(at, append([]string{"npm", "install", "--no-audit", "--no-fund"}, suite...)...))
	need.Reached(t, "the registry of npm", err, []byte(out))
	program := `import { runConformanceTests } from "@durable-streams/server-conformance-tests";
runConformanceTests({ baseUrl: process.env.STREAMS_URL, longPollTimeoutMs: 25000 });
`
	if err := os.WriteFile(filepath.Join(at, "feeds.test.mjs"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	run := inDir(at, "npx", "vitest", "run", "feeds.test.mjs", "--reporter=json", "--outputFile=results.json", "--testTimeout=60000", "-t", readGroups)
	run.Env = append(os.Environ(), "STREAMS_URL="+front.URL, "CI=1")
	said, _ := within(t, 8*time.Minute, run) // a test that fails is in the results
	var results struct {
		Files []struct {
			Tests []struct {
				Name     string   `json:"fullName"`
				Status   string   `json:"status"`
				Messages []string `json:"failureMessages"`
			} `json:"assertionResults"`
		} `json:"testResults"`
	}
	text, err := os.ReadFile(filepath.Join(at, "results.json"))
	if err == nil {
		err = json.Unmarshal(text, &results)
	}
	if err != nil || len(results.Files) == 0 {
		t.Fatalf("%v\n%.3000s", err, said)
	}
	passed := 0
	for _, one := range results.Files[0].Tests {
		switch {
		case one.Status == "passed":
			passed++
		case one.Status == "failed" && !notRead.MatchString(one.Name):
			t.Errorf("%s: %.600s", one.Name, strings.Join(one.Messages, "\n"))
		}
	}
	t.Logf("%d tests passed", passed)
	if passed < 60 {
		t.Errorf("%d tests passed: were they run?", passed)
	}
}

// stream is a stream of the suite: a feed of a tenant of its own.
type stream struct {
	contentType string
	path        string // of the feed in Posthorn
	events      string // where events are emitted
	written     int
}

func (s *stream) json() bool { return strings.HasPrefix(s.contentType, "application/json") }

// streamWriter is the write half in front of feeds.
type streamWriter struct {
	t           *testing.T
	server, key string

	mu      sync.Mutex
	streams map[string]*stream
}

func (f *streamWriter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	s := f.streams[r.URL.Path]
	f.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		f.create(w, r, s)
	case r.Method == http.MethodPost && s != nil:
		f.append(w, r, s)
	case r.Method == http.MethodDelete && s != nil:
		f.mu.Lock()
		delete(f.streams, r.URL.Path)
		f.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if s == nil { // a feed that does not exist is the server's to refuse
			s = &stream{path: "/api/v1/tenants/ten_01jd0000000000000000000000/feeds/ep_01jd0000000000000000000000/stream"}
		}
		f.read(w, r, s)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// call makes a request of the API that must succeed.
func (f *streamWriter) call(method, path string, body, into any) {
	text, err := json.Marshal(body)
	if err != nil {
		f.t.Error(err)
		return
	}
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.server+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		f.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 || json.Unmarshal(answer, into) != nil {
		f.t.Errorf("%s %s: %d %s %v", method, path, res.StatusCode, answer, err)
	}
}

func (f *streamWriter) create(w http.ResponseWriter, r *http.Request, s *stream) {
	status := http.StatusOK
	if s == nil {
		status = http.StatusCreated
		var tenant, feed struct{ ID string }
		f.call("POST", "/tenants", map[string]string{"name": "Stream"}, &tenant)
		f.call("POST", "/tenants/"+tenant.ID+"/endpoints", map[string]string{"kind": "feed"}, &feed)
		s = &stream{
			contentType: r.Header.Get("Content-Type"),
			path:        "/api/v1/tenants/" + tenant.ID + "/feeds/" + feed.ID + "/stream",
			events:      "/tenants/" + tenant.ID + "/events/batch",
		}
		if s.contentType == "" {
			s.contentType = "application/octet-stream"
		}
		f.mu.Lock()
		f.streams[r.URL.Path] = s
		f.mu.Unlock()
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			f.emit(s, body)
		}
	}
	w.Header().Set("Content-Type", s.contentType)
	w.Header().Set("Location", "http://"+r.Host+r.URL.Path)
	w.Header().Set("Stream-Next-Offset", f.tail(s))
	w.WriteHeader(status)
}

func (f *streamWriter) append(w http.ResponseWriter, r *http.Request, s *stream) {
	body, _ := io.ReadAll(r.Body)
	if len(body) == 0 || s.json() && !json.Valid(body) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.emit(s, body)
	w.Header().Set("Stream-Next-Offset", f.tail(s))
	w.WriteHeader(http.StatusNoContent)
}

// emit emits a message, or those of a list, and waits until the feed has them: other transactions of the server can
// keep it back for a moment.
func (f *streamWriter) emit(s *stream, body []byte) {
	var messages []json.RawMessage
	if !s.json() {
		text, _ := json.Marshal(string(body))
		messages = []json.RawMessage{text}
	} else if json.Unmarshal(body, &messages) != nil {
		messages = []json.RawMessage{body}
	}
	if len(messages) == 0 {
		return
	}
	items := make([]map[string]any, len(messages))
	for i, m := range messages {
		items[i] = map[string]any{"type": "message", "data": m}
	}
	f.mu.Lock()
	s.written += len(messages)
	want := s.written
	f.mu.Unlock()
	var results any
	f.call("POST", s.events, map[string]any{"events": items}, &results)
	for until := time.Now().Add(time.Minute); f.has(s) < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			f.t.Error("the feed does not get what was emitted")
			return
		}
	}
}

// has is how many messages the feed has.
func (f *streamWriter) has(s *stream) (n int) {
	for offset := "-1"; ; {
		res, err := f.ask(http.MethodGet, s.path+"?offset="+offset, nil)
		if err != nil {
			f.t.Error(err)
			return n
		}
		var part []json.RawMessage
		err = json.NewDecoder(res.Body).Decode(&part)
		_ = res.Body.Close()
		if err != nil {
			f.t.Error(err)
			return n
		}
		n, offset = n+len(part), res.Header.Get("Stream-Next-Offset")
		if res.Header.Get("Stream-Up-To-Date") == "true" {
			return n
		}
	}
}

func (f *streamWriter) tail(s *stream) string {
	res, err := f.ask(http.MethodHead, s.path, nil)
	if err != nil {
		f.t.Error(err)
		return ""
	}
	_ = res.Body.Close()
	return res.Header.Get("Stream-Next-Offset")
}

func (f *streamWriter) ask(method, path string, like *http.Request) (*http.Response, error) {
	ctx := f.t.Context()
	if like != nil {
		ctx = like.Context()
	}
	req, err := http.NewRequestWithContext(ctx, method, f.server+path, nil)
	if err != nil {
		return nil, err
	}
	if like != nil {
		req.Header = like.Header.Clone()
		req.Header.Del("Accept-Encoding")
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	return http.DefaultTransport.RoundTrip(req)
}

// read passes a request on, and takes the data of events out of the response.
func (f *streamWriter) read(w http.ResponseWriter, r *http.Request, s *stream) {
	query := ""
	if r.URL.RawQuery != "" {
		query = "?" + r.URL.RawQuery
	}
	res, err := f.ask(r.Method, s.path+query, r)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	streams := res.Header.Get("Content-Type") == "text/event-stream"
	for name, values := range res.Header {
		if name != "Content-Length" && (name != "Content-Type" || streams || res.StatusCode >= 400 || s.contentType == "") {
			w.Header()[name] = values
		} else if name == "Content-Type" {
			w.Header().Set("Content-Type", s.contentType)
		}
	}
	w.WriteHeader(res.StatusCode)
	switch {
	case streams:
		s.passStream(w, res.Body)
	case res.StatusCode == http.StatusOK && r.Method == http.MethodGet:
		body, _ := io.ReadAll(res.Body)
		_, _ = w.Write(s.data(body))
	default:
		_, _ = io.Copy(w, res.Body)
	}
}

// data is the data of events as a stream of its type has it.
func (s *stream) data(events []byte) []byte {
	var list []struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(events, &list); err != nil {
		return events
	}
	all := make([]json.RawMessage, len(list))
	var text bytes.Buffer
	for i, e := range list {
		all[i] = e.Data
		var one string
		_ = json.Unmarshal(e.Data, &one)
		text.WriteString(one)
	}
	if !s.json() {
		return text.Bytes()
	}
	out, _ := json.Marshal(all)
	return out
}

// passStream passes server-sent events on.
func (s *stream) passStream(w http.ResponseWriter, from io.Reader) {
	flush := http.NewResponseController(w)
	buffer, rest := make([]byte, 64<<10), ""
	for {
		n, err := from.Read(buffer)
		rest += string(buffer[:n])
		for {
			one, after, whole := strings.Cut(rest, "\n\n")
			if !whole {
				break
			}
			rest = after
			if data, is := strings.CutPrefix(one, "event: data\ndata: "); is {
				one = "event: data"
				lines := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(s.data([]byte(data))))
				for line := range strings.SplitSeq(lines, "\n") {
					one += "\ndata:" + line
				}
			}
			if data, is := strings.CutPrefix(one, "event: control\ndata: "); is {
				one = "event: control\ndata:" + data
			}
			fmt.Fprint(w, one+"\n\n")
		}
		_ = flush.Flush()
		if err != nil {
			return
		}
	}
}
