package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What identifies an object is read first: its id, then its kind, name, state, and what is shown only once.
func TestResponsesBeginWithWhatIdentifiesTheObject(t *testing.T) {
	t.Parallel()
	first := []string{"id", "kind", "name", "status", "state", "secret", "api_key"}
	file, err := parser.ParseFile(token.NewFileSet(), "types.gen.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isType := n.(*ast.TypeSpec)
		if !isType {
			return true
		}
		fields := jsonNames(spec.Type)
		// The results of a batch begin with what became of each item, and an author is no object of the API.
		if !slices.Contains(fields, "id") || slices.Contains([]string{"ItemResult", "ImportResult", "BulkAuthor"}, spec.Name.Name) {
			return true
		}
		checked++
		for _, name := range first {
			if at := slices.Index(fields, name); at > 4 || name == "id" && at != 0 {
				t.Errorf("%s shows %s at place %d of %q", spec.Name.Name, name, at+1, fields)
			}
		}
		return true
	})
	if checked < 20 {
		t.Errorf("only %d objects have an id", checked)
	}
}

// jsonNames are the names of a struct's fields in JSON, in order.
func jsonNames(of ast.Expr) (names []string) {
	s, isStruct := of.(*ast.StructType)
	if !isStruct {
		return nil
	}
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// What is written by hand keeps the order, too: the secret of a new endpoint is not at the end.
func TestANewEndpointBeginsWithItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.endpoint(w.tenant("Acme"), map[string]any{"event_types": []string{"order.*"}})
	want := `{"id":"` + made.text("id") + `","kind":"http","status":"unverified","secret":"` + made.text("secret") + `",`
	if !strings.HasPrefix(string(made.Body), want) || strings.Count(string(made.Body), `"id":`) != 1 {
		t.Errorf("it begins with %.200s", made.Body)
	}
}

// A person with curl reads lines; a program gets one. Nobody reads the escapes of HTML.
func TestResponsesAreIndentedForAPersonWithCurl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("Acme")
	for _, c := range []struct {
		accept   string
		indented bool
	}{
		{"*/*", true},
		{"application/json", false},
		{"application/json, text/plain, */*", false},
		{"", false},
	} {
		for _, one := range []*answer{
			w.do("GET", "/api/v1/tenant", a.key, nil, "Accept", c.accept).want(http.StatusOK),
			w.do("GET", "/api/v1/endpoints/ep_x", a.key, nil, "Accept", c.accept).want(http.StatusNotFound),
			w.do("GET", "/api/v1/tenant", "", nil, "Accept", c.accept).want(http.StatusUnauthorized),
			w.do("POST", "/api/v1/events", a.key, `{"type":"order.paid","data":{}}`, "Accept", c.accept).want(http.StatusAccepted),
		} {
			lines := strings.Count(string(one.Body), "\n")
			if (lines > 2) != c.indented || c.indented && !strings.Contains(string(one.Body), "\n  \"") {
				t.Errorf("%s with Accept %q: %s", one.what, c.accept, one.Body)
			}
			if strings.Contains(string(one.Body), `\u003`) {
				t.Errorf("%s has escapes of HTML: %s", one.what, one.Body)
			}
		}
	}
}
