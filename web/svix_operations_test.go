package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"posthorn/web/movetest"
)

// svixDesk is a server whose Svix API a program calls, and a receiver of what it sends.
type svixDesk struct {
	*desk
	receiver string

	mu     sync.Mutex
	got    map[string][]svixReceived // by path
	status map[string]int
}

type svixReceived struct {
	header http.Header
	body   string
}

func newSvixDesk(t *testing.T) *svixDesk {
	t.Helper()
	d := &svixDesk{desk: newPlatformDesk(t), got: map[string][]svixReceived{}, status: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.got[r.URL.Path] = append(d.got[r.URL.Path], svixReceived{r.Header, string(body)})
		w.WriteHeader(max(d.status[r.URL.Path], http.StatusOK))
	}))
	t.Cleanup(server.Close)
	d.receiver = server.URL
	return d
}

// of are the requests at a path so far.
func (d *svixDesk) of(path string) []svixReceived {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.got[path])
}

func (d *svixDesk) respond(path string, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status[path] = status
}

// call is a request of the Svix API; its status must be the wanted one.
func (d *svixDesk) call(t *testing.T, want int, method, path, body string, header ...string) map[string]any {
	t.Helper()
	got := ask(t, method, d.url+"/svix/api/v1"+path, d.platformKey(), body, header...)
	if got.status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, path, got.status, got.body, want)
	}
	var out map[string]any
	_ = json.Unmarshal([]byte(got.body), &out) // some have no body
	return out
}

// app creates an application with an endpoint at the path of its name, and returns the endpoint's id.
func (d *svixDesk) app(t *testing.T, name string) string {
	t.Helper()
	d.call(t, http.StatusCreated, "POST", "/app", fmt.Sprintf(`{"name":%q,"uid":%q}`, name, name))
	e := d.call(t, http.StatusCreated, "POST", "/app/"+name+"/endpoint", fmt.Sprintf(`{"url":"%s/%s","uid":"hook","secret":%q}`, d.receiver, name, movetest.Secret(name)))
	return e["id"].(string)
}

// send creates a message and returns its id.
func (d *svixDesk) send(t *testing.T, app, more string) string {
	t.Helper()
	m := d.call(t, http.StatusAccepted, "POST", "/app/"+app+"/msg", `{"eventType":"order.done","payload":{"marker":1}`+more+`}`)
	return m["id"].(string)
}

// arrive waits for so many requests at a path.
func (d *svixDesk) arrive(t *testing.T, path string, n int) []svixReceived {
	t.Helper()
	eventually(t, fmt.Sprintf("%d requests arrive at %s", n, path), func() bool { return len(d.of(path)) >= n })
	return d.of(path)
}

// svixCalls are one call of each operation of docs/svix.md that has an equivalent, in an order that works: those that
// delete come last. APP, MSG, ATTEMPT, and TASK are what earlier calls made.
var svixCalls = []struct {
	row, query, body string
	want             int
}{
	{"GET /health", "", "", 204},
	{"GET /health/ping", "", "", 204},
	{"POST /auth/logout", "", "", 204},
	{"GET /app", "?limit=10&order=ascending", "", 200},
	{"GET /app/{app_id}", "", "", 200},
	{"PUT /app/{app_id}", "", `{"name":"Rows","uid":"rows"}`, 200},
	{"PATCH /app/{app_id}", "", `{"metadata":{"plan":"gold"},"throttleRate":50}`, 200},
	{"POST /app", "?get_if_exists=true", `{"name":"Rows","uid":"rows"}`, 200},
	{"POST /event-type", "", `{"name":"order.done","description":"done","schemas":{"1":{"type":"object","example":{"total":7}}}}`, 201},
	{"GET /event-type", "?with_content=true", "", 200},
	{"GET /event-type/{event_type_name}", "", "", 200},
	{"PUT /event-type/{event_type_name}", "", `{"description":"is done"}`, 200},
	{"PATCH /event-type/{event_type_name}", "", `{"description":"was done"}`, 200},
	{"POST /app/{app_id}/endpoint", "", `{"url":"RECEIVER/second","disabled":true}`, 201},
	{"GET /app/{app_id}/endpoint", "?order=descending", "", 200},
	{"GET /app/{app_id}/endpoint/{endpoint_id}", "", "", 200},
	{"PUT /app/{app_id}/endpoint/{endpoint_id}", "", `{"url":"RECEIVER/rows","uid":"hook"}`, 200},
	{"PATCH /app/{app_id}/endpoint/{endpoint_id}", "", `{"description":"hook"}`, 200},
	{"GET /app/{app_id}/endpoint/{endpoint_id}/secret", "", "", 200},
	{"POST /app/{app_id}/endpoint/{endpoint_id}/secret/rotate", "", `{}`, 200},
	{"PUT /app/{app_id}/endpoint/{endpoint_id}/headers", "", `{"headers":{"X-Team":"a"}}`, 204},
	{"PATCH /app/{app_id}/endpoint/{endpoint_id}/headers", "", `{"headers":{"X-Region":"eu"}}`, 204},
	{"GET /app/{app_id}/endpoint/{endpoint_id}/headers", "", "", 200},
	{"GET /app/{app_id}/endpoint/{endpoint_id}/transformation", "", "", 200},
	{"GET /app/{app_id}/endpoint/{endpoint_id}/stats", "", "", 200},
	{"POST /app/{app_id}/msg", "", `{"eventType":"order.done","eventId":"order.1","payload":{"n":1}}`, 202},
	{"GET /app/{app_id}/msg", "?event_types=order.done,order.other", "", 200},
	{"GET /app/{app_id}/msg/{msg_id}", "", "", 200},
	{"GET /app/{app_id}/msg/{msg_id}/endpoint", "", "", 200},
	{"GET /app/{app_id}/attempt/endpoint/{endpoint_id}", "?status=0&with_msg=true", "", 200},
	{"GET /app/{app_id}/attempt/msg/{msg_id}", "?endpoint_id=hook&status_code_class=200", "", 200},
	{"GET /app/{app_id}/msg/{msg_id}/attempt/{attempt_id}", "", "", 200},
	{"GET /app/{app_id}/endpoint/{endpoint_id}/msg", "?status=0", "", 200},
	{"POST /app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/resend", "", "", 202},
	{"POST /app/{app_id}/endpoint/{endpoint_id}/send-example", "", `{"eventType":"order.done"}`, 200},
	{"POST /app/{app_id}/endpoint/{endpoint_id}/recover", "", `{"since":"2026-01-01T00:00:00Z"}`, 202},
	{"GET /background-task/{task_id}", "", "", 200},
	{"POST /app/{app_id}/endpoint/{endpoint_id}/replay-missing", "", `{"since":"2026-01-01T00:00:00Z"}`, 202},
	{"POST /auth/app-portal-access/{app_id}", "", `{}`, 200},
	{"GET /app/{app_id}/poller/{endpoint_id}", "?limit=10", "", 200},
	{"GET /app/{app_id}/poller/{endpoint_id}/consumer/{consumer_id}", "?limit=10", "", 200},
	{"POST /app/{app_id}/poller/{endpoint_id}/consumer/{consumer_id}/seek", "", `{"after":"2026-01-01T00:00:00Z"}`, 200},
	{"GET /app/{app_id}/polling-endpoint/{endpoint_id}/consumer/{consumer_id}", "?limit=10&lease_duration_ms=1000&starting_position=earliest", "", 200},
	{"POST /app/{app_id}/polling-endpoint/{endpoint_id}/consumer/{consumer_id}/commit", "", `{"offset":{offset}}`, 204},
	{"DELETE /app/{app_id}/msg/{msg_id}/content", "", "", 204},
	{"DELETE /event-type/{event_type_name}", "?expunge=true", "", 204},
	{"DELETE /app/{app_id}/endpoint/{endpoint_id}", "", "", 204},
	{"DELETE /app/{app_id}", "", "", 204},
}

// TestEveryRowOfTheSvixPageIsACall calls each operation of docs/svix.md, so that no row is words alone. What has no
// equivalent is refused below 500, which the libraries would repeat.
func TestEveryRowOfTheSvixPageIsACall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/svix.md")
	if err != nil {
		t.Fatal(err)
	}
	operations, _, _ := strings.Cut(string(text), "## Limits")
	refused := map[string]bool{} // by row
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(operations, -1) {
		refused[row[1]] = strings.HasPrefix(row[2], "400: ")
	}
	d := newSvixDesk(t)
	endpoint := d.app(t, "rows")
	if got := ask(t, "POST", d.url+"/api/v1/tenants/rows/endpoints", d.platformKey(), `{"kind":"feed","external_id":"feed"}`); got.status != http.StatusCreated {
		t.Fatal(got.status, got.body)
	}
	ids := strings.NewReplacer("{app_id}", "rows", "poller/{endpoint_id}", "poller/feed", "polling-endpoint/{endpoint_id}", "polling-endpoint/feed", "{consumer_id}", "warehouse", "{endpoint_id}", endpoint, "{event_type_name}", "order.done", "RECEIVER", d.receiver)
	made := map[string]string{}
	called := map[string]bool{}
	for _, o := range svixCalls {
		called[o.row] = true
		if is, there := refused[o.row]; !there || is {
			t.Errorf("docs/svix.md has no such row: %s", o.row)
		}
		method, path, _ := strings.Cut(ids.Replace(o.row), " ")
		for name, value := range made {
			path = strings.ReplaceAll(path, name, value)
			o.body = strings.ReplaceAll(o.body, name, value)
		}
		out := d.call(t, o.want, method, path+o.query, ids.Replace(o.body))
		if strings.HasPrefix(o.row, "GET /app/{app_id}/poll") {
			// Transactions of other tests' databases on the server keep what was just accepted back.
			eventually(t, o.row+" lists something", func() bool {
				out = d.call(t, o.want, method, path+o.query, ids.Replace(o.body))
				return len(out["data"].([]any)) > 0
			})
		}
		switch o.row {
		case "POST /app/{app_id}/msg":
			made["{msg_id}"] = out["id"].(string)
			d.arrive(t, "/rows", 1)
			eventually(t, "the attempt is on record", func() bool {
				list := d.call(t, 200, "GET", "/app/rows/attempt/msg/"+made["{msg_id}"], "")["data"].([]any)
				if len(list) > 0 {
					made["{attempt_id}"] = list[0].(map[string]any)["id"].(string)
				}
				return len(list) > 0
			})
		case "GET /app/{app_id}/polling-endpoint/{endpoint_id}/consumer/{consumer_id}":
			made["{offset}"] = fmt.Sprintf("%.0f", out["data"].([]any)[0].(map[string]any)["offset"])
		case "POST /app/{app_id}/endpoint/{endpoint_id}/recover":
			made["{task_id}"] = out["id"].(string)
		case "POST /app/{app_id}/endpoint/{endpoint_id}/send-example":
			if fmt.Sprint(out["payload"]) != "map[total:7]" || out["id"] == "" {
				t.Errorf("the example of the schema is not what was sent: %v", out)
			}
		}
		if data, is := out["data"].([]any); is && len(data) == 0 {
			t.Errorf("%s lists nothing", o.row)
		}
	}
	for row, is := range refused {
		if is {
			method, path, _ := strings.Cut(strings.NewReplacer("{", "", "}", "").Replace(row), " ")
			if out := d.call(t, http.StatusBadRequest, method, path, ""); out["code"] != "not_supported" {
				t.Errorf("%s: %v", row, out)
			}
		} else if !called[row] {
			t.Errorf("nothing calls %s", row)
		}
	}
}

func TestTheSvixAPISendsRawPayloadsAsTheyAre(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	d.app(t, "raw")
	for i, c := range []struct{ body, params, want, contentType string }{
		{`{}`, `{"rawPayload":"{\"i\" : 1.50,  \"b\":[1, 2]}"}`, `{"i" : 1.50,  "b":[1, 2]}`, "application/json"},
		{`{}`, `{"rawPayload":"<a>é &amp; b</a>","headers":{"content-type":"application/xml; charset=utf-8"}}`, "<a>é &amp; b</a>", "application/xml; charset=utf-8"},
		{`{}`, `{"rawPayload":"a=1&b=2","headers":{"Content-Type":"application/x-www-form-urlencoded"}}`, "a=1&b=2", "application/x-www-form-urlencoded"},
		{`{}`, `{"rawPayload":"no JSON"}`, "no JSON", "application/json"},
		{`{"a": 1}`, `{}`, `{"a": 1}`, "application/json"},
	} {
		m := d.call(t, http.StatusAccepted, "POST", "/app/raw/msg", `{"eventType":"order.done","payload":`+c.body+`,"transformationsParams":`+c.params+`}`)
		got := d.arrive(t, "/raw", i+1)[i]
		id, verifies := svixVerifies(got.header, []byte(got.body), []string{movetest.Secret("raw")})
		if got.body != c.want || got.header.Get("Content-Type") != c.contentType || !verifies || id != m["id"] {
			t.Errorf("%s: %q as %s, verifies %t, id %s of %s", c.params, got.body, got.header.Get("Content-Type"), verifies, id, m["id"])
		}
		shown := d.call(t, http.StatusOK, "GET", "/app/raw/msg/"+m["id"].(string), "")
		if _, isObject := shown["payload"].(map[string]any); !isObject {
			t.Errorf("%s: the libraries read the payload as an object: %v", c.params, shown)
		}
	}
	d.call(t, http.StatusUnprocessableEntity, "POST", "/app/raw/msg", `{"eventType":"a.b","payload":{},"transformationsParams":{"headers":{"x-other":"1"}}}`)
}

func TestTheSvixAPIListsAttemptsByWhatTheyAre(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	good := d.app(t, "att")
	bad := d.call(t, http.StatusCreated, "POST", "/app/att/endpoint", fmt.Sprintf(`{"url":"%s/bad"}`, d.receiver))["id"].(string)
	d.respond("/bad", 503)
	msg := d.send(t, "att", "")
	byMessage, byEndpoint := "/app/att/attempt/msg/"+msg, "/app/att/attempt/endpoint/"+bad
	list := func(path string) []any { return d.call(t, http.StatusOK, "GET", path, "")["data"].([]any) }
	eventually(t, "both have an attempt", func() bool { return len(list(byMessage)) >= 2 })
	for query, want := range map[string]func(a map[string]any) bool{
		"status=2":                     func(a map[string]any) bool { return a["status"] == 2.0 && a["endpointId"] == bad },
		"status=0":                     func(a map[string]any) bool { return a["status"] == 0.0 && a["endpointId"] == good },
		"endpoint_id=hook":             func(a map[string]any) bool { return a["endpointId"] == good },
		"status_code_class=500":        func(a map[string]any) bool { return a["responseStatusCode"] == 503.0 },
		"after=2020-01-01T00:00:00Z":   func(map[string]any) bool { return true },
		"event_types=order.done,other": func(map[string]any) bool { return true },
		"expanded_statuses=true":       func(map[string]any) bool { return true },
	} {
		found := list(byMessage + "?" + query)
		if len(found) == 0 || slices.ContainsFunc(found, func(a any) bool { return !want(a.(map[string]any)) }) {
			t.Errorf("%s: %v", query, found)
		}
	}
	for _, query := range []string{"status=1", "status=3", "status_code_class=200", "before=2020-01-01T00:00:00Z", "event_types=other", "event_types=other,third", "channel=c"} {
		if found := list(byEndpoint + "?" + query); len(found) != 0 {
			t.Errorf("%s: %v", query, found)
		}
	}
	if found := list(byEndpoint + "?status=2&status_code_class=500&with_msg=true"); len(found) == 0 || found[0].(map[string]any)["msg"].(map[string]any)["id"] != msg {
		t.Error("what failed and is retried is not listed as failed")
	}
	for _, path := range []string{"/app", "/app/att/endpoint", "/app/att/msg", byMessage, byEndpoint, "/event-type"} {
		if text := fmt.Sprint(d.call(t, http.StatusUnprocessableEntity, "GET", path+"?nonsense=1", "")); !strings.Contains(text, "nonsense") {
			t.Errorf("%s: %s", path, text)
		}
	}
	// A delivery that is retried is sent as its next attempt.
	d.respond("/bad", 200)
	before := len(d.of("/bad"))
	d.call(t, http.StatusAccepted, "POST", "/app/att/msg/"+msg+"/endpoint/"+bad+"/resend", "")
	last := d.arrive(t, "/bad", before+1)[before]
	if last.header.Get("Svix-Id") != msg {
		t.Errorf("resent under %s", last.header.Get("Svix-Id"))
	}
}

func TestADisabledEndpointOfTheSvixAPIDrops(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	endpoint := d.app(t, "off")
	d.call(t, http.StatusOK, "PATCH", "/app/off/endpoint/"+endpoint, `{"disabled":true}`)
	d.send(t, "off", `,"eventId":"while.1"`)
	d.call(t, http.StatusOK, "PATCH", "/app/off/endpoint/"+endpoint, `{"disabled":false}`)
	after := d.send(t, "off", "")
	if got := d.arrive(t, "/off", 1); got[0].header.Get("Svix-Id") != after {
		t.Errorf("what was sent while it was disabled arrived: %v", got)
	}
}

func TestTheSvixAPIKeepsMetadataAndRateOfAnApplication(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	d.call(t, http.StatusCreated, "POST", "/app", `{"name":"Gold","uid":"gold","metadata":{"plan":"gold"},"throttleRate":40}`)
	rate := func(body, want string) {
		t.Helper()
		if e := d.call(t, http.StatusCreated, "POST", "/app/gold/endpoint", fmt.Sprintf(`{"url":"%s/gold"%s}`, d.receiver, body)); fmt.Sprint(e["throttleRate"]) != want {
			t.Errorf("an endpoint has the rate %v, want %s", e["throttleRate"], want)
		}
	}
	rate("", "40")
	rate(`,"throttleRate":5`, "5")
	d.call(t, http.StatusOK, "PATCH", "/app/gold", `{"throttleRate":60}`)
	a := d.call(t, http.StatusOK, "GET", "/app/gold", "")
	if fmt.Sprint(a["metadata"], a["throttleRate"], a["rateLimit"]) != "map[plan:gold] 60 60" {
		t.Errorf("the application is %v", a)
	}
	var rates []string
	for _, e := range d.call(t, http.StatusOK, "GET", "/app/gold/endpoint?order=ascending", "")["data"].([]any) {
		rates = append(rates, fmt.Sprint(e.(map[string]any)["throttleRate"]))
	}
	if slices.Sort(rates); !slices.Equal(rates, []string{"5", "60"}) {
		t.Errorf("the endpoints have the rates %v", rates)
	}
	if a := d.call(t, http.StatusOK, "PUT", "/app/gold", `{"name":"Gold","uid":"gold"}`); fmt.Sprint(a["metadata"], a["throttleRate"]) != "map[] <nil>" {
		t.Errorf("PUT leaves %v", a)
	}
}

func TestTheSvixAPISpeaksToEachLineOfTheLibraries(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	endpoint := d.app(t, "lines")
	rotate := "/app/lines/endpoint/" + endpoint + "/secret/rotate"
	d.call(t, http.StatusNoContent, "POST", rotate, `{}`, "User-Agent", "svix-libs/1.99.1/java")
	if out := d.call(t, http.StatusOK, "POST", rotate, `{}`, "User-Agent", "svix-libs/2.9.1/rust"); out["key"] == "" {
		t.Errorf("no secret: %v", out)
	}
	// The library for Go that the module proxy has rejects fields that it does not know.
	e := d.call(t, http.StatusOK, "GET", "/app/lines/endpoint/"+endpoint, "", "User-Agent", "svix-libs/1.44.0/go")
	if _, there := e["eventTypes"]; there || e["rateLimit"] == nil {
		t.Errorf("an endpoint for Go 1: %v", e)
	}
}

func TestTheSvixAPIRefusesInTheCallersWords(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	d.app(t, "words")
	for body, c := range map[string]struct {
		path, name, foreign string
		status              int
	}{
		`{"eventType":"a b","payload":{}}`:                 {"/app/words/msg", "eventType", "type_", 422},
		`{"eventType":"a.b","eventId":"a b","payload":{}}`: {"/app/words/msg", "eventId", "event_id", 422},
		`{"name":"x","uid":" a"}`:                          {"/app", "uid", "external_id", 422},
		`{"name":"x","uid":"words"}`:                       {"/app", "conflict", "external_id", 409},
		`{"url":"https://a.example.com","channels":["?"]}`: {"/app/words/endpoint", "channels", "channel_", 422},
	} {
		text := fmt.Sprint(d.call(t, c.status, "POST", c.path, body))
		if !strings.Contains(text, c.name) || strings.Contains(text, c.foreign) {
			t.Errorf("%s: %s", body, text)
		}
	}
}

// TestTheSvixAPIHasAHostOfItsOwn is for libraries that drop the path of the server's address.
func TestTheSvixAPIHasAHostOfItsOwn(t *testing.T) {
	t.Parallel()
	p := program(t, append(newDatabase(t), "POSTHORN_SVIX_HOST=svix.example.com"), Parts{Web: true})
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"svix.example.com", "/api/v1/health", http.StatusNoContent},
		{"SVIX.example.com:8443", "/svix/api/v1/health", http.StatusNoContent},
		{"svix.example.com", "/api/v1/app", http.StatusUnauthorized},
		{"svix.example.com", "/readyz", http.StatusOK},
		{"svix.example.com", "/sign-in", http.StatusNotFound},
		{"svix.example.com", "/api/v1/tenants", http.StatusNotFound},
		{"other.example.com", "/api/v1/health", http.StatusUnauthorized}, // Posthorn's own, which needs a key
		{"other.example.com", "/svix/api/v1/health", http.StatusNoContent},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != c.want {
			t.Errorf("%s%s: %d, want %d", c.host, c.path, res.StatusCode, c.want)
		}
	}
}
