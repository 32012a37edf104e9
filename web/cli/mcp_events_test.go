package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"posthorn/client"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/tools/webtest"
	"posthorn/web/cli"
)

const (
	firstSecret  = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	secondSecret = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="
)

// posted is a request to a callback.
type posted struct {
	header http.Header
	body   string
	fields map[string]any
}

func (p posted) verify(secret string) error {
	w, err := webhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return w.Verify([]byte(p.body), p.header)
}

// callback is an AI client's receiver. It echoes challenges, unless it is deaf.
type callback struct {
	t   *testing.T
	url string

	mu         sync.Mutex
	deaf       bool
	statuses   []int // of the next requests that are no challenge; then 204
	challenges int
	got        []posted
}

func newCallback(t *testing.T) *callback {
	c := &callback{t: t}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL + "/hook?client=1"
	return c
}

func (c *callback) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p := posted{header: r.Header, body: string(body)}
	if err := json.Unmarshal(body, &p.fields); err != nil || r.Header.Get("Content-Type") != "application/json" {
		c.t.Errorf("not an object: %s", body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.fields["type"] == "verification" {
		c.challenges++
		if !strings.HasPrefix(r.Header.Get("Webhook-Id"), "msg_verification_") || p.verify(firstSecret) != nil && p.verify(secondSecret) != nil {
			c.t.Errorf("the challenge is not signed: %v", r.Header)
		}
		if c.deaf {
			p.fields["challenge"] = "another"
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"challenge": p.fields["challenge"]})
		return
	}
	c.got = append(c.got, p)
	status := http.StatusNoContent
	if len(c.statuses) > 0 {
		status, c.statuses = c.statuses[0], c.statuses[1:]
	}
	rw.WriteHeader(status)
}

// wait returns what was posted once there are n requests.
func (c *callback) wait(n int) []posted {
	c.t.Helper()
	var got []posted
	eventually(c.t, fmt.Sprint(n, " requests have come"), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		got = slices.Clone(c.got)
		return len(got) >= n
	})
	return got
}

func (c *callback) responds(statuses ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses = statuses
}

func (c *callback) challenged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.challenges
}

// reply is a response of JSON-RPC.
type reply struct {
	Result map[string]any
	Error  *struct {
		Code int
		Data map[string]any
	}
}

func (r reply) code() int {
	if r.Error == nil {
		return 0
	}
	return r.Error.Code
}

// agent speaks for a principal.
type agent struct {
	w              *world
	key, principal string
	below          string // of the path of the server: a tenant's own
}

func (a agent) post(method string, params any) *http.Response {
	t := a.w.t
	t.Helper()
	body := must[[]byte](t)(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, a.w.url+"/mcp"+a.below, bytes.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+a.key)
	if a.principal != "" {
		r.Header.Set("Posthorn-Principal", a.principal)
	}
	return must[*http.Response](t)(http.DefaultClient.Do(r))
}

func (a agent) call(method string, params any) (out reply) {
	t := a.w.t
	t.Helper()
	res := a.post(method, params)
	defer res.Body.Close()
	text := must[[]byte](t)(io.ReadAll(res.Body))
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %d %s", method, res.StatusCode, text)
	}
	return out
}

// good is call for what must succeed.
func (a agent) good(method string, params any) map[string]any {
	a.w.t.Helper()
	r := a.call(method, params)
	if r.Error != nil || r.Result["resultType"] != "complete" {
		a.w.t.Fatalf("%s %v: %+v", method, params, r)
	}
	return r.Result
}

// desk is a tenant with an event type and an agent of a principal.
type desk struct {
	agent
	tenant id.UUID
	sdk    *client.Client
}

func (w *world) desk() desk {
	tenant, key := w.Tenant("Acme")
	d := desk{agent: agent{w: w, key: key, principal: "auth0|ada"}, tenant: tenant, sdk: w.client(key)}
	schema := json.RawMessage(`{"type":"object","properties":{"severity":{"type":"string","enum":["P1","P2"]},"n":{"type":"integer"},"tags":{"type":"array"}}}`)
	must[client.EventType](w.t)(d.sdk.CreateEventType(w.t.Context(), client.EventTypeInput{Name: "incident.created", Schema: client.Value(schema)}))
	return d
}

func (d desk) emit(data any) string {
	d.w.t.Helper()
	return must[client.Accepted](d.w.t)(d.sdk.Emit(d.w.t.Context(), must[client.Emission](d.w.t)(client.NewEmission("incident.created", data)))).ID
}

// params are those of events/subscribe.
func (c *callback) params(secret string, more ...any) map[string]any {
	p := map[string]any{
		"name":      "incident.created",
		"arguments": map[string]any{"severity": "P1"},
		"delivery":  map[string]any{"mode": "webhook", "url": c.url, "secret": secret},
	}
	for i := 0; i < len(more); i += 2 {
		p[more[i].(string)] = more[i+1]
	}
	return p
}

// TestASubscriptionIsVerifiedDeliveredRefreshedRotatedAndEnded goes through the life of one.
func TestASubscriptionIsVerifiedDeliveredRefreshedRotatedAndEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, c := w.desk(), newCallback(t)
	listed := d.good("events/list", nil)["events"].([]any)[0].(map[string]any)
	if fmt.Sprint(listed["name"], listed["delivery"]) != "incident.created[webhook poll push]" || fmt.Sprint(listed["inputSchema"]) == "" ||
		listed["inputSchema"].(map[string]any)["properties"].(map[string]any)["tags"] != nil {
		t.Errorf("listed %v", listed)
	}
	made := d.good("events/subscribe", c.params(firstSecret, "ttlMs", 3_600_000))
	due := must[time.Time](t)(time.Parse(time.RFC3339, made["refreshBefore"].(string)))
	if left := time.Until(due); left > time.Hour || left < 50*time.Minute || made["truncated"] != false || made["deliveryStatus"] != nil || c.challenged() != 1 {
		t.Errorf("subscribed: %v, %d challenges", made, c.challenged())
	}
	c.responds(http.StatusServiceUnavailable) // as a client that has not stored its subscription yet
	d.emit(map[string]any{"severity": "P2", "n": 1})
	event := d.emit(map[string]any{"severity": "P1", "n": 2})
	began := time.Now()
	for _, p := range c.wait(2) {
		if err := p.verify(firstSecret); err != nil {
			t.Error(err)
		}
		at, err := time.Parse(time.RFC3339, fmt.Sprint(p.fields["timestamp"]))
		if fmt.Sprint(p.fields["eventId"], p.fields["name"], p.fields["data"]) != event+"incident.createdmap[n:2 severity:P1]" || err != nil || time.Since(at) > time.Hour ||
			p.header.Get("Webhook-Id") != event || p.header.Get(mcp.SubscriptionHeader) != made["id"] {
			t.Errorf("posted %s with %v", p.body, p.header)
		}
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("a 503 was retried after %v", took)
	}
	var again map[string]any
	eventually(t, "the delivery is on record", func() bool {
		again = d.good("events/subscribe", c.params(firstSecret, "arguments", json.RawMessage(`{ "severity":"P1" }`), "cursor", made["cursor"]))
		return again["cursor"] != made["cursor"]
	})
	status := again["deliveryStatus"].(map[string]any)
	if again["id"] != made["id"] || c.challenged() != 1 || status["active"] != true || status["lastDeliveryAt"] == nil || status["lastError"] != nil {
		t.Errorf("refreshed: %v, %d challenges", again, c.challenged())
	}
	if rotated := d.good("events/subscribe", c.params(secondSecret)); rotated["id"] != made["id"] || c.challenged() != 2 {
		t.Errorf("rotated: %v, %d challenges", rotated, c.challenged())
	}
	d.emit(map[string]any{"severity": "P1", "n": 3})
	if p := c.wait(3)[2]; p.verify(firstSecret) != nil || p.verify(secondSecret) != nil {
		t.Errorf("not signed with both secrets: %v", p.header)
	}
	if n := webtest.One[int](w.World, "SELECT count(*)::int FROM notices WHERE kind = 'secret.rotated'"); n != 0 {
		t.Error("members are told of a secret that the client has chosen")
	}
	d.good("events/unsubscribe", c.params(""))
	if r := d.call("events/unsubscribe", c.params("")); r.code() != -32011 || r.Error.Data["kind"] != "subscription" {
		t.Errorf("unsubscribed twice: %+v", r)
	}
	d.emit(map[string]any{"severity": "P1", "n": 4})
	fresh := d.good("events/subscribe", c.params(firstSecret, "cursor", again["cursor"]))
	if fresh["id"] != made["id"] || fresh["truncated"] != false {
		t.Errorf("subscribed again: %v", fresh)
	}
	var missed []any
	for _, p := range c.wait(5)[3:] { // what came while it was away, from the cursor on; two are sent at a time
		missed = append(missed, p.fields["data"].(map[string]any)["n"])
	}
	if !slices.Contains(missed, any(3.0)) || !slices.Contains(missed, any(4.0)) {
		t.Errorf("after the cursor: %v", missed)
	}
}

// TestWhatASubscriptionLacksIsSaidByItsCode has a case for each code that a client tells apart.
func TestWhatASubscriptionLacksIsSaidByItsCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, c, deaf := w.desk(), newCallback(t), newCallback(t)
	deaf.deaf = true
	reader := agent{w: w, key: w.MakeKey(accounts.NewKey{Tenant: &d.tenant, Name: "reader", Scopes: access.Scopes{access.WebhooksRead}})}
	off := httptest.NewServer(nil)
	off.Close()
	to := func(address string) map[string]any {
		return map[string]any{"mode": "webhook", "url": address, "secret": firstSecret}
	}
	for name, one := range map[string]struct {
		by     agent
		params map[string]any
		code   int
		data   string
	}{
		"an unknown event":       {d.agent, c.params(firstSecret, "name", "nobody.knows"), -32011, "map[kind:event]"},
		"an unknown argument":    {d.agent, c.params(firstSecret, "arguments", map[string]any{"tags": []string{"a"}}), -32602, "map[]"},
		"a wrong value":          {d.agent, c.params(firstSecret, "arguments", map[string]any{"severity": "P9"}), -32602, "map[]"},
		"a short secret":         {d.agent, c.params("whsec_c2hvcnQ="), -32602, "map[]"},
		"a fragment":             {d.agent, c.params(firstSecret, "delivery", to(c.url+"#x")), -32602, "map[]"},
		"an address of nobody":   {d.agent, c.params(firstSecret, "delivery", to("https://10.0.0.1/")), -32602, "map[]"},
		"a cursor of nobody":     {d.agent, c.params(firstSecret, "cursor", "abc"), -32602, "map[]"},
		"a time that is none":    {d.agent, c.params(firstSecret, "ttlMs", -1), -32602, "map[]"},
		"a name of two lines":    {agent{w: w, key: d.key, principal: "a\u200bb"}, c.params(firstSecret), -32602, "map[]"},
		"a mode of nobody":       {d.agent, c.params(firstSecret, "delivery", map[string]any{"mode": "push"}), -32014, "map[feature:deliveryMode value:push]"},
		"a key without scope":    {reader, c.params(firstSecret), -32012, "map[]"},
		"a deaf receiver":        {d.agent, deaf.params(firstSecret), -32015, "map[reason:challenge_failed]"},
		"a receiver that is off": {d.agent, c.params(firstSecret, "delivery", to(off.URL)), -32015, "map[reason:connection_refused]"},
	} {
		if r := one.by.call("events/subscribe", one.params); r.code() != one.code || fmt.Sprint(r.Error.Data) != one.data {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
	if n := webtest.One[int](w.World, "SELECT count(*)::int FROM endpoints"); n != 0 {
		t.Errorf("%d endpoints are left of what was rejected", n)
	}
	w.SQL(`INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
		SELECT $1, n::text, gen_random_uuid(), 'auth0|ada', 'incident.created', '{}', '', now() + interval '1 day' FROM generate_series(1, $2::int) n`, d.tenant, mcp.MaxPerPrincipal)
	if r := d.call("events/subscribe", c.params(firstSecret)); r.code() != -32013 || fmt.Sprint(r.Error.Data) != "map[limit:subscriptions max:50]" {
		t.Errorf("above the limit: %+v", r.Error)
	}
	if other := (agent{w: w, key: d.key, principal: "auth0|bob"}); other.call("events/subscribe", c.params(firstSecret)).code() != 0 {
		t.Error("the limit of one principal is another's")
	}
}

// TestSubscriptionsAreListedAndRevokedByPrincipal: each is of one principal, and its client hears of the end.
func TestSubscriptionsAreListedAndRevokedByPrincipal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, c := w.desk(), newCallback(t)
	bob := agent{w: w, key: d.key, principal: "auth0|bob"}
	mine, his := d.good("events/subscribe", c.params(firstSecret)), bob.good("events/subscribe", c.params(firstSecret))
	if mine["id"] == his["id"] {
		t.Fatal("two principals have one subscription")
	}
	page := must[client.SubscriptionPage](t)(d.sdk.ListSubscriptions(t.Context(), client.ListSubscriptionsParams{Principal: new("auth0|bob")}))
	if len(page.Data) != 1 || page.Data[0].ID != his["id"] || page.Data[0].Status != client.EndpointStatusActive || string(page.Data[0].Arguments) != `{"severity":"P1"}` {
		t.Fatalf("listed %+v", page)
	}
	e := must[client.Endpoint](t)(d.sdk.GetEndpoint(t.Context(), page.Data[0].EndpointID))
	if !e.Mute.IsSpecified() || e.Mute.IsNull() || e.Metadata["mcp_principal"] != "auth0|bob" {
		t.Errorf("its endpoint wakes members, or does not say whose it is: %+v", e)
	}
	_, stranger := w.Tenant("Other")
	if err := w.client(stranger).RevokeSubscription(t.Context(), page.Data[0].ID); client.Code(err) != "not_found" {
		t.Errorf("another tenant revoked it: %v", err)
	}
	if err := d.sdk.RevokeSubscription(t.Context(), page.Data[0].ID); err != nil {
		t.Fatal(err)
	}
	last := c.wait(1)[0]
	if last.verify(firstSecret) != nil || last.fields["type"] != "terminated" || last.header.Get(mcp.SubscriptionHeader) != his["id"] ||
		last.fields["error"].(map[string]any)["code"] != float64(-32012) {
		t.Errorf("the client heard %s", last.body)
	}
	d.emit(map[string]any{"severity": "P1"})
	if p := c.wait(2)[1]; p.header.Get(mcp.SubscriptionHeader) != mine["id"] {
		t.Errorf("after the end: %v", p.header)
	}
}

// TestASubscriptionThatIsNotRefreshedOrAnswered410Ends: nothing is left of either.
func TestASubscriptionThatIsNotRefreshedOrAnswered410Ends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, lapsed, gone := w.desk(), newCallback(t), newCallback(t)
	d.good("events/subscribe", lapsed.params(firstSecret))
	d.good("events/subscribe", gone.params(firstSecret))
	gone.responds(http.StatusGone)
	w.SQL("UPDATE subscriptions SET expires_at = now() - interval '1 second' WHERE id = $1", mcp.ID("auth0|ada", lapsed.url, "incident.created", `{"severity":"P1"}`))
	d.emit(map[string]any{"severity": "P1"})
	gone.wait(1)
	eventually(t, "both have ended", func() bool {
		return len(must[client.SubscriptionPage](t)(d.sdk.ListSubscriptions(t.Context(), client.ListSubscriptionsParams{})).Data) == 0
	})
	if n := webtest.One[int](w.World, "SELECT count(*)::int FROM endpoints WHERE deleted_at IS NULL"); n != 0 {
		t.Errorf("%d endpoints are left", n)
	}
}

// poll polls until everything is read.
func (d desk) poll(params map[string]any) (numbers []any, cursor any) {
	d.w.t.Helper()
	for {
		page := d.good("events/poll", params)
		for _, e := range page["events"].([]any) {
			numbers = append(numbers, e.(map[string]any)["data"].(map[string]any)["n"])
		}
		params["cursor"] = page["cursor"]
		if page["hasMore"] == false {
			return numbers, page["cursor"]
		}
	}
}

// TestPollReadsEveryMatchingEventOnceInOrder begins now, and continues behind the cursor.
func TestPollReadsEveryMatchingEventOnceInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.desk()
	d.emit(map[string]any{"severity": "P1", "n": 0})
	params := map[string]any{"name": "incident.created", "arguments": map[string]any{"severity": "P1"}, "maxEvents": 2, "cursor": nil}
	if first, _ := d.poll(params); len(first) != 0 {
		t.Errorf("a first poll returned %v", first)
	}
	start := params["cursor"]
	for n := range 10 {
		d.emit(map[string]any{"severity": []string{"P1", "P2"}[n%2], "n": n + 1})
	}
	got, end := d.poll(params)
	eventually(t, "all have come", func() bool {
		more, cursor := d.poll(params)
		got, end = append(got, more...), cursor
		return len(got) >= 5
	})
	if fmt.Sprint(got) != "[1 3 5 7 9]" {
		t.Errorf("polled %v", got)
	}
	if again, cursor := d.poll(map[string]any{"name": "incident.created", "cursor": end}); len(again) != 0 || cursor == nil {
		t.Errorf("at the end: %v", again)
	}
	if all, _ := d.poll(map[string]any{"name": "incident.created", "cursor": start}); len(all) != 10 {
		t.Errorf("without arguments: %v", all)
	}
	old := d.good("events/poll", map[string]any{"name": "incident.created", "cursor": start, "maxAgeMs": 0})
	if old["truncated"] != true || len(old["events"].([]any)) != 0 {
		t.Errorf("nothing is younger than now: %v", old)
	}
	recent, object, failed := use(t, w.hosted(d.key, "/mcp"), "get_recent_events", map[string]any{"event": "incident.created", "minutes": 5})
	if failed || strings.Count(object, `"eventId"`) != 11 {
		t.Errorf("recent: %s", recent)
	}
	for _, wrong := range []map[string]any{{"name": "nobody.knows"}, {"name": "incident.created", "cursor": "abc"}, {"name": "incident.created", "maxEvents": 0}} {
		if r := d.call("events/poll", wrong); r.Error == nil {
			t.Errorf("%v: %v", wrong, r.Result)
		}
	}
}

// notifications reads those of a stream, but for heartbeats.
func notifications(t *testing.T, res *http.Response) (next func() (method string, params map[string]any)) {
	t.Helper()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatal(kind)
	}
	lines := bufio.NewScanner(res.Body)
	return func() (string, map[string]any) {
		for lines.Scan() {
			text, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			var m struct {
				Method string
				Params map[string]any
				Result map[string]any
			}
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatal(err, text)
			}
			if m.Method == "" {
				return "result", m.Result
			}
			if m.Params["_meta"].(map[string]any)["io.modelcontextprotocol/subscriptionId"] != float64(7) {
				t.Errorf("%s does not name its request", text)
			}
			if m.Method != "notifications/events/heartbeat" {
				return m.Method, m.Params
			}
		}
		t.Fatal("the stream has ended", lines.Err())
		return "", nil
	}
}

// TestAStreamContinuesBehindItsCursor reads notifications, breaks off, and reads on.
func TestAStreamContinuesBehindItsCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.desk()
	var cursor any
	for round := range 3 {
		res := d.post("events/stream", map[string]any{"name": "incident.created", "arguments": map[string]any{"severity": "P1"}, "cursor": cursor})
		next := notifications(t, res)
		if method, params := next(); method != "notifications/events/active" || params["truncated"] != false {
			t.Errorf("it begins with %s %v", method, params)
		}
		if round == 0 {
			d.emit(map[string]any{"severity": "P1", "n": 0})
		}
		d.emit(map[string]any{"severity": "P2"})
		d.emit(map[string]any{"severity": "P1", "n": round + 10})
		for _, want := range [][]int{{0, 10}, {11}, {12}}[round] {
			method, params := next()
			if data, _ := params["data"].(map[string]any); method != "notifications/events/event" || data["n"] != float64(want) || params["cursor"] == "" {
				t.Errorf("round %d: %s %v", round, method, params)
			}
			cursor = params["cursor"]
		}
		res.Body.Close()
	}
	if r := d.call("events/stream", map[string]any{"name": "nobody.knows"}); r.code() != -32011 {
		t.Errorf("an unknown event: %+v", r)
	}
}

// TestAStreamEndsWithItsKey: the client hears that it has ended, and gets nothing more.
func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.desk()
	key := must[client.KeyCreated](t)(d.sdk.CreateKey(t.Context(), client.KeyInput{Name: "agent", Scopes: []client.Scope{client.EventsRead}}))
	res := agent{w: w, key: key.APIKey, principal: ""}.post("events/stream", map[string]any{"name": "incident.created"})
	defer res.Body.Close()
	next := notifications(t, res)
	next() // it has begun
	if err := d.sdk.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	d.emit(map[string]any{"severity": "P1"})
	if method, params := next(); method != "notifications/events/terminated" || params["error"].(map[string]any)["code"] != float64(-32012) {
		t.Errorf("%s %v", method, params)
	}
	if method, result := next(); method != "result" || result["resultType"] != "complete" {
		t.Errorf("%s %v", method, result)
	}
}

// TestTheExamplesOfTheMCPPageWork sends the request of the page, starts the command of its configuration, and compares
// its table of tools with those that there are.
func TestTheExamplesOfTheMCPPageWork(t *testing.T) {
	t.Parallel()
	page := string(must[[]byte](t)(os.ReadFile("../../docs/mcp.md")))
	block := func(language string) string {
		_, rest, _ := strings.Cut(page, "\n```"+language+"\n")
		text, _, _ := strings.Cut(rest, "```")
		return text
	}
	var config struct {
		Servers map[string]struct{ Args []string } `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(block("json")), &config); err != nil {
		t.Fatal(err)
	}
	if _, err := must[*kong.Kong](t)(kong.New(new(cli.New()))).Parse(config.Servers["posthorn"].Args); err != nil {
		t.Error(err)
	}
	w := newWorld(t)
	d, c := w.desk(), newCallback(t)
	_, body, _ := strings.Cut(block("http"), "\n\n")
	var m struct {
		Method string
		Params map[string]any
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	m.Params["delivery"].(map[string]any)["url"] = c.url
	d.good(m.Method, m.Params)
	_, signIn, _ := strings.Cut(page, "PATCH /api/v1/tenants/")
	signIn, _, _ = strings.Cut(signIn, "```")
	_, body, _ = strings.Cut(signIn, "\n\n")
	var patch client.MCPAccessPatch
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		t.Fatal(err)
	}
	patch.Issuer = client.Value(newAuthority(t).url) // the page's is not there
	if shown := d.opens(patch); shown.Claim.MustGet() != "org_id" {
		t.Errorf("%+v", shown)
	}
	_, table, _ := strings.Cut(page, "## Tools")
	table, _, _ = strings.Cut(table, "## Events")
	for _, name := range toolNames(t, w.hosted(d.key, "/mcp?allow_write=true")) {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/mcp.md does not name %s", name)
		}
	}
}
