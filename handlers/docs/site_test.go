package docs_test

import (
	"encoding/json"
	"html"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"

	pages "posthorn/docs"
	"posthorn/domain/access"
)

func TestTheLandingPageHasADoorForEachReader(t *testing.T) {
	t.Parallel()
	status, body := server(t)("/docs")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	for _, want := range []string{
		"<h2>Send events</h2>", "<h2>Receive webhooks</h2>", "<h2>Operate Posthorn</h2>", `href="/docs/quickstart"`, `href="/docs/api"`, `href="/llms.txt"`,
		`<a class="btn btn-small" href="/">Dashboard</a>`, `action="/docs/search"`, `action="/theme"`, `href="/docs/api/events/emitEvent"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the landing page lacks %s", want)
		}
	}
}

func TestAMissingPageLeadsBackToTheDocumentation(t *testing.T) {
	t.Parallel()
	status, body := server(t)("/docs/nothing")
	if status != http.StatusNotFound || !strings.Contains(body, "It starts at /docs.") || !strings.Contains(body, `href="/docs"`) ||
		strings.Contains(body, "go back to the dashboard") {
		t.Errorf("%d: %s", status, body)
	}
}

func TestEveryGuideIsInTheNavigation(t *testing.T) {
	t.Parallel()
	_, body := server(t)("/docs/quickstart")
	for _, glob := range []string{"*.md", "ops/*.md"} {
		files, err := fs.Glob(pages.Pages, glob)
		if err != nil || len(files) == 0 {
			t.Fatal(glob, err)
		}
		for _, file := range files {
			if path := "/docs/" + strings.TrimSuffix(file, ".md"); !strings.Contains(body, `href="`+path+`"`) {
				t.Errorf("the navigation has no %s", path)
			}
		}
	}
}

func TestSearchFindsSectionsWithAndWithoutAScript(t *testing.T) {
	t.Parallel()
	get := server(t)
	for query, path := range map[string]string{
		"idempotency_conflict":         "/docs/errors#idempotency_conflict",
		"rotate secret":                "/docs/delivery#secret-rotation",
		"ROTATE Secrets":               "/docs/delivery#secret-rotation",
		"retry schedule":               "/docs/delivery#retries",
		"verify signature node":        "/docs/verify#by-hand-in-node",
		"idempotency":                  "/docs/delivery#guarantees",
		"ip allowlist":                 "/docs/status#addresses-that-requests-come-from",
		"why was my endpoint disabled": "/docs/health#when-it-is-disabled",
		"ordering":                     "/docs/delivery#guarantees",
		"replay missing events":        "/docs/replay#an-endpoint-never-received-some-events",
		"iframe":                       "/docs/portal#without-the-component",
		"embed iframe zzz":             "/docs/portal#without-the-component", // a word that nothing has is left out
	} {
		_, body := get("/docs/search?q=" + strings.ReplaceAll(query, " ", "+"))
		first := regexp.MustCompile(`<ol class="docs-results">\s*<li>\s*<a href="([^"]+)"`).FindStringSubmatch(body)
		if first == nil || first[1] != path || !strings.Contains(body, "<mark>") {
			t.Errorf("%q finds %q first, and not %s", query, first, path)
		}
		var quick []struct{ Title, Page, Path string }
		_, body = get("/docs/search.json?q=" + strings.ReplaceAll(query, " ", "+"))
		if err := json.Unmarshal([]byte(body), &quick); err != nil || len(quick) == 0 || quick[0].Path != path || quick[0].Title == "" {
			t.Errorf("%q, while it is typed, finds %v, %v", query, quick, err)
		}
	}
	if _, body := get("/docs/search?q=%3Czzz%3E"); !strings.Contains(body, "No results for “&lt;zzz&gt;”") {
		t.Error("an empty result does not say so")
	}
}

// Every section of the index is a place of its page.
func TestEverySearchResultLeadsToASection(t *testing.T) {
	t.Parallel()
	get := server(t)
	pages, seen := map[string]string{}, 0
	for _, query := range []string{"the", "endpoint", "event", "delivery", "tenant", "key", "database", "error", "secret", "replay"} {
		_, body := get("/docs/search?q=" + query)
		for _, m := range regexp.MustCompile(`<li>\s*<a href="(/docs[^"]*)"`).FindAllStringSubmatch(body, -1) {
			path, anchor, ok := strings.Cut(m[1], "#")
			if pages[path] == "" {
				status, page := get(path)
				if pages[path] = page; status != http.StatusOK {
					t.Errorf("%s: %d", path, status)
				}
			}
			if seen++; ok && !strings.Contains(pages[path], `id="`+anchor+`"`) {
				t.Errorf("the search leads to %s, where there is no such place", m[1])
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d results were seen", seen)
	}
}

func TestEveryPageHasADescriptionAndIsServedAsMarkdown(t *testing.T) {
	t.Parallel()
	get := server(t)
	alternate := regexp.MustCompile(`rel="alternate" type="text/markdown" href="([^"]+)"`)
	described := regexp.MustCompile(`<meta name="description" content="[^"]{20,}"`)
	for path, want := range map[string]string{
		"/docs/verify":               "# ",
		"/docs/ops/deploy":           "# ",
		"/docs/errors/key_missing":   "## Fix",
		"/docs/api":                  "Authorization: Bearer",
		"/docs/api/events":           "/docs/api/events/emitEvent.md",
		"/docs/api/events/emitEvent": "## Python",
	} {
		_, body := get(path)
		m := alternate.FindStringSubmatch(body)
		if m == nil || !described.MatchString(body) {
			t.Errorf("%s has no description, or no Markdown", path)
			continue
		}
		if status, text := get(html.UnescapeString(m[1])); status != http.StatusOK || !strings.HasPrefix(text, "# ") ||
			!strings.Contains(text, want) {
			t.Errorf("%s: %d %.200s", m[1], status, text)
		}
	}
	for _, path := range []string{"/docs/nothing.md", "/docs/api/nothing.md", "/docs/api/events/nothing.md", "/docs/errors/nothing.md", "/docs/ops/nothing.md"} {
		if status, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

func TestLanguageModelsGetAListAndAllPages(t *testing.T) {
	t.Parallel()
	get := server(t)
	_, short := get("/llms.txt")
	for _, m := range regexp.MustCompile(`\(https://posthorn\.example\.com(/docs[^)]*)\)`).FindAllStringSubmatch(short, -1) {
		if status, _ := get(m[1]); status != http.StatusOK {
			t.Errorf("llms.txt names %s: %d", m[1], status)
		}
	}
	if strings.Count(short, "https://posthorn.example.com/docs/") < 40 {
		t.Errorf("llms.txt: %s", short)
	}
	if _, full := get("/llms-full.txt"); !strings.Contains(full, "# Verify") || !strings.Contains(full, "POST /api/v1/events") {
		t.Errorf("llms-full.txt has %d bytes", len(full))
	}
}

func TestCodeIsHighlightedByClassesAndReadsAsBefore(t *testing.T) {
	t.Parallel()
	get := server(t)
	for _, path := range []string{"/docs/verify", "/docs/program", "/docs/performance", "/docs/ops/deploy", "/docs/outbox"} {
		_, body := get(path)
		if strings.Contains(body, " style=") {
			t.Errorf("%s has an inline style", path)
		}
		if path != "/docs/performance" && !strings.Contains(body, `<span class="tok-string">`) {
			t.Errorf("%s is not highlighted", path)
		}
	}
	_, page := get("/docs/verify")
	_, source := get("/docs/verify.md")
	shown := regexp.MustCompile(`(?s)<pre tabindex="0"><code>(.*?)</code></pre>`).FindAllStringSubmatch(page, -1)
	written := regexp.MustCompile("(?s)\n```[^\n]*\n(.*?)```").FindAllStringSubmatch(source, -1)
	if len(shown) != len(written) {
		t.Fatalf("%d blocks are shown, %d are written", len(shown), len(written))
	}
	for i := range shown {
		if got := html.UnescapeString(tags.ReplaceAllString(shown[i][1], "")); got != written[i][1] {
			t.Errorf("block %d reads\n%s\nwant\n%s", i, got, written[i][1])
		}
	}
}

func TestEveryScopeIsExplained(t *testing.T) {
	t.Parallel()
	_, body := server(t)("/docs/authentication")
	for _, scope := range append(access.TenantScopes(), access.TenantsWrite) {
		if !strings.Contains(body, "<code>"+string(scope)+"</code>") {
			t.Errorf("the scope %s is not explained", scope)
		}
	}
}
