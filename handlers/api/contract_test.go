package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"go.yaml.in/yaml/v3"

	"posthorn/handlers/api"
	"posthorn/handlers/readers"
)

// contract is openapi.yaml, read and checked once.
var contract = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	for _, schema := range doc.Components.Schemas {
		allowNull(schema)
	}
	return doc, doc.Validate(context.Background())
})

// allowNull permits null where a schema has no type. JSON Schema does; the checker does not.
func allowNull(s *openapi3.SchemaRef) {
	if s == nil || s.Value == nil || s.Ref != "" {
		return
	}
	v := s.Value
	if v.Type == nil && len(v.AllOf)+len(v.OneOf)+len(v.AnyOf)+len(v.Enum) == 0 {
		v.Type = &openapi3.Types{"object", "array", "string", "number", "boolean", "null"}
	}
	for _, part := range slices.Concat(v.AllOf, v.OneOf, v.AnyOf) {
		allowNull(part)
	}
	for _, property := range v.Properties {
		allowNull(property)
	}
	allowNull(v.Items)
}

func theContract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

type promised struct {
	scope    string
	platform bool
}

// promises lists every method and path of the contract, with the prefixes of its servers.
func promises(t *testing.T, doc *openapi3.T) map[string]promised {
	t.Helper()
	out := map[string]promised{}
	for path, item := range doc.Paths.Map() {
		servers := doc.Servers
		if len(item.Servers) > 0 {
			servers = item.Servers
		}
		for _, server := range servers {
			for method, op := range item.Operations() {
				scope, ok := op.Extensions["x-scope"].(string)
				if !ok {
					t.Errorf("%s %s has no x-scope", method, path)
				}
				_, platform := op.Extensions["x-platform"]
				full := server.URL + path
				out[method+" "+full] = promised{scope, platform || strings.Contains(server.URL, "{tenant_id}")}
			}
		}
	}
	return out
}

// ginPath writes a path of the contract as the router does.
func ginPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func TestRoutesAndContractNameTheSame(t *testing.T) {
	t.Parallel()
	want := map[string]promised{}
	for k, v := range promises(t, theContract(t)) {
		want[ginPath(k)] = v
	}
	got := map[string]promised{}
	for _, r := range api.Routes(api.Deps{}, readers.Routes) {
		name := r.Method + " " + r.Path
		if _, twice := got[name]; twice {
			t.Errorf("%s is in the table twice", name)
		}
		if r.Access.Public {
			t.Errorf("%s is public", name)
		}
		got[name] = promised{string(r.Access.Scope), r.Access.Platform}
	}
	for name, p := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("the contract promises %s, no route serves it", name)
		} else if g != p {
			t.Errorf("%s: the contract says %+v, the route %+v", name, p, g)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is served and not in the contract", name)
		}
	}
	if len(got) < 60 {
		t.Errorf("%d routes: were they read?", len(got))
	}
}

func TestOperationsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var names []string
	for _, item := range theContract(t).Paths.Map() {
		for _, op := range item.Operations() {
			names = append(names, op.OperationID)
		}
	}
	sort.Strings(names)
	if once := slices.Compact(slices.Clone(names)); len(once) != len(names) || names[0] == "" {
		t.Errorf("operation ids repeat or are missing: %v", names)
	}
}

// contractRouter finds the operation of a request.
var contractRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := contract()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// The checker's own decoder rejects two members of one name where it is built with a newer Go. A payload can have them.
func init() {
	openapi3filter.RegisterBodyDecoder("application/json", func(
		body io.Reader,
		_ http.Header,
		_ *openapi3.SchemaRef,
		_ openapi3filter.EncodingFn,
	) (v any, err error) {
		decoder := json.NewDecoder(body)
		decoder.UseNumber()
		err = decoder.Decode(&v)
		return v, err
	})
}

// holdToContract fails the test if a response differs from the contract.
func holdToContract(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	router, err := contractRouter()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		return // a path or method that is not in the contract, on purpose
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 w.Code,
		Header:                 w.Header(),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: w.Code == http.StatusOK && isData(route.Operation)},
	}
	input.SetBodyBytes(bytes.Clone(w.Body.Bytes()))
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	holdToProblems(t, route.Operation, w)
}

// isData reports whether a response is what a producer emitted, in its content type.
func isData(op *openapi3.Operation) bool {
	ok := op.Responses.Status(http.StatusOK)
	return ok != nil && ok.Value.Content["*/*"] != nil
}

// refusal is an error in a response: of the whole request, of one field, or of one item.
type refusal struct {
	Code     string
	Errors   []refusal
	Warnings []refusal
	Problem  *refusal
	Results  []refusal
}

// codes are the codes of a refusal and of everything in it.
func (r *refusal) codes() []string {
	var codes []string
	if r.Code != "" {
		codes = append(codes, r.Code)
	}
	parts := slices.Concat(r.Errors, r.Warnings, r.Results)
	if r.Problem != nil {
		parts = append(parts, *r.Problem)
	}
	for i := range parts {
		codes = append(codes, parts[i].codes()...)
	}
	return codes
}

// holdToProblems fails the test if a response has a code that neither its operation nor the whole contract lists.
func holdToProblems(t *testing.T, op *openapi3.Operation, w *httptest.ResponseRecorder) {
	t.Helper()
	if kind := w.Header().Get("Content-Type"); kind != "application/json" && kind != "application/problem+json" {
		return
	}
	var said refusal
	if json.Unmarshal(w.Body.Bytes(), &said) != nil {
		return // its results or errors are of another kind
	}
	switch {
	case w.Code < 400:
		said = refusal{Warnings: said.Warnings, Results: said.Results}
	case w.Code == http.StatusConflict:
		said.Errors = nil // a field's code is its state
	}
	named := append(problemsOf(t, op.Extensions), problemsOf(t, theContract(t).Extensions)...)
	for _, code := range said.codes() {
		if !slices.Contains(named, code) {
			t.Errorf("%s answered %d with %s, which its x-problems do not name", op.OperationID, w.Code, code)
		}
	}
}

// problemsOf are the codes that a part of the contract lists.
func problemsOf(t *testing.T, extensions map[string]any) []string {
	t.Helper()
	list, ok := extensions["x-problems"].([]any)
	if !ok {
		t.Errorf("no x-problems in %v", extensions)
	}
	var codes []string
	for _, code := range list {
		codes = append(codes, code.(string))
	}
	return codes
}

// TestGeneratorsOfOtherPeopleReadTheContract holds two rules of generators: openapi-python-client drops operations
// where a type can be an array of unknown items, and openapi-typescript requires properties that have a default. make
// sdks compiles what generators make.
func TestGeneratorsOfOtherPeopleReadTheContract(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(api.Contract, &doc); err != nil || len(doc.Components.Schemas) < 100 {
		t.Fatalf("%d schemas, %v", len(doc.Components.Schemas), err)
	}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch n := node.(type) {
		case map[string]any:
			types, _ := n["type"].([]any)
			if _, known := n["items"]; !known && (n["type"] == "array" || slices.Contains(types, any("array"))) {
				t.Errorf("%s can be an array and has no items", at)
			}
			if value, given := n["default"]; given {
				t.Errorf("%s has the default %v: write it in the description", at, value)
			}
			for name, inner := range n {
				walk(at+"."+name, inner)
			}
		case []any:
			for _, inner := range n {
				walk(at, inner)
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		walk(name, schema)
	}
}

func TestEveryOperationNamesItsProblemsAndEachHasItsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := theContract(t)
	named := map[string]string{}
	for _, code := range problemsOf(t, doc.Extensions) {
		named[code] = "every operation"
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			list := problemsOf(t, op.Extensions)
			if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%s: its codes are not in order, each once: %v", op.OperationID, list)
			}
			for _, code := range list {
				if named[code] == "every operation" {
					t.Errorf("%s names %s, which every operation has", op.OperationID, code)
				}
			}
			for _, code := range list {
				if named[code] == "" {
					named[code] = op.OperationID
				}
			}
		}
	}
	for code, by := range named {
		if !strings.Contains(string(text), "### `"+code+"`") {
			t.Errorf("%s, named by %s, is not in docs/errors.md", code, by)
		}
	}
}

// parameterProblems are the codes of each query parameter, by name. Any other parameter has a few permitted values.
var parameterProblems = map[string]string{
	"stored_day": "stored_day_malformed",
	"principal":  "principal_malformed",
	"limit":      "limit_range",
	"cursor":     "cursor_invalid",
	"order":      "order_unknown",
	"status":     "status_unknown",
	"since":      "time_malformed",
	"until":      "time_malformed",
	"type":       "type_malformed",
	"channel":    "channel_malformed",
	"event_id":   "event_id_malformed",
	"trace_id":   "trace_id_malformed",
	"archived":   "archived_unknown",
	"action":     "action_malformed",
	"endpoint":   "",
	"job":        "id_malformed",
	"batch":      "id_malformed",
	"wait":       "wait_unknown",
	"condition":  "condition_unknown",
}

// feedProblems are those of the parameters of feeds, which have a cursor of their own.
var feedProblems = map[string]string{
	"cursor":      "feed_cursor_malformed",
	"lastEventId": "feed_cursor_malformed",
	"offset":      "feed_cursor_malformed",
	"wait":        "wait_range",
	"timeout":     "wait_range",
	"consumer":    "consumer_name_malformed",
	"start":       "start_malformed",
}

// hasTime reports whether a schema has a time anywhere.
func hasTime(s *openapi3.SchemaRef, seen map[string]bool) bool {
	if s == nil || s.Value == nil || seen[s.Ref] {
		return false
	}
	if s.Ref != "" {
		seen[s.Ref] = true
	}
	v := s.Value
	parts := slices.Concat(slices.Collect(maps.Values(v.Properties)), v.OneOf, v.AllOf, v.AnyOf, openapi3.SchemaRefs{v.Items, v.AdditionalProperties.Schema})
	return v.Format == "date-time" || slices.ContainsFunc(parts, func(part *openapi3.SchemaRef) bool { return hasTime(part, seen) })
}

// bodyProblems can come from any route that reads a body, and from routes that permit none.
var bodyProblems = []string{
	"body_incomplete", "body_too_large", "content_encoding_unsupported", "duplicate_field", "not_json", "not_object", "not_utf8", "too_deep", "unknown_field",
}

func TestEveryOperationNamesTheProblemsOfItsParametersAndItsBody(t *testing.T) {
	t.Parallel()
	for path, item := range theContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			var wanted []string
			for _, p := range slices.Concat(item.Parameters, op.Parameters) {
				if p.Value.In != openapi3.ParameterInQuery {
					continue
				}
				wanted = append(wanted, "duplicate_parameter", "query_malformed")
				if !strings.HasSuffix(path, "/feeds/{endpoint_id}/stream") { // the protocol of Durable Streams ignores others
					wanted = append(wanted, "unknown_parameter")
				}
				code, ok := parameterProblems[p.Value.Name]
				if own := feedProblems[p.Value.Name]; own != "" && strings.HasPrefix(path, "/feeds/") {
					code, ok = own, true
				}
				if !ok {
					code = "choice_unknown"
				}
				if code != "" {
					wanted = append(wanted, code)
				}
			}
			if method != http.MethodGet {
				wanted = append(wanted, bodyProblems...)
			}
			if op.RequestBody != nil {
				wanted = append(wanted, "field_type")
				if media := op.RequestBody.Value.Content["application/json"]; media != nil && hasTime(media.Schema, map[string]bool{}) {
					wanted = append(wanted, "time_malformed")
				}
			}
			named := problemsOf(t, op.Extensions)
			for _, code := range wanted {
				if !slices.Contains(named, code) {
					t.Errorf("%s does not name %s", op.OperationID, code)
				}
			}
		}
	}
}
