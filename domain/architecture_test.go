// Package domain_test holds the house's import rules, so that a bare `go test ./...` refuses what the linter refuses.
package domain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "posthorn"

// A room is a top-level folder and what its code may import: `own` names the rooms below it, `driver` and `router` say
// whether it may know pgx and gin. A room that names `outside` may import those modules alone; nil leaves it free.
type room struct {
	own            []string
	driver, router bool
	outside        []string
}

var house = map[string]room{
	"web":      {own: []string{"handlers", "worker", "db", "views", "client", "domain", "static", "queries", "docs"}, driver: true, router: true},
	"handlers": {own: []string{"db", "views", "client", "domain", "static", "docs"}, router: true},
	"worker":   {own: []string{"db", "views", "client", "domain", "static"}, driver: true},
	"db":       {own: []string{"domain", "static", "queries"}, driver: true},
	"views":    {own: []string{"domain", "static"}, outside: []string{"github.com/a-h/templ"}},
	"client":   {own: []string{"domain", "static"}},
	"domain":   {outside: []string{}},
	"static":   {outside: []string{}},
	"queries":  {outside: []string{}},
	// Programs of the build and of its tests: the benchmark, the camera for pages and the gallery of components.
	"tools": {own: []string{"web", "handlers", "worker", "db", "views", "client", "domain", "static", "queries", "docs"}, driver: true, router: true},
	// Its examples are programs of other people, who may know the driver too.
	"docs": {driver: true, outside: []string{"github.com/standard-webhooks/standard-webhooks", "github.com/jackc/pgx", "github.com/twmb/franz-go"}},
}

// Names that say nothing about what a folder does.
var emptyNames = []string{"internal", "pkg", "util", "utils", "helper", "helpers", "common", "manager", "services", "models"}

// What domain packages may not import although it is the standard library: the clock, the outside and chance are handed
// in.
var impure = []string{"context", "database/sql", "math/rand", "math/rand/v2", "crypto/rand", "os", "os/exec"}

// refusal says why a package may not import another, or nothing where it may.
func refusal(from, to string) string {
	name, rest, _ := strings.Cut(strings.TrimPrefix(from, module+"/"), "/")
	here, known := house[name]
	if from == module || !known {
		return "is not in one of the house's rooms"
	}
	for folder := range strings.SplitSeq(rest, "/") {
		if slices.Contains(emptyNames, folder) {
			return "has a folder whose name says nothing"
		}
	}
	own, isOwn := strings.CutPrefix(to, module+"/")
	if isOwn {
		target, _, _ := strings.Cut(own, "/")
		if target != name && !slices.Contains(here.own, target) {
			return fmt.Sprintf("%s may not know %s", name, target)
		}
		return ""
	}
	first, _, _ := strings.Cut(to, "/")
	standard := !strings.Contains(first, ".")
	switch {
	case within(to, "github.com/jackc/pgx") && !here.driver:
		return "only db, worker and web know the driver"
	case within(to, "github.com/gin-gonic/gin") && !here.router:
		return "only handlers and web know the router"
	case name == "domain" && slices.Contains(impure, to):
		return "domain has no I/O, no clock, no chance of its own"
	case standard || here.outside == nil:
		return ""
	case within(from, module+"/domain/filter") && within(to, "cel.dev/cel-go"):
		return ""
	case within(from, module+"/domain/account") && within(to, "golang.org/x/net/idna"),
		within(from, module+"/domain/mail") && within(to, "golang.org/x/net"):
		return ""
	case within(from, module+"/domain/schema") && within(to, "github.com/santhosh-tekuri/jsonschema"):
		return ""
	case !slices.ContainsFunc(here.outside, func(allowed string) bool { return within(to, allowed) }):
		return name + " may not depend on this module"
	}
	return ""
}

func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, problems.String())
	}
	var found []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, one)
	}
	if len(found) < 5 {
		t.Fatalf("go list found %d packages: the rules were not tried", len(found))
	}
	return found
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for _, one := range packages(t) {
		for _, imported := range one.Imports {
			if why := refusal(one.ImportPath, imported); why != "" {
				t.Errorf("%s imports %s: %s", one.ImportPath, imported, why)
			}
		}
		// Tests may build on any library, to bring up databases and receivers; domain's tests alone know nothing above
		// domain.
		for _, imported := range append(one.TestImports, one.XTestImports...) {
			if within(one.ImportPath, module+"/domain") && within(imported, module) && !within(imported, module+"/domain") {
				t.Errorf("tests of %s import %s: domain knows nothing above itself", one.ImportPath, imported)
			}
		}
	}
}

func TestForbiddenImportsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"posthorn/handlers/api", "posthorn/worker", true},
		{"posthorn/handlers/api", "posthorn/worker/jobs", true},
		{"posthorn/handlers/api", "github.com/jackc/pgx/v5", true},
		{"posthorn/handlers/api", "posthorn/web", true},
		{"posthorn/handlers/api", "posthorn/db", false},
		{"posthorn/handlers/api", "github.com/gin-gonic/gin", false},
		{"posthorn/worker", "github.com/gin-gonic/gin/binding", true},
		{"posthorn/worker", "posthorn/handlers", true},
		{"posthorn/worker", "github.com/jackc/pgx/v5/pgxpool", false},
		{"posthorn/worker/mail", "posthorn/views/emails", false},
		{"posthorn/db", "posthorn/worker", true},
		{"posthorn/db", "posthorn/views", true},
		{"posthorn/db/dbtest", "github.com/jackc/pgx/v5", false},
		{"posthorn/views/pages", "posthorn/db", true},
		{"posthorn/views/pages", "github.com/gin-gonic/gin", true},
		{"posthorn/views/pages", "github.com/a-h/templ", false},
		{"posthorn/views/pages", "github.com/a-h/templating", true},
		{"posthorn/client", "posthorn/db", true},
		{"posthorn/client", "posthorn/domain/fault", false},
		{"posthorn/domain/retry", "posthorn/domain/fault", false},
		{"posthorn/domain/retry", "posthorn/static", true},
		{"posthorn/domain/retry", "github.com/google/uuid", true},
		{"posthorn/domain/retry", "context", true},
		{"posthorn/domain/retry", "math/rand/v2", true},
		{"posthorn/domain/retry", "time", false},
		{"posthorn/domain/retry", "cel.dev/cel-go/cel", true},
		{"posthorn/domain/filter", "cel.dev/cel-go/cel", false},
		{"posthorn/domain/filter", "cel.dev/cel-gone", true},
		{"posthorn/static", "posthorn/domain/id", true},
		{"posthorn/web", "posthorn/worker", false},
		{"posthorn/web/util", "fmt", true},
		{"posthorn/internal/x", "fmt", true},
		{"posthorn/pkg", "fmt", true},
		{"posthorn", "fmt", true},
	} {
		if why := refusal(c.from, c.to); (why != "") != c.refused {
			t.Errorf("%s importing %s: refused %t (%s), want %t", c.from, c.to, why != "", why, c.refused)
		}
	}
}

// Reading the clock needs no import that `time` for durations does not need too, so the calls themselves are looked
// for.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func readsClock(file *ast.File) (token.Pos, bool) {
	for node := range ast.Preorder(file) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if of, ok := selector.X.(*ast.Ident); ok && of.Name == "time" && slices.Contains(clockCalls, selector.Sel.Name) {
			return selector.Pos(), true
		}
	}
	return token.NoPos, false
}

func TestDomainHasNoClock(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	seen := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		if at, reads := readsClock(file); reads {
			t.Errorf("%s reads the clock: take the time as an argument", files.Position(at))
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("read %d files: %v", seen, err)
	}
}

func TestClockCallsAreFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"func f() time.Time { return time.Now() }":            true,
		"var now = time.Now":                                  true,
		"func f() { time.Sleep(time.Second) }":                true,
		"func f(t time.Time) bool { return t.After(t) }":      false,
		"func f() time.Duration { return 5 * time.Second }":   false,
		"func f() time.Time { return time.Unix(0, 0).UTC() }": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "made-up.go", "package p\nimport \"time\"\n"+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := readsClock(file); got != want {
			t.Errorf("%s: found %t, want %t", source, got, want)
		}
	}
}
