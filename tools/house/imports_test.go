package house_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

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
	// A module of its own: it imports nothing of the server's.
	"client":  {outside: []string{"github.com/oapi-codegen/nullable"}},
	"domain":  {outside: []string{}},
	"static":  {outside: []string{}},
	"queries": {outside: []string{}},
	// Programs and packages of the build and of tests: the benchmark, the camera for pages, databases for tests.
	"tools": {own: []string{"web", "handlers", "worker", "db", "views", "client", "domain", "static", "queries", "docs"}, driver: true, router: true},
	// Its examples are programs of other people, who may know the driver too.
	"docs": {driver: true, outside: []string{"github.com/standard-webhooks/standard-webhooks", "github.com/jackc/pgx", "github.com/twmb/franz-go"}},
}

// tables are libraries of rules and names without I/O, and the packages of domain that use each.
var tables = map[string]string{
	"domain/expression": "cel.dev/cel-go",
	"domain/filter":     "cel.dev/cel-go",
	"domain/transform":  "cel.dev/cel-go",
	"domain/source":     "cel.dev/cel-go",
	"domain/schema":     "github.com/santhosh-tekuri/jsonschema",
	"domain/account":    "golang.org/x/net/idna",
	"domain/mail":       "golang.org/x/net",
}

// Names that say nothing about what a folder does.
var emptyNames = []string{"internal", "pkg", "util", "utils", "helper", "helpers", "common", "manager", "services", "models"}

// What domain packages may not import although it is the standard library: the clock, the outside and chance are handed
// in.
var impure = []string{"context", "database/sql", "math/rand", "math/rand/v2", "crypto/rand", "os", "os/exec"}

// The floors of db, lowest first. A package imports packages of lower floors only, so packages of one floor do not know
// each other.
var floors = [][]string{
	{"db/sql", "db/seal", "db/migrations", "db/embedded"},
	{"db"},
	{"db/ledger"},
	{"db/queue"},
	{"db/accounts", "db/emit"},
	{"db/days", "db/events"},
	{"db/endpoints"},
	{"db/deliveries"},
	{"db/listen", "db/feeds", "db/sources"},
	{"db/maintenance", "db/subscriptions"},
	{"db/move"},
}

// What each package of worker may import of worker. worker/lanes is pure: it has no database and no context of its own.
var workerRooms = map[string][]string{
	"worker":             {"worker/history", "worker/jobs", "worker/lanes", "worker/loop", "worker/maintenance", "worker/send"},
	"worker/lanes":       {"worker/send"},
	"worker/maintenance": {"worker/history", "worker/loop"},
	"worker/history":     {},
	"worker/send":        {},
	"worker/loop":        {},
	"worker/jobs":        {"worker/loop"},
}

// mostFiles is how many hand-written files a package has at most, without tests.
const mostFiles = 45

// refusal says why a package may not import another, or nothing where it may.
func refusal(from, to string) string {
	name, rest, _ := strings.Cut(from, "/")
	here, known := house[name]
	if !known {
		return "is not in one of the house's rooms"
	}
	for folder := range strings.SplitSeq(rest, "/") {
		if slices.Contains(emptyNames, folder) && !within(from, "client/internal") {
			return "has a folder whose name says nothing"
		}
	}
	if own, isOwn := strings.CutPrefix(to, "./"); isOwn {
		return refusalOfOwn(here, name, from, own)
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
	case from == "worker/lanes" && to == "context":
		return "lanes have no context"
	case standard || here.outside == nil || tables[from] != "" && within(to, tables[from]):
		return ""
	case !slices.ContainsFunc(here.outside, func(allowed string) bool { return within(to, allowed) }):
		return name + " may not depend on this module"
	}
	return ""
}

// refusalOfOwn is refusal for a package of this repository.
func refusalOfOwn(here room, name, from, to string) string {
	target, _, _ := strings.Cut(to, "/")
	rooms, isRoom := workerRooms[from]
	switch {
	case within(from, "web/cli") && !within(to, "web/cli") && target != "client" && target != "domain":
		return "commands speak to a server through the SDK"
	case target != name && !slices.Contains(here.own, target):
		return name + " may not know " + target
	case within(from, "db") && floorOf(from) < 0:
		return "is on no floor of db: add it to the list"
	case within(from, "db") && within(to, "db") && (floorOf(to) < 0 || floorOf(to) >= floorOf(from)):
		return "imports go down the floors of db"
	case isRoom && within(to, "worker") && !slices.Contains(rooms, to):
		return "is not in the list of what this package of worker may import of worker"
	case from == "worker/lanes" && within(to, "db"):
		return "lanes have no database"
	}
	return ""
}

func floorOf(name string) int {
	return slices.IndexFunc(floors, func(f []string) bool { return slices.Contains(f, name) })
}

func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	files := map[string]int{}
	for _, s := range sources(t) {
		if !s.test() && !s.generated {
			files[s.dir()]++
		}
		for _, imported := range s.imports() {
			own, isOwn := strings.CutPrefix(imported, "./")
			// Tests may build on anything, to bring up databases and receivers; domain's tests alone know nothing above
			// domain, but for what names the programs that they need.
			if s.test() && (own == "tools/need" || !(within(s.path, "domain") && isOwn && !within(own, "domain"))) {
				continue
			}
			if why := refusal(s.dir(), imported); why != "" {
				t.Errorf("%s imports %s: %s", s.path, imported, why)
			}
		}
	}
	for dir, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d hand-written files, more than %d", dir, n, mostFiles)
		}
	}
	for _, named := range append(slices.Concat(floors...), slices.Collect(maps.Keys(workerRooms))...) {
		if files[named] == 0 && named != "db/sql" {
			t.Errorf("%s is in a list and has no file", named)
		}
	}
}

func TestForbiddenImportsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"handlers/api", "./worker", true},
		{"handlers/api", "./worker/jobs", true},
		{"handlers/api", "github.com/jackc/pgx/v5", true},
		{"handlers/api", "./web", true},
		{"handlers/api", "./db", false},
		{"handlers/api", "./db/queue", false},
		{"handlers/api", "github.com/gin-gonic/gin", false},
		{"worker", "github.com/gin-gonic/gin/binding", true},
		{"worker", "./handlers", true},
		{"worker", "./worker/lanes", false},
		{"worker", "github.com/jackc/pgx/v5/pgxpool", false},
		{"worker/send", "./worker/lanes", true},
		{"worker/lanes", "./db/queue", true},
		{"worker/lanes", "context", true},
		{"worker/mail", "./views/emails", false},
		{"db", "./worker", true},
		{"db", "./views", true},
		{"db", "./db/sql", false},
		{"db/sql", "./db", true},
		{"db", "./db/ledger", true},
		{"db/queue", "./db/ledger", false},
		{"db/queue", "./db/accounts", true},
		{"db/accounts", "./db/emit", true},
		{"db/emit", "./db/accounts", true},
		{"db/endpoints", "./db/deliveries", true},
		{"db/deliveries", "./db/endpoints", false},
		{"db/other", "./db", true},
		{"views/pages", "./db", true},
		{"views/pages", "github.com/gin-gonic/gin", true},
		{"views/pages", "github.com/a-h/templ", false},
		{"views/pages", "github.com/a-h/templating", true},
		{"client", "./db", true},
		{"client", "./domain/fault", true},
		{"client", "./client/internal/fault", false},
		{"client", "github.com/jackc/pgx/v5", true},
		{"web/cli", "./db", true},
		{"web/cli/apply", "./domain/retry", false},
		{"domain/retry", "./domain/fault", false},
		{"domain/retry", "./static", true},
		{"domain/retry", "github.com/google/uuid", true},
		{"domain/retry", "context", true},
		{"domain/retry", "math/rand/v2", true},
		{"domain/retry", "time", false},
		{"domain/retry", "cel.dev/cel-go/cel", true},
		{"domain/filter", "cel.dev/cel-go/cel", false},
		{"domain/filter", "cel.dev/cel-gone", true},
		{"static", "./domain/id", true},
		{"web", "./worker", false},
		{"web/util", "fmt", true},
		{"internal/x", "fmt", true},
		{".", "fmt", true},
	} {
		if why := refusal(c.from, c.to); (why != "") != c.refused {
			t.Errorf("%s importing %s: refused %t (%s), want %t", c.from, c.to, why != "", why, c.refused)
		}
	}
}

// Reading the clock needs no import that `time` for durations does not need too, so the rule finds the calls.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func readsClock(file *ast.File) ast.Node {
	for node := range ast.Preorder(file) {
		if selector, ok := node.(*ast.SelectorExpr); ok && slices.Contains(clockCalls, selector.Sel.Name) && isName(selector.X, "time") {
			return selector
		}
	}
	return nil
}

func isName(e ast.Expr, name string) bool {
	x, ok := e.(*ast.Ident)
	return ok && x.Name == name
}

func TestDomainHasNoClock(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if !within(s.path, "domain") || s.test() {
			continue
		}
		if call := readsClock(s.file); call != nil {
			t.Errorf("%s reads the clock: take the time as an argument", s.at(call))
		}
	}
}

func TestClockCallsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"func f() time.Time { return time.Now() }":            true,
		"var now = time.Now":                                  true,
		"func f() { time.Sleep(time.Second) }":                true,
		"func f(t time.Time) bool { return t.After(t) }":      false,
		"func f() time.Duration { return 5 * time.Second }":   false,
		"func f() time.Time { return time.Unix(0, 0).UTC() }": false,
	} {
		if got := readsClock(madeUp(t, "made_up.go", "package p\nimport \"time\"\n"+text).file) != nil; got != want {
			t.Errorf("%s: found %t, want %t", text, got, want)
		}
	}
}
