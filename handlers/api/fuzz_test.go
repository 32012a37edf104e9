package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
)

// fuzzTime is how long TestNoRequestMakesTheServerFail runs, unless POSTHORN_FUZZ sets another duration.
const fuzzTime = 6 * time.Second

// body is a request's body: correct JSON, JSON with wrong fields, or no JSON.
func (f *fuzzer) body(s *openapi3.SchemaRef, right bool) string {
	wrong := 0
	if !right {
		wrong = pick(f, 0, 4, 12)
	}
	text, err := json.Marshal(f.value("", s, wrong, 0))
	if err != nil {
		return "{"
	}
	body := string(text)
	if !right && f.chance(12) {
		return pick(f, "", "null", "[]", "{", body[:len(body)/2], body+body, "\xff"+body, `{"a":1,"a":1}`, `{"url":"\ud83d"}`, strings.Repeat("[", 5000),
			strings.Repeat(" ", 2<<20),
			strings.Replace(body, "{", `{"data":1,"data":2,`, 1), strings.Replace(body, `"`, "\"\x00", 1))
	}
	return body
}

// target is an operation of the contract.
type target struct {
	method, path string
	item         *openapi3.PathItem
	op           *openapi3.Operation
	stream       bool // it would not end
	own          bool // does not exist below a tenant's id for platform keys
	platform     bool
}

// targets are all operations of the contract.
func targets(t *testing.T) []target {
	t.Helper()
	var all []target
	for path, item := range theContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			at := target{method: method, path: path, item: item, op: op, own: len(item.Servers) > 0}
			_, at.platform = op.Extensions["x-platform"]
			ok := op.Responses.Value("200")
			at.stream = ok != nil && ok.Value.Content["text/event-stream"] != nil
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.method+a.path, b.method+b.path) })
	return all
}

// parameter is the text of a parameter.
func (f *fuzzer) parameter(p *openapi3.Parameter, path string, right bool) string {
	if !right && f.chance(6) {
		return pick(f, nasty...)
	}
	if one := f.id(p.Name, path); one != "" && p.In != openapi3.ParameterInHeader {
		return one
	}
	if p.Name == "cursor" && len(f.cursors) > 0 {
		return pick(f, f.cursors...)
	}
	if p.Name == "limit" && f.chance(2) {
		return "1" // so that there are cursors
	}
	return strings.Trim(fmt.Sprint(f.value(p.Name, p.Schema, 0, 0)), "[]")
}

// request makes a request for an operation. A right one violates nothing in the contract.
func (f *fuzzer) request(at target, path string, right bool) *http.Request {
	query, header := url.Values{}, http.Header{}
	for _, p := range slices.Concat(at.item.Parameters, at.op.Parameters) {
		text := f.parameter(p.Value, at.path, right)
		switch p.Value.In {
		case openapi3.ParameterInPath:
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(text))
		case openapi3.ParameterInQuery:
			if f.chance(3) && (!right || p.Value.Name != "cursor") {
				query.Add(p.Value.Name, text)
			}
		case openapi3.ParameterInHeader:
			if f.chance(2) && !right && !strings.ContainsAny(text, "\r\n\x00") {
				header.Set(p.Value.Name, text)
			}
		}
	}
	body := ""
	if at.op.RequestBody != nil {
		body = f.body(at.op.RequestBody.Value.Content["application/json"].Schema, right)
		header.Set("Content-Type", "application/json")
	} else if !right && f.chance(10) {
		body = pick(f, "{}", "null", "x", `{"a":1}`)
	}
	var reader io.Reader = strings.NewReader(body)
	if f.chance(10) {
		reader = onlyReader{reader} // in chunks
	}
	r := httptest.NewRequest(at.method, "/", reader)
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = unescaped(path), path, query.Encode()
	r.Header = header
	if !right {
		f.spoil(r, query)
	}
	r.RequestURI = r.URL.RequestURI()
	return r
}

// spoil adds what no operation expects.
func (f *fuzzer) spoil(r *http.Request, query url.Values) {
	if f.chance(20) {
		query.Add(pick(f, nasty...), pick(f, nasty...))
		r.URL.RawQuery = query.Encode()
	}
	if f.chance(30) {
		r.URL.RawQuery = pick(f, "%zz", "a=%", ";", "&&&", "limit", "limit=1&limit=2", "cursor=AAAA")
	}
	if f.chance(15) {
		text := strings.Map(func(c rune) rune {
			if c < ' ' {
				return -1
			}
			return c
		}, pick(f, nasty...))
		r.Header.Set(pick(f, "Idempotency-Key", "Last-Event-ID", "Content-Type", "Content-Encoding", "Accept", "X-Request-Id", "X-Forwarded-For", "If-None-Match"),
			pick(f, text, "gzip", "text/csv", "text/html", "*/*;q=x", "1"))
	}
	if f.chance(60) {
		r.ContentLength += 10 // and the body ends early
	}
}

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// exists creates some objects for requests to name.
func (f *fuzzer) exists(t, other tenant) {
	w := f.w
	for _, name := range []string{"order.completed", "order.placed"} {
		f.remember("name", name)
	}
	f.kept[t.id] = true
	for _, own := range ids(w.do("GET", "/api/v1/keys", t.key, nil).want(http.StatusOK)) {
		f.kept[own] = true
	}
	f.remember("ten", other.id)
	w.do("POST", "/api/v1/event-types", t.key, `{"name":"order.completed"}`).want(http.StatusCreated)
	hook := w.active(t, nil)
	f.remember("ep", hook)
	f.remember("hook", hook)
	w.do("PUT", "/api/v1/platform/egress-proxies/platform", w.platform, `{"type":"http","address":"proxy.example.com:3128"}`).want(http.StatusOK)
	for i := range 5 {
		own := w.do("POST", "/api/v1/endpoints", t.key, `{"url":"https://hooks.example.com/s"}`).want(http.StatusCreated).text("id")
		subscription := mcp.ID(own, "", "", "")
		w.SQL(`INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
			VALUES ($1, $2, $3, $4, 'order.completed', '{}', '', now() + interval '1 day')`, t.uuid.String(), subscription, w.uuid(id.Endpoint, own), strconv.Itoa(i))
		f.remember("subscription", subscription)
		f.remember("source", w.do("POST", "/api/v1/sources", t.key, `{"name":"s`+strconv.Itoa(i)+`","kind":"kafka","kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"a"}}`).want(http.StatusCreated).text("id"))
	}
	for i := range 5 {
		event := w.do("POST", "/api/v1/events", t.key, `{"type":"order.completed","data":`+strconv.Itoa(i)+`}`).want(http.StatusAccepted).text("id")
		f.remember("evt", event)
		for _, d := range ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", t.key, nil).want(http.StatusOK)) {
			f.remember("dlv", d)
			w.attempt(d, "", "hook")
			f.remember("att", w.outer(id.Attempt, one[string](w, "SELECT id::text FROM attempts WHERE delivery_id = $1", w.uuid(id.Delivery, d))))
		}
	}
	w.settle(f.ids["dlv"][0], 3, 1)
	w.settle(f.ids["dlv"][1], 2, 0)
	for i := range mostIDs {
		eventID := db.NewID()
		w.SQL("INSERT INTO outbox_rejected (id, tenant_id, type, data, code, detail) VALUES ($1, $2, 'order.placed', '1', 'a', 'b')", eventID.String(), t.uuid.String())
		f.remember("rejected_id", id.Event.Format(eventID))
		day := time.Date(2030, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		w.SQL("INSERT INTO history_days (tenant_id, day, state) VALUES ($1, $2::text::date, 'stored')", t.uuid.String(), day)
		f.remember("day", day)
		if i < 5 {
			f.remember("mem", w.member(t, fmt.Sprintf("%d@example.com", i), access.Developer))
		}
	}
	for range 5 { // chance can delete some of them
		feed := w.do("POST", "/api/v1/endpoints", t.key, `{"kind":"feed"}`).want(http.StatusCreated).text("id")
		f.remember("feed", feed)
		for i := range 5 {
			w.do("POST", "/api/v1/feeds/"+feed+"/consumers", t.key, fmt.Sprintf(`{"name":"reader-%d"}`, i)).want(http.StatusCreated)
		}
	}
	f.remember("place", "a-0")
	for i := range 5 {
		f.remember("consumer", fmt.Sprintf("reader-%d", i))
	}
	box := w.do("POST", "/api/v1/inboxes", t.key, nil).want(http.StatusCreated).text("id")
	f.remember("inbox", box)
	received := db.NewID()
	w.SQL(`INSERT INTO inbox_requests (tenant_id, endpoint_id, id, method, head, body, body_bytes, challenge, answer, good)
		SELECT tenant_id, endpoint_id, $2, 'POST', 'a: b', '1', 1, false, '200', true FROM inboxes WHERE endpoint_id = $1`, w.uuid(id.Endpoint, box), received.String())
	f.remember("rcv", id.Received.Format(received))
	f.remember("listener", w.do("POST", "/api/v1/listeners", t.key, `{}`).want(http.StatusCreated).text("id"))
}

// callers are the keys of the requests.
type callers struct {
	acting                tenant
	platform, weak, other string
}

// try sends one request and compares the response with the contract.
func (f *fuzzer) try(at target, by callers, right bool) (status int) {
	t := f.w.t
	t.Helper()
	key, path := by.acting.key, "/api/v1"+at.path
	if at.platform || !at.own && f.chance(4) {
		key = by.platform
		if !at.platform {
			named := by.acting.id
			if !right && f.chance(8) {
				named = pick(f, nasty...)
			}
			path = "/api/v1/tenants/" + url.PathEscape(named) + at.path
		}
	}
	if !right && f.chance(12) {
		key = pick(f, by.weak, by.other, by.platform, by.acting.key, "", "phk_", "Basic x", nasty[8])
	}
	r := f.request(at, path, right)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if at.stream {
		limit := 30 * time.Millisecond
		if strings.HasPrefix(at.path, "/feeds/") { // a page ends by itself
			limit = 500 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		r = r.WithContext(ctx)
	}
	a, recorder := f.w.serve(r)
	if a.Status >= 500 && a.Status != http.StatusServiceUnavailable {
		t.Errorf("%s %s answered %d: %s\n%s", r.Method, r.RequestURI, a.Status, a.Body, f.w.log)
	}
	if f.last = a; a.Status < 300 {
		f.learn(at.op, a.Body)
	}
	if !at.stream || a.Status != http.StatusOK {
		holdToContract(t, r, recorder)
	}
	return a.Status
}

// refuseAll are the operations that reject every request here: they need what this world lacks.
var refuseAll = map[string]string{
	"answerDelivery": "a worker's part, which hands deliveries out",
	"getCatalogue":   "an operator who shows the catalogue",

	"switchSecret":    "a secret whose rotation leaves it unsigned; secrets_test.go has one",
	"continueBulkJob": "a job that has sent a sample, which a worker does; bulk_sample_test.go has one",
	"checkSecret":     "an endpoint and a secret of it; secrets_test.go has one",
	"endSecret":       "as above",
	"extendSecret":    "as above",

	"revokeDeliveryShare": "a delivery and a link to it; shares_test.go has one",

	"getTenantSSO":    "a provider; sso_test.go has one",
	"updateTenantSSO": "as above",
	"removeTenantSSO": "as above",
}

// askRightly calls every operation until it has accepted a request, so that each is known to work. Reads come first
// and deletions last. Operations that need an object that does not exist yet are repeated.
func (f *fuzzer) askRightly(all []target, by callers) {
	t := f.w.t
	order := []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete}
	left := slices.Clone(all)
	slices.SortStableFunc(left, func(a, b target) int {
		return slices.Index(order, a.method) - slices.Index(order, b.method)
	})
	for round := 0; len(left) > 0 && !t.Failed(); round++ {
		left = slices.DeleteFunc(left, func(at target) bool {
			if refuseAll[at.op.OperationID] != "" {
				return true
			}
			for range 10 {
				if f.try(at, by, true) < 300 {
					return true
				}
			}
			if round == 20 {
				t.Errorf("%s takes no request; the last was answered %d: %s", at.op.OperationID, f.last.Status, f.last.Body)
			}
			return false
		})
	}
}

// askMore reads everything with a parameter that there is not, so that chance does not decide which lists are seen to
// name what they answer.
func (f *fuzzer) askMore(all []target, by callers) {
	for _, at := range all {
		if at.method != http.MethodGet || at.stream {
			continue
		}
		key := by.acting.key
		if at.platform {
			key = by.platform
		}
		r := f.request(at, "/api/v1"+at.path, true)
		r.URL.RawQuery = "no_such=1&no_such=2"
		r.Header.Set("Authorization", "Bearer "+key)
		_, recorder := f.w.serve(r)
		holdToContract(f.w.t, r, recorder)
	}
}

func TestNoRequestMakesTheServerFail(t *testing.T) {
	t.Parallel()
	lasts, seed := fuzzTime, uint64(1)
	if text := os.Getenv("POSTHORN_FUZZ"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		lasts, seed = d, uint64(time.Now().UnixNano())
	}
	t.Logf("the seed is %d", seed)
	w := newWorld(t)
	by := callers{acting: w.tenant("acting"), platform: w.platform}
	other := w.tenant("other")
	by.other, by.weak = other.key, w.scoped(by.acting, access.EventsRead)
	f := &fuzzer{Rand: rand.New(rand.NewPCG(seed, 0)), w: w, ids: map[string][]string{}, kept: map[string]bool{}}
	f.exists(by.acting, other)
	all := targets(t)
	f.askRightly(all, by)
	f.askMore(all, by)
	asked := 0
	for end := time.Now().Add(lasts); !t.Failed() && (time.Now().Before(end) || asked < 2*len(all)); {
		for _, at := range all {
			if at.stream && !f.chance(3) {
				continue
			}
			f.try(at, by, f.chance(4))
			asked++
		}
	}
	t.Logf("%d requests to %d operations", asked, len(all))
}
