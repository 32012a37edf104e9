package api_test

import (
	"encoding/json"
	"fmt"
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
)

// fuzzTime is how long TestNoRequestMakesTheServerFail goes on, unless POSTHORN_FUZZ gives another time span.
const fuzzTime = 6 * time.Second

// fuzzer makes requests out of the contract, most of them wrong in one place.
type fuzzer struct {
	*rand.Rand
	ids map[string][]string // of path parameters: some that exist
}

// chance is true once in n times, on average.
func (f *fuzzer) chance(n int) bool { return f.IntN(n) == 0 }

func pick[T any](f *fuzzer, from ...T) T { return from[f.IntN(len(from))] }

// nasty are texts that programs stumble over.
var nasty = []string{
	"", " ", "null", "0", "-1", "true", "'", `"`, "\\", "%", "%00", "%s%n", "\x00", "\xff\xfe", "\ud7ff\uffff", "..", "../..", "/", "//", "\r\nX: y", "\u202e",
	"9223372036854775808", "-9223372036854775809", "1e400", "NaN", "2026-02-30T25:61:61Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59",
	"ep_", "ep_00000000000000000000000000", "evt_7zzzzzzzzzzzzzzzzzzzzzzzzz", "evt_zzzzzzzzzzzzzzzzzzzzzzzzzz", strings.Repeat("a", 300), strings.Repeat("ä", 5000), "$(id)", "'; DROP TABLE posthorn.events; --", "{{7*7}}", "*", "*.*", "a..b", "🪤",
	"order.completed", "data.a > 1", "data.map(x, data.map(y, y))", "((((((((((", "https://example.com", "https://127.0.0.1/", "whsec_", "whsec_AAAA", "standard", "key",
}

// value makes a value of a schema; where wrong falls on it, one that is none.
func (f *fuzzer) value(s *openapi3.SchemaRef, wrong, depth int) any {
	if s == nil || s.Value == nil || depth > 8 {
		return f.anything(2)
	}
	if wrong > 0 && f.chance(wrong) {
		return f.anything(3)
	}
	v := s.Value
	switch {
	case len(v.OneOf) > 0:
		return f.value(pick(f, v.OneOf...), wrong, depth+1)
	case len(v.AllOf) > 0:
		whole := map[string]any{}
		for _, part := range v.AllOf {
			one := f.value(part, wrong, depth+1)
			object, ok := one.(map[string]any)
			if !ok {
				return one
			}
			for name, value := range object {
				whole[name] = value
			}
		}
		return whole
	case len(v.Enum) > 0:
		return pick(f, v.Enum...)
	case v.Example != nil && !f.chance(3):
		return v.Example
	case v.Type == nil || len(*v.Type) == 0:
		return f.anything(3)
	}
	switch pick(f, *v.Type...) {
	case "object":
		return f.object(v, wrong, depth)
	case "array":
		return f.array(v, wrong, depth)
	case "integer", "number":
		low, high := 0.0, 1000.0
		if v.Min != nil {
			low = *v.Min
		}
		if v.Max != nil {
			high = *v.Max
		}
		return int64(low + f.Float64()*(high-low))
	case "boolean":
		return f.chance(2)
	case "null":
		return nil
	}
	return f.text(v)
}

func (f *fuzzer) object(v *openapi3.Schema, wrong, depth int) any {
	object := map[string]any{}
	for name, property := range v.Properties {
		if slices.Contains(v.Required, name) || f.chance(2) {
			object[name] = f.value(property, wrong, depth+1)
		}
	}
	if len(v.Required) > 0 && wrong > 0 && f.chance(wrong) {
		delete(object, pick(f, v.Required...))
	}
	if v.AdditionalProperties.Schema != nil {
		for range f.IntN(4) {
			object[pick(f, nasty...)] = f.value(v.AdditionalProperties.Schema, wrong, depth+1)
		}
	} else if wrong > 0 && f.chance(wrong) {
		object[pick(f, nasty...)] = f.anything(2)
	}
	return object
}

func (f *fuzzer) array(v *openapi3.Schema, wrong, depth int) any {
	list := []any{}
	for range int(v.MinItems) + f.IntN(3) {
		list = append(list, f.value(v.Items, wrong, depth+1))
	}
	if wrong > 0 && v.MaxItems != nil && *v.MaxItems < 200 && f.chance(wrong) {
		for uint64(len(list)) <= *v.MaxItems {
			list = append(list, f.value(v.Items, 0, depth+1))
		}
	}
	return list
}

func (f *fuzzer) text(v *openapi3.Schema) string {
	if v.Format == "date-time" {
		return time.Now().Add(time.Duration(f.Int64N(int64(90*24*time.Hour))) - 45*24*time.Hour).UTC().Format(time.RFC3339)
	}
	if f.chance(2) {
		return pick(f, "order.completed", "order.*", "shop", "Acme", "a", "x-1")
	}
	length := int(v.MinLength) + f.IntN(20)
	if v.MaxLength != nil {
		length = min(length, int(*v.MaxLength))
	}
	return strings.Repeat("b", length)
}

// anything is some JSON.
func (f *fuzzer) anything(depth int) any {
	switch f.IntN(9) {
	case 0:
		return nil
	case 1:
		return f.chance(2)
	case 2:
		return pick[any](f, 0, -1, 1<<31, 1e18, -1e300, 0.1)
	case 3, 4, 5:
		return strings.ToValidUTF8(pick(f, nasty...), "?")
	case 6:
		deep := any("bottom")
		for range 100 {
			deep = []any{deep}
		}
		return pick(f, deep, any([]any{}))
	}
	if depth == 0 {
		return map[string]any{}
	}
	return map[string]any{strings.ToValidUTF8(pick(f, nasty...), "?"): f.anything(depth - 1), "a": []any{f.anything(depth - 1)}}
}

// body is what is sent: JSON as it should be, or wrong in its fields, or no JSON at all.
func (f *fuzzer) body(s *openapi3.SchemaRef) string {
	text, err := json.Marshal(f.value(s, pick(f, 0, 4, 12), 0))
	if err != nil {
		return "{"
	}
	body := string(text)
	if f.chance(12) {
		return pick(f, "", "null", "[]", "{", body[:len(body)/2], body+body, "\xff"+body, `{"a":1,"a":1}`, `{"url":"\ud83d"}`, strings.Repeat("[", 5000), strings.Repeat(" ", 2<<20),
			strings.Replace(body, "{", `{"data":1,"data":2,`, 1), strings.Replace(body, `"`, "\"\x00", 1))
	}
	return body
}

// request makes a request for an operation.
func (f *fuzzer) request(method, path string, item *openapi3.PathItem, op *openapi3.Operation) *http.Request {
	query, header := url.Values{}, http.Header{}
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		text := pick(f, nasty...)
		if !f.chance(6) {
			text = strings.Trim(fmt.Sprint(f.value(p.Value.Schema, 0, 0)), "[]")
		}
		switch p.Value.In {
		case "path":
			if ids := f.ids[p.Value.Name]; len(ids) > 0 && !f.chance(6) {
				text = pick(f, ids...)
			}
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(text))
		case "query":
			if f.chance(3) {
				query.Add(p.Value.Name, text)
			}
		case "header":
			if f.chance(2) && !strings.ContainsAny(text, "\r\n\x00") {
				header.Set(p.Value.Name, text)
			}
		}
	}
	if f.chance(20) {
		query.Add(pick(f, nasty...), pick(f, nasty...))
	}
	body := ""
	if op.RequestBody != nil && op.RequestBody.Value.Content["application/json"] != nil {
		body = f.body(op.RequestBody.Value.Content["application/json"].Schema)
		header.Set("Content-Type", "application/json")
	} else if f.chance(10) {
		body = pick(f, "{}", "null", "x", `{"a":1}`)
	}
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = unescaped(path), path, query.Encode()
	if f.chance(30) {
		r.URL.RawQuery = pick(f, "%zz", "a=%", ";", "&&&", "limit", "limit=1&limit=2", "cursor=AAAA")
	}
	r.RequestURI = r.URL.RequestURI()
	r.Header = header
	return r
}

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// exists makes some objects and returns their ids by the names of path parameters. The caller's own key and tenant are not
// among them.
func exists(w *world, t, other tenant) map[string][]string {
	endpoint := w.do("POST", "/api/v1/endpoints", t.key, `{"url":"https://hooks.example.com/a"}`).want(http.StatusCreated).text("id")
	ids := map[string][]string{"endpoint_id": {endpoint}, "tenant_id": {other.id}, "name": {"order.completed", "order.placed"}}
	ids["key_id"] = []string{w.do("POST", "/api/v1/keys", t.key, `{"name":"spare","scopes":["events:read"]}`).want(http.StatusCreated).text("id")}
	w.do("POST", "/api/v1/event-types", t.key, `{"name":"order.completed"}`).want(http.StatusCreated)
	for i := range 5 {
		event := w.do("POST", "/api/v1/events", t.key, `{"type":"order.completed","data":`+strconv.Itoa(i)+`}`).want(http.StatusAccepted).text("id")
		ids["event_id"] = append(ids["event_id"], event)
		var page struct{ Data []struct{ ID string } }
		w.do("GET", "/api/v1/events/"+event+"/deliveries", t.key, nil).want(http.StatusOK).into(&page)
		for _, d := range page.Data {
			ids["delivery_id"] = append(ids["delivery_id"], d.ID)
		}
	}
	return ids
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
	w := newWorld(t)
	acting, other := w.tenant("acting"), w.tenant("other")
	f := &fuzzer{Rand: rand.New(rand.NewPCG(seed, 0)), ids: exists(w, acting, other)}
	type target struct {
		method, path string
		item         *openapi3.PathItem
		op           *openapi3.Operation
	}
	var targets []target
	for path, item := range theContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			if ok := op.Responses.Value("200"); ok != nil && ok.Value.Content["text/event-stream"] != nil {
				continue // it would not end
			}
			targets = append(targets, target{method, path, item, op})
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.method+a.path, b.method+b.path) })
	asked, taken := 0, map[string]int{}
	for end := time.Now().Add(lasts); time.Now().Before(end) && !t.Failed(); {
		for _, at := range targets {
			key, path := acting.key, "/api/v1"+at.path
			if _, platform := at.op.Extensions["x-platform"]; platform || len(at.item.Servers) == 0 && f.chance(4) {
				key = w.platform
				if !platform {
					path = "/api/v1/tenants/" + acting.id + at.path
				}
			}
			r := f.request(at.method, path, at.item, at.op)
			r.Header.Set("Authorization", "Bearer "+key)
			a, recorder := w.serve(r)
			asked++
			if a.Status < 300 {
				taken[at.op.OperationID]++
			}
			if a.Status >= 500 && a.Status != http.StatusServiceUnavailable {
				t.Errorf("seed %d: %s %s answered %d: %s\n%s", seed, r.Method, r.RequestURI, a.Status, a.Body, w.log)
			}
			holdToContract(t, r, recorder)
		}
	}
	if asked < len(targets) || len(taken) < len(targets)/2 {
		t.Errorf("%d requests, %d of %d operations took one: that tries too little", asked, len(taken), len(targets))
	}
	t.Logf("%d requests, of which %d operations took some", asked, len(taken))
}
