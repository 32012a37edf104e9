package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain lets the test binary be the receiver and the generator, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "receiver" || os.Args[1] == "load") {
		main()
		return
	}
	os.Exit(m.Run())
}

// contract is a server that takes the calls which a product documents, and nothing else, and delivers what is emitted.
type contract struct {
	*httptest.Server
	t       *testing.T
	key     string
	mu      sync.Mutex
	urls    map[string]string // of endpoints, by the id that an emission names
	deliver sync.WaitGroup
	twice   bool // delivers each tenth event twice
	never   bool // and each tenth not at all
	n       int
}

// call is a documented call: its method and path, the fields that its body has, and what it does.
type call struct {
	method, path string
	fields       []string
	do           func(c *contract, part string, body map[string]json.RawMessage) (status int, response any)
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// newContract serves the calls. A * in a path is one segment, which do gets.
func newContract(t *testing.T, calls ...call) *contract {
	c := &contract{t: t, key: "secret-of-the-peer", urls: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+c.key || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		raw, _ := io.ReadAll(r.Body)
		body := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &body); err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		for _, x := range calls {
			found := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(x.path), `\*`, "([^/]+)") + "$").FindStringSubmatch(r.URL.Path)
			if x.method != r.Method || found == nil {
				continue
			}
			for field := range body {
				if !strings.Contains(" "+strings.Join(x.fields, " ")+" ", " "+field+" ") {
					t.Errorf("%s %s has a field that is not documented: %s", r.Method, r.URL.Path, field)
				}
			}
			c.mu.Lock()
			status, response := x.do(c, append(found, "")[1], body)
			c.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(response)
			return
		}
		t.Errorf("%s %s is not documented", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(func() { c.Close(); c.deliver.Wait() })
	return c
}

// accept delivers data to an endpoint; false: there is none.
func (c *contract) accept(endpoint string, data json.RawMessage) bool {
	address, ok := c.urls[endpoint]
	if !ok || len(data) == 0 {
		return false
	}
	c.n++
	times := 1
	if c.n%10 == 0 && c.twice {
		times = 2
	}
	if c.n%10 == 5 && c.never {
		times = 0
	}
	c.deliver.Go(func() {
		for range times {
			if response, err := http.Post(address, "application/json", bytes.NewReader(data)); err == nil {
				response.Body.Close()
			}
		}
	})
	return true
}

func (c *contract) id(kind string) string { return kind + "_" + strconv.Itoa(len(c.urls)) }

// The calls as the products document them: svix/svix-webhooks (server/openapi.json), hookdeck/outpost
// (docs/apis/openapi.yaml) and frain-dev/convoy (docs/v3/openapi3.yaml), all read in August 2026.
var contracts = map[string][]call{
	"svix": {
		{"POST", "/api/v1/app/", []string{"name", "uid", "rateLimit", "metadata"}, func(c *contract, _ string, body map[string]json.RawMessage) (int, any) {
			id := c.id("app")
			c.urls[id] = ""
			return http.StatusCreated, map[string]any{"id": id, "name": text(body["name"])}
		}},
		{"POST", "/api/v1/app/*/endpoint/", []string{"url", "version", "description", "filterTypes", "rateLimit"}, func(c *contract, app string, body map[string]json.RawMessage) (int, any) {
			if _, ok := c.urls[app]; !ok {
				return http.StatusNotFound, map[string]any{"code": "not_found"}
			}
			c.urls[app] = text(body["url"])
			return http.StatusCreated, map[string]any{"id": "ep_1", "url": c.urls[app], "version": 1}
		}},
		{"POST", "/api/v1/app/*/msg/", []string{"eventType", "payload", "eventId", "channels"}, func(c *contract, app string, body map[string]json.RawMessage) (int, any) {
			if text(body["eventType"]) == "" || !c.accept(app, body["payload"]) {
				return http.StatusUnprocessableEntity, map[string]any{"detail": "invalid"}
			}
			return http.StatusAccepted, map[string]any{"id": "msg_1", "eventType": text(body["eventType"])}
		}},
	},
	"outpost": {
		{"PUT", "/api/v1/tenants/*", []string{"metadata"}, func(c *contract, tenant string, _ map[string]json.RawMessage) (int, any) {
			c.urls[tenant] = ""
			return http.StatusCreated, map[string]any{"id": tenant, "destinations_count": 0}
		}},
		{"POST", "/api/v1/tenants/*/destinations", []string{"type", "topics", "config", "credentials", "metadata"}, func(c *contract, tenant string, body map[string]json.RawMessage) (int, any) {
			var config struct {
				URL string `json:"url"`
			}
			_ = json.Unmarshal(body["config"], &config)
			if _, ok := c.urls[tenant]; !ok || text(body["type"]) != "webhook" || string(body["topics"]) != `["*"]` || config.URL == "" {
				return http.StatusUnprocessableEntity, map[string]any{"message": "validation error"}
			}
			c.urls[tenant] = config.URL
			return http.StatusCreated, map[string]any{"id": "des_1", "type": "webhook"}
		}},
		{"POST", "/api/v1/publish", []string{"id", "tenant_id", "destination_id", "topic", "eligible_for_retry", "time", "metadata", "data"}, func(c *contract, _ string, body map[string]json.RawMessage) (int, any) {
			if !c.accept(text(body["tenant_id"]), body["data"]) {
				return http.StatusUnprocessableEntity, map[string]any{"message": "validation error"}
			}
			return http.StatusAccepted, map[string]any{"id": "evt_1", "duplicate": false, "destination_ids": []string{"des_1"}}
		}},
	},
	"convoy": {
		{"POST", "/api/v1/projects/*/endpoints", []string{"name", "url", "owner_id", "secret", "http_timeout", "rate_limit"}, func(c *contract, project string, body map[string]json.RawMessage) (int, any) {
			if project != "01PROJECT" || text(body["name"]) == "" || text(body["url"]) == "" {
				return http.StatusBadRequest, map[string]any{"status": false, "message": "invalid"}
			}
			id := c.id("01ENDPOINT")
			c.urls[id] = ""
			c.urls["waiting "+id] = text(body["url"])
			return http.StatusCreated, map[string]any{"status": true, "message": "Endpoint created", "data": map[string]any{"uid": id}}
		}},
		{"POST", "/api/v1/projects/*/subscriptions", []string{"name", "endpoint_id", "source_id", "filter_config"}, func(c *contract, _ string, body map[string]json.RawMessage) (int, any) {
			id := text(body["endpoint_id"])
			if c.urls[id] = c.urls["waiting "+id]; c.urls[id] == "" || text(body["name"]) == "" {
				return http.StatusBadRequest, map[string]any{"status": false, "message": "invalid"}
			}
			return http.StatusCreated, map[string]any{"status": true, "data": map[string]any{"uid": "01SUB"}}
		}},
		{"POST", "/api/v1/projects/*/events", []string{"endpoint_id", "event_type", "data", "custom_headers", "idempotency_key"}, func(c *contract, _ string, body map[string]json.RawMessage) (int, any) {
			if text(body["event_type"]) == "" || !c.accept(text(body["endpoint_id"]), body["data"]) {
				return http.StatusBadRequest, map[string]any{"status": false, "message": "invalid"}
			}
			return http.StatusCreated, map[string]any{"status": true, "message": "Event queued successfully"}
		}},
	},
}

// against runs the load against a contract and returns the table.
func against(t *testing.T, name string, c *contract) (string, error) {
	t.Helper()
	address := c.URL
	switch name {
	case "outpost":
		address += "/api/v1"
	case "convoy":
		address += "/api project=01PROJECT"
	}
	p, err := parsePeer(name+" url="+address+" key=$PEER_KEY pid=contract:"+strconv.Itoa(os.Getpid()), func(string) string { return c.key })
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := &peerOptions{self: self, peers: []peer{p}, listen: "127.0.0.1:0", tenants: 3, c: 4, events: 200, light: 50, span: time.Second, out: &out}
	err = o.run(t.Context())
	if strings.Contains(out.String(), c.key) || err != nil && strings.Contains(err.Error(), c.key) {
		t.Error("the key is in the output")
	}
	return out.String(), err
}

func TestEachPeersAdapterMakesTheCallsThatItDocuments(t *testing.T) {
	t.Parallel()
	for name, calls := range contracts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, err := against(t, name, newContract(t, calls...))
			if err != nil {
				t.Fatal(err)
			}
			// product, raw hop, deliveries, CPU, light, rate, half, RSS, refused, lost, doubled
			row := regexp.MustCompile(`(?m)^\| ` + name + `\s*\| [1-9]\d*\s*\| [1-9]\d*\s*\| contract \d+\s*\| \d+\.\d / \d+\.\d\s*\| [1-9]\d*/s\s*\| \d+\.\d / \d+\.\d\s*\| contract [1-9]\d*\s*\| 0\s*\| 0\s*\| 0\s*\|$`)
			if !row.MatchString(table) {
				t.Errorf("%s", table)
			}
		})
	}
}

func TestWhatAPeerDeliversTwiceIsCounted(t *testing.T) {
	t.Parallel()
	c := newContract(t, contracts["outpost"]...)
	c.twice = true
	table, err := against(t, "outpost", c)
	if err == nil || !strings.Contains(err.Error(), "0 lost, ") || strings.Contains(err.Error(), " 0 doubled") || !strings.Contains(table, "| outpost") {
		t.Errorf("%v\n%s", err, table)
	}
}

func TestAPeerThatRejectsIsNamedAndOthersAreMeasured(t *testing.T) {
	t.Parallel()
	c := newContract(t, contracts["svix"]...)
	bad, err := parsePeer("svix url="+c.URL+" key=wrong", os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	good, err := parsePeer("svix url="+c.URL+" key="+c.key, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := &peerOptions{self: self, peers: []peer{bad, good}, listen: "127.0.0.1:0", tenants: 1, c: 2, events: 50, light: 50, span: time.Second / 2, out: &out}
	if err := o.run(t.Context()); err == nil || !strings.Contains(err.Error(), "svix: POST /api/v1/app/: 401") || strings.Count(out.String(), "| svix") != 1 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestAPeerIsNamedWithItsAddressKeyAndProcesses(t *testing.T) {
	t.Parallel()
	self := strconv.Itoa(os.Getpid())
	p, err := parsePeer("posthorn url=http://127.0.0.1:8080/ key=$K pid=posthorn:"+self+" pid=postgresql:"+self+"+", func(name string) string { return "of " + name })
	if err != nil || p.url != "http://127.0.0.1:8080" || p.key != "of K" || len(p.processes) != 2 || p.processes[0].family || !p.processes[1].family {
		t.Errorf("%+v, %v", p, err)
	}
	for text, want := range map[string]string{
		"":                                             "empty",
		"hook0 url=http://a key=b":                     "one of posthorn, svix, outpost, convoy",
		"svix url=http://a":                            "key=",
		"svix url=http://a key=$NONE":                  "variable is empty",
		"svix url=a key=b":                             "url=",
		"svix url=http://a key=b speed=9":              `no "speed"`,
		"svix url=http://a key=b pid=server":           "NAME:PID",
		"svix url=http://a key=b pid=server:0":         "NAME:PID",
		"svix url=http://a key=b pid=server:999999999": "no such process",
	} {
		if _, err := parsePeer(text, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
