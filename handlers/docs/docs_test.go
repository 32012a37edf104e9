package docs_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	pages "posthorn/docs"
	"posthorn/domain/catalogue"
	"posthorn/handlers"
	"posthorn/handlers/api"
	"posthorn/handlers/docs"
)

// routes are shared: all tests read the same pages, which are made once.
var routes = sync.OnceValue(func() []handlers.Route { return docs.Routes(docs.Deps{BaseURL: "https://posthorn.example.com"}) })

// server is the documentation alone.
func server(t *testing.T) func(path string) (int, string) {
	t.Helper()
	kit := handlers.New(handlers.Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	engine := kit.NewEngine()
	kit.Mount(engine, routes())
	return func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/html")
		engine.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

func contract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.Contract)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

var hrefs = regexp.MustCompile(`href="([^"]+)"`)

func TestEveryLinkOfTheDocumentationLeadsSomewhere(t *testing.T) {
	t.Parallel()
	get := server(t)
	seen, left := map[string]string{}, []string{"/docs"}
	for len(left) > 0 {
		path := left[0]
		left = left[1:]
		status, body := get(path)
		if status != http.StatusOK {
			t.Errorf("%s answers %d", path, status)
		}
		if seen[path] = body; len(body) > 112<<10 {
			t.Errorf("%s has %d KB of HTML", path, len(body)>>10)
		}
		for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if !strings.HasPrefix(target, "/docs") && !strings.HasPrefix(target, "/api") && !strings.HasPrefix(target, "/llms") {
				if target != "" && target != "/" && !strings.HasPrefix(target, "https://") && !strings.HasPrefix(target, "/static/") {
					t.Errorf("%s links to %s", path, m[1])
				}
				continue
			}
			if _, ok := seen[target]; !ok && strings.HasPrefix(target, "/docs") {
				seen[target] = ""
				left = append(left, target)
			}
		}
	}
	for path, body := range seen {
		for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
			target, anchor, ok := strings.Cut(m[1], "#")
			if target == "" {
				target = path
			}
			if page, known := seen[target]; ok && known && anchor != "main" && !strings.Contains(page, `id="`+anchor+`"`) {
				t.Errorf("%s links to %s, where there is no such place", path, m[1])
			}
		}
	}
	files, err := fs.Glob(pages.Pages, "*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := seen["/docs/"+strings.TrimSuffix(file, ".md")]; !ok {
			t.Errorf("nothing leads to docs/%s", file)
		}
	}
}

// operationPages are the pages of the reference's operations, by id.
func operationPages(t *testing.T, get func(string) (int, string)) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, item := range contract(t).Paths.Map() {
		for _, op := range item.Operations() {
			path := "/docs/api/" + strings.ReplaceAll(op.Tags[0], " ", "-") + "/" + op.OperationID
			status, body := get(path)
			if status != http.StatusOK {
				t.Errorf("%s: %d", path, status)
			}
			pages[op.OperationID] = body
		}
	}
	return pages
}

func TestTheReferenceShowsEveryOperationWithItsFieldsAndScope(t *testing.T) {
	t.Parallel()
	pages := operationPages(t, server(t))
	for path, item := range contract(t).Paths.Map() {
		for method, op := range item.Operations() {
			_, section, _ := strings.Cut(pages[op.OperationID], `id="`+op.OperationID+`"`)
			section, _, _ = strings.Cut(section, "</section>")
			if !strings.Contains(section, method) || !strings.Contains(section, "/api/v1"+path) {
				t.Errorf("%s %s is not shown", method, path)
			}
			if scope, _ := op.Extensions["x-scope"].(string); !strings.Contains(section, scope) {
				t.Errorf("%s: the scope %s is not shown", op.OperationID, scope)
			}
			for _, p := range append(op.Parameters, item.Parameters...) {
				if !strings.Contains(section, "<code>"+p.Value.Name+"</code>") {
					t.Errorf("%s: the parameter %s is not shown", op.OperationID, p.Value.Name)
				}
			}
			if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
				continue
			}
			for name := range op.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
				if !strings.Contains(section, "<code>"+name+"</code>") {
					t.Errorf("%s: the field %s is not shown", op.OperationID, name)
				}
			}
		}
	}
	if len(pages) < 40 {
		t.Errorf("%d operations: were they read?", len(pages))
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

func TestEveryProblemHasItsPage(t *testing.T) {
	t.Parallel()
	get := server(t)
	status, body := get("/docs/errors/idempotency_conflict")
	if status != http.StatusOK || !strings.Contains(body, "The key was used within the last 24 hours with a different body.") || strings.Contains(body, "event_type_exists") {
		t.Errorf("%d %s", status, body)
	}
	source, err := fs.ReadFile(pages.Pages, "errors.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile("(?m)^### `([a-z_0-9]+)`$").FindAllStringSubmatch(string(source), -1)
	for _, c := range codes {
		status, body := get("/docs/errors/" + c[1])
		if status != http.StatusOK {
			t.Errorf("/docs/errors/%s answers %d", c[1], status)
		}
		said := map[string]bool{}
		for _, part := range []string{"cause", "example", "fix", "related"} {
			_, text, _ := strings.Cut(body, `<h2 id="`+part+`">`)
			_, text, _ = strings.Cut(text, "</h2>")
			text, _, _ = strings.Cut(text, "<h2 ")
			text = strings.TrimSpace(tags.ReplaceAllString(text, ""))
			if len(text) < 10 || said[text] {
				t.Errorf("/docs/errors/%s has the %s %q", c[1], part, text)
			}
			said[text] = true
		}
	}
	if len(codes) < 50 {
		t.Errorf("%d codes: were they read?", len(codes))
	}
	for _, path := range []string{"/docs/errors/no_such_code", "/docs/nothing", "/docs/api/nothing", "/docs/adr/nothing", "/docs/..%2f"} {
		if status, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

func TestTheContractIsServedInBothForms(t *testing.T) {
	t.Parallel()
	get := server(t)
	for _, path := range []string{"/api/openapi.yaml", "/api/openapi.json"} {
		status, body := get(path)
		doc, err := openapi3.NewLoader().LoadFromData([]byte(body))
		if status != http.StatusOK || err != nil || doc.Paths.Len() != contract(t).Paths.Len() {
			t.Errorf("%s: %d, %v", path, status, err)
		}
		if strings.HasSuffix(path, ".json") && !json.Valid([]byte(body)) {
			t.Error("it is no JSON")
		}
	}
}

func TestTheCatalogueIsShownWhereItIsPublic(t *testing.T) {
	t.Parallel()
	on := false
	kit := handlers.New(handlers.Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	engine := kit.NewEngine()
	kit.Mount(engine, docs.Routes(docs.Deps{
		BaseURL: "https://posthorn.example.com",
		Catalogue: func(context.Context) ([]catalogue.Entry, bool, error) {
			return []catalogue.Entry{{Name: "order.completed", Description: "Paid <b>now</b>", Schema: []byte(`{"type":"object"}`), Deprecated: true}}, on, nil
		},
	}))
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/html")
		engine.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if status, _ := get("/docs/catalogue"); status != http.StatusNotFound {
		t.Errorf("not public, it answers %d", status)
	}
	on = true
	status, body := get("/docs/catalogue")
	if status != http.StatusOK || !strings.Contains(body, "order.completed") || !strings.Contains(body, "deprecated") || strings.Contains(body, "<b>now") {
		t.Errorf("%d %s", status, body)
	}
	if _, front := get("/docs"); !strings.Contains(front, `href="/docs/catalog"`) {
		t.Error("nothing leads to it")
	}
}
