package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"posthorn/domain/id"
	"posthorn/domain/trace"
)

// collected is a collector in the test's process.
type collected struct {
	url string

	mu    sync.Mutex
	calls int
	wrong []string
	spans map[string][]collectedSpan // by name
}

type collectedSpan struct {
	*tracepb.Span
	service  string
	schema   string
	resource map[string]string
}

func newCollected(t *testing.T) *collected {
	t.Helper()
	c := &collected{spans: map[string][]collectedSpan{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.calls++; c.calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // what is temporary is tried again
			return
		}
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Authorization") != "Bearer abc" {
			c.wrong = append(c.wrong, r.URL.Path+" "+r.Header.Get("Content-Type"))
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.wrong = append(c.wrong, err.Error())
			return
		}
		body, _ := io.ReadAll(z)
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			c.wrong = append(c.wrong, err.Error())
		}
		for _, of := range data.ResourceSpans {
			resource := map[string]string{}
			for _, a := range of.Resource.Attributes {
				resource[a.Key] = a.Value.GetStringValue()
			}
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans[s.Name] = append(c.spans[s.Name], collectedSpan{s, resource["service.name"], of.SchemaUrl, resource})
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collected) named(name string) []collectedSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[name]
}

// attribute is a span's attribute as text.
func (s collectedSpan) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return strings.NewReplacer(`string_value:`, "", `int_value:`, "", `"`, "").Replace(strings.ReplaceAll(a.Value.String(), " ", ""))
		}
	}
	return ""
}

// tracedReceiver responds with 500 once and then 200, and keeps the trace of each request.
type tracedReceiver struct {
	url    string
	mu     sync.Mutex
	got    []string
	states []string // the tracestate of each request
}

func newTracedReceiver(t *testing.T, fails int) *tracedReceiver {
	t.Helper()
	r := &tracedReceiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if body, _ := io.ReadAll(req.Body); bytes.Contains(body, []byte("endpoint.verification")) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.states = append(r.states, strings.Join(req.Header[trace.StateHeader], " and "))
		if r.got = append(r.got, strings.Join(req.Header[trace.Header], " and ")); len(r.got) <= fails {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *tracedReceiver) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

func (r *tracedReceiver) tracestates() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.states...)
}

// traced is an installation of two processes with an endpoint that gets traces.
func traced(t *testing.T, c *collected, to *tracedReceiver, ratio string, more ...string) (d *desk, web, worker *Program) {
	t.Helper()
	environ := append(newDatabase(t), more...)
	environ = append(environ, "POSTHORN_EGRESS_ALLOW=127.0.0.1", "POSTHORN_TRACES_URL="+c.url, "POSTHORN_TRACES_HEADERS=Authorization=Bearer abc", "POSTHORN_TRACES_RATIO="+ratio)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	web, worker = program(t, environ, Parts{Web: true}), program(t, environ, Parts{Worker: true})
	d = &desk{t: t, url: web.URL(), key: m.APIKey}
	d.call("POST", "/api/v1/endpoints", `{"url":"`+to.url+`","verification":"simple","send_traceparent":true,"retry_policy":{"name":"custom","delays":[1]}}`, "")
	eventually(t, "the endpoint is verified", func() bool {
		return d.call("GET", "/api/v1/endpoints", "", "")["data"].([]any)[0].(map[string]any)["status"] == "active"
	})
	return d, web, worker
}

// givenState is the tracestate of every request that has a traceparent.
const givenState = "acme=t61rcWkgMzE,other@system=1"

// call is a request of the API with a trace; it returns the response as JSON.
func (d *desk) call(method, path, body, traceparent string) map[string]any {
	d.t.Helper()
	req, _ := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+d.key)
	req.Header.Set("Content-Type", "application/json")
	if traceparent != "" {
		req.Header.Set(trace.Header, traceparent)
		req.Header.Set(trace.StateHeader, givenState)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode >= 300 {
		d.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		d.t.Fatal(err)
	}
	return out
}

func TestTheTraceOfAnEventGoesThroughTwoProcessesAndARetry(t *testing.T) {
	t.Parallel()
	c, to := newCollected(t), newTracedReceiver(t, 1)
	d, web, worker := traced(t, c, to, "0")
	const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	event := d.call("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, given)["id"].(string)
	eventually(t, "two requests", func() bool { return len(to.requests()) == 2 })
	eventually(t, "the spans", func() bool {
		_ = web.traces.provider.ForceFlush(t.Context())
		_ = worker.traces.provider.ForceFlush(t.Context())
		return len(c.named("posthorn.emit")) == 1 && len(c.named("posthorn.attempt")) == 2
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		t.Errorf("the collector was sent %q", c.wrong)
	}
	emitted, first, second := c.spans["posthorn.emit"][0], c.spans["posthorn.attempt"][0], c.spans["posthorn.attempt"][1]
	if first.attribute("posthorn.attempt") != "1" {
		first, second = second, first
	}
	for _, s := range []collectedSpan{emitted, first, second} {
		if hex.EncodeToString(s.TraceId) != given[3:35] || s.attribute("posthorn.event.id") != event ||
			s.EndTimeUnixNano <= s.StartTimeUnixNano {
			t.Errorf("%s is of trace %x, event %s", s.Name, s.TraceId, s.attribute("posthorn.event.id"))
		}
	}
	if hex.EncodeToString(emitted.ParentSpanId) != given[36:52] || emitted.service != "posthorn-web" ||
		emitted.Kind != tracepb.Span_SPAN_KIND_SERVER || emitted.attribute("posthorn.deliveries") != "1" {
		t.Errorf("the emission is %v", emitted)
	}
	for i, s := range []collectedSpan{first, second} {
		if !bytes.Equal(s.ParentSpanId, emitted.SpanId) || s.service != "posthorn-worker" || s.Kind != tracepb.Span_SPAN_KIND_CLIENT {
			t.Errorf("attempt %d is %v", i+1, s)
		}
		if want := "00-" + given[3:35] + "-" + hex.EncodeToString(s.SpanId) + "-01"; to.requests()[i] != want {
			t.Errorf("the receiver got %q with attempt %d, want %q", to.requests()[i], i+1, want)
		}
		delivery, err := id.Delivery.Parse(s.attribute("posthorn.delivery.id"))
		if want := trace.AttemptSpan(delivery, i+1); err != nil || !bytes.Equal(s.SpanId, want[:]) {
			t.Errorf("attempt %d has the span %x", i+1, s.SpanId)
		}
	}
	if first.Status.Code != tracepb.Status_STATUS_CODE_ERROR || first.attribute("http.response.status_code") != "500" || len(first.Links) != 0 ||
		first.attribute("error.type") != "500" || first.Status.Message != "the endpoint returned 500 Internal Server Error" {
		t.Errorf("the first attempt is %v", first)
	}
	address, err := url.Parse(to.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []collectedSpan{emitted, first, second} {
		if s.TraceState != givenState {
			t.Errorf("%s has the trace state %q", s.Name, s.TraceState)
		}
		if s.schema == "" || s.resource["service.version"] == "" || s.resource["service.instance.id"] == "" {
			t.Errorf("%s is of the resource %v, schema %q", s.Name, s.resource, s.schema)
		}
	}
	if emitted.resource["service.instance.id"] == first.resource["service.instance.id"] {
		t.Error("two processes have one service.instance.id")
	}
	if got := to.tracestates(); !slices.Equal(got, []string{givenState, givenState}) {
		t.Errorf("the receiver got the states %q", got)
	}
	for key, want := range map[string]string{
		"http.request.method": "POST",
		"server.address":      address.Hostname(),
		"server.port":         address.Port(),
		"url.full":            to.url,
	} {
		if got := first.attribute(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if second.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR || second.attribute("http.response.status_code") != "200" ||
		len(second.Links) != 1 || !bytes.Equal(second.Links[0].SpanId, first.SpanId) ||
		!bytes.Equal(second.Links[0].TraceId, first.TraceId) {
		t.Errorf("the second attempt is %v", second)
	}
	found := d.call("GET", "/api/v1/events?trace_id="+given[3:35], "", "")["data"].([]any)
	if len(found) != 1 || found[0].(map[string]any)["id"] != event || found[0].(map[string]any)["trace_id"] != given[3:35] {
		t.Errorf("by its trace are found %v", found)
	}
	if other := d.call("GET", "/api/v1/events?trace_id="+strings.Repeat("1", 32), "", "")["data"].([]any); len(other) != 0 {
		t.Errorf("by another trace are found %v", other)
	}
}

func TestATraceThatIsNotSampledIsPassedOnAndNotExported(t *testing.T) {
	t.Parallel()
	c, to := newCollected(t), newTracedReceiver(t, 0)
	d, web, worker := traced(t, c, to, "0")
	const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	d.call("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, given)
	d.call("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, "")
	d.call("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, "broken")
	eventually(t, "three requests", func() bool { return len(to.requests()) == 3 })
	_ = web.traces.provider.ForceFlush(t.Context())
	_ = worker.traces.provider.ForceFlush(t.Context())
	if c.mu.Lock(); c.calls > 0 {
		t.Errorf("%d exports of nothing", c.calls)
	}
	c.mu.Unlock()
	passed := 0
	for _, got := range to.requests() {
		switch {
		case strings.HasPrefix(got, given[:36]) && strings.HasSuffix(got, "-00"):
			passed++
		case got != "":
			t.Errorf("an event without a trace came with %q", got)
		}
	}
	if passed != 1 {
		t.Errorf("the receivers got %q", to.requests())
	}
}

func TestATraceBeginsHereWhereTheProducerHasNone(t *testing.T) {
	t.Parallel()
	c, to := newCollected(t), newTracedReceiver(t, 0)
	d, web, worker := traced(t, c, to, "1")
	d.call("POST", "/api/v1/events/batch", `{"events":[{"type":"order.paid","data":1},{"type":"order.paid","data":2}]}`, "")
	eventually(t, "the spans", func() bool {
		_ = web.traces.provider.ForceFlush(t.Context())
		_ = worker.traces.provider.ForceFlush(t.Context())
		return len(c.named("posthorn.emit")) == 2 && len(c.named("posthorn.attempt")) == 2
	})
	if e := c.named("posthorn.emit"); bytes.Equal(e[0].TraceId, e[1].TraceId) || len(e[0].ParentSpanId) != 0 {
		t.Errorf("two events are of the traces %x and %x", e[0].TraceId, e[1].TraceId)
	}
}

// Two installations that export to one collector are told apart by OpenTelemetry's own variables.
func TestTheVariablesOfOpenTelemetryNameTheInstallation(t *testing.T) {
	t.Parallel()
	c, to := newCollected(t), newTracedReceiver(t, 0)
	d, web, worker := traced(t, c, to, "1", "OTEL_SERVICE_NAME=hooks", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=blue%2Cgreen, service.namespace = shop ,service.name=lost")
	d.call("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, "")
	eventually(t, "the spans", func() bool {
		_ = web.traces.provider.ForceFlush(t.Context())
		_ = worker.traces.provider.ForceFlush(t.Context())
		return len(c.named("posthorn.emit")) == 1 && len(c.named("posthorn.attempt")) == 1
	})
	for _, name := range []string{"posthorn.emit", "posthorn.attempt"} {
		got := c.named(name)[0].resource
		if got["service.name"] != "hooks" || got["deployment.environment.name"] != "blue,green" || got["service.namespace"] != "shop" {
			t.Errorf("%s is of %v", name, got)
		}
	}
	for text, want := range map[string]int{"": 0, "a=1,b=2": 2, "a": -1, "a=1,=2": -1, "a=%zz": -1} {
		got, ok := resourceAttributes(text)
		if ok != (want >= 0) || ok && len(got) != want {
			t.Errorf("%q is read as %v, %v", text, got, ok)
		}
	}
}

// TestACollectorThatIsAwayHoldsUpNothing: spans are dropped, deliveries are not.
func TestACollectorThatIsAwayHoldsUpNothing(t *testing.T) {
	t.Parallel()
	to := newTracedReceiver(t, 0)
	d, _, _ := traced(t, &collected{url: "http://127.0.0.1:1"}, to, "1")
	for range 20 {
		d.call("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, "")
	}
	eventually(t, "all requests", func() bool { return len(to.requests()) == 20 })
}

func TestTheSettingsOfTracesAreChecked(t *testing.T) {
	t.Parallel()
	for setting, says := range map[string]string{
		"POSTHORN_TRACES_URL=collector:4318":    "Write it as http://collector:4318",
		"POSTHORN_TRACES_URL=http://a:secret@b": "secrets go into POSTHORN_TRACES_HEADERS",
		"POSTHORN_TRACES_RATIO=2":               "from 0 to 1",
		"POSTHORN_TRACES_RATIO=half":            "is not a number",
		"POSTHORN_TRACES_HEADERS=secret":        "name=value",
	} {
		_, err := loadConfig([]string{setting})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret ") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	for given, want := range map[string]string{
		"http://c:4318":            "http://c:4318/v1/traces",
		"http://c:4318/":           "http://c:4318/v1/traces",
		"https://c/otlp/v1/traces": "https://c/otlp/v1/traces",
	} {
		if got := tracesURL(given); got != want {
			t.Errorf("%s leads to %s", given, got)
		}
	}
	if headers, ok := tracesHeaders("Authorization=Basic YTpi==, X-Scope=a"); !ok || headers.Get("Authorization") != "Basic YTpi==" || headers.Get("X-Scope") != "a" {
		t.Errorf("headers are %v", headers)
	}
}
