package domain_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The floors of db, lowest first. A package imports packages of lower floors only, so packages of one floor do not know
// each other.
var floors = [][]string{
	{"db/sql", "db/seal", "db/migrations", "db/embedded"},
	{"db", "db/dbtest"},
	{"db/ledger", "db/schematest", "db/readtest"},
	{"db/queue"},
	{"db/accounts", "db/emit"},
	{"db/endpoints"},
	{"db/deliveries"},
	{"db/listen"},
	{"db/days", "db/maintenance"},
}

// mostFiles is how many hand-written files a package of db has at most, without tests.
const mostFiles = 45

func floorOf(path string) int {
	return slices.IndexFunc(floors, func(f []string) bool {
		return slices.Contains(f, strings.TrimPrefix(path, module+
			"/"))
	})
}

// upward says why a package of db may not import another, or nothing where it may.
func upward(from, to string) string {
	if !within(from, module+"/db") || !within(to, module+"/db") {
		return ""
	}
	here, there := floorOf(from), floorOf(to)
	switch {
	case here < 0:
		return "is on no floor of db: add it to the list"
	case there < 0:
		return to + " is on no floor of db"
	case there >= here:
		return "imports go down the floors of db"
	}
	return ""
}

func TestDBHasFloors(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, one := range packages(t) {
		if !within(one.ImportPath, module+"/db") {
			continue
		}
		seen++
		if floorOf(one.ImportPath) < 0 {
			t.Errorf("%s is on no floor of db", one.ImportPath)
		}
		for _, imported := range one.Imports {
			if why := upward(one.ImportPath, imported); why != "" {
				t.Errorf("%s imports %s: %s", one.ImportPath, imported, why)
			}
		}
		files := goFiles(t, filepath.Join("..", strings.TrimPrefix(one.ImportPath, module+"/")), false)
		if len(files) > mostFiles {
			t.Errorf("%s has %d hand-written files, more than %d", one.ImportPath, len(files), mostFiles)
		}
	}
	if all := len(slices.Concat(floors...)); seen != all {
		t.Errorf("db has %d packages, the floors name %d", seen, all)
	}
}

func TestUpwardImportsOfDBAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"posthorn/db", "posthorn/db/sql", false},
		{"posthorn/db/sql", "posthorn/db", true},
		{"posthorn/db", "posthorn/db/ledger", true},
		{"posthorn/db/queue", "posthorn/db/ledger", false},
		{"posthorn/db/queue", "posthorn/db/accounts", true},
		{"posthorn/db/accounts", "posthorn/db/emit", true},
		{"posthorn/db/emit", "posthorn/db/accounts", true},
		{"posthorn/db/emit", "posthorn/db/queue", false},
		{"posthorn/db/endpoints", "posthorn/db/deliveries", true},
		{"posthorn/db/deliveries", "posthorn/db/endpoints", false},
		{"posthorn/db/listen", "posthorn/db/deliveries", false},
		{"posthorn/db/maintenance", "posthorn/db/listen", false},
		{"posthorn/db/other", "posthorn/db", true},
		{"posthorn/handlers/api", "posthorn/db/queue", false},
	} {
		if why := upward(c.from, c.to); (why != "") != c.refused {
			t.Errorf("%s importing %s: refused %t (%s), want %t", c.from, c.to, why != "", why, c.refused)
		}
	}
}

// goFiles are the hand-written Go files of a folder, of the folders below it too where deep.
func goFiles(t *testing.T, root string, deep bool) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (!deep || entry.Name() == "testdata"):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
			!strings.HasSuffix(path, ".gen.go") && !strings.HasSuffix(path, "_templ.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What packages under db/ share among themselves: statements for batches, and connections that have no role yet.
var dbAlone = []string{"Args", "Identifier", "RoleIngest", "RoleWorker", "Schema", "SetRole", "Translate", "Widen"}

var (
	statementName = regexp.MustCompile(`(?m)^-- name: (\w+) :(\w+).*$`)
	sqlComment    = regexp.MustCompile(`(?m)--.*$`)
	changes       = regexp.MustCompile(`(?i)\b(insert\s+into|update\s+\w+|delete\s+from|truncate|for\s+(no\s+key\s+)?update|for\s+(key\s+)?share|` +
		`pg_notify|pg_advisory\w*|set_config|posthorn\.(emit|make_partitions|drop_partition)\w*)\b`)
)

// statements are the queries of queries/ by name, with whether they change or lock anything.
func statements(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	files, err := filepath.Glob("../queries/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		at := statementName.FindAllStringSubmatchIndex(text, -1)
		for i, m := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			kind := text[m[4]:m[5]]
			all[text[m[2]:m[3]]] = strings.HasPrefix(kind, "exec") ||
				changes.MatchString(sqlComment.ReplaceAllString(text[m[1]:end], ""))
		}
	}
	if len(all) < 100 {
		t.Fatalf("found %d statements: the rules were not tried", len(all))
	}
	return all
}

// A reach is a place where code outside db/ uses a statement or what db/ shares.
type reach struct {
	at   token.Position
	name string
	raw  bool // past the generated methods
}

// reaches finds the statements that a file calls on values it declares as *sql.Queries, and what it takes from below
// them.
func reaches(files *token.FileSet, file *ast.File, known map[string]bool) (found []reach) {
	queries := map[string]bool{}
	for node := range ast.Preorder(file) {
		field, ok := node.(*ast.Field)
		if !ok {
			continue
		}
		star, ok := field.Type.(*ast.StarExpr)
		if !ok || !selects(star.X, "sql", "Queries") {
			continue
		}
		for _, name := range field.Names {
			queries[name.Name] = true
		}
	}
	for node := range ast.Preorder(file) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		name := selector.Sel.Name
		_, statement := known[name]
		of, plain := selector.X.(*ast.Ident)
		switch {
		case plain && of.Name == "sql" && (statement || name == "New"), plain && of.Name == "db" && slices.Contains(dbAlone, name),
			name == "Pool" && (!plain || of.Name != "sync" && of.Name != "pgxpool"):
			found = append(found, reach{files.Position(selector.Pos()), name, true})
		case statement && plain && queries[of.Name], statement && selects(selector.X, "", "q"):
			found = append(found, reach{files.Position(selector.Pos()), name, false})
		}
	}
	return found
}

// selects reports whether an expression is a selector, of the package where one is named.
func selects(e ast.Expr, of, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return of == "" || ok && x.Name == of
}

// Handlers read by any statement. A statement that changes or locks rows goes through the function of db/ that holds
// the locks in order and writes the audit log.
func TestHandlersCallNoWritingStatement(t *testing.T) {
	t.Parallel()
	known, files := statements(t), token.NewFileSet()
	seen := 0
	for _, room := range []string{"handlers", "worker", "web", "client"} {
		for _, path := range goFiles(t, filepath.Join("..", room), true) {
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range reaches(files, file, known) {
				seen++
				switch {
				case r.raw:
					t.Errorf("%s: only packages under db/ use %s", r.at, r.name)
				case room == "handlers" && known[r.name]:
					t.Errorf("%s: handlers call no writing statement: call a function of db/ instead of %s", r.at, r.name)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d calls of statements: the rules were not tried", seen)
	}
}

func TestReachesAreFound(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"GetTenant": false, "LockTenant": true}
	for source, want := range map[string]string{
		"func f(q *sql.Queries) { q.GetTenant() }":                        "GetTenant",
		"func f() { d.Tenant(func(q *sql.Queries) { q.LockTenant() }) }":  "LockTenant",
		"func f(q *sql.Queries) { each(q.LockTenant) }":                   "LockTenant",
		"type r struct { q *sql.Queries }\nfunc f(r r) { r.q.GetTenant }": "GetTenant",
		"func f(q other) { q.LockTenant() }":                              "",
		"func f() { b.Queue(sql.LockTenant) }":                            "raw LockTenant",
		"func f() { sql.New(conn) }":                                      "raw New",
		"func f() { _ = db.SetRole }":                                     "raw SetRole",
		"func f(d *db.DB) { d.Pool() }":                                   "raw Pool",
		"func f() sql.Tenant { return sql.Tenant{} }":                     "",
	} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "made-up.go", "package p\n"+source, parser.SkipObjectResolution)
		if file == nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range reaches(files, file, known) {
			got = strings.TrimSpace(fmt.Sprint(map[bool]string{true: "raw "}[r.raw], r.name))
		}
		if got != want {
			t.Errorf("%s: found %q, want %q", source, got, want)
		}
	}
}

// What each package of worker may import of worker. worker/lanes is pure: it has no database and no context of its own.
var workerRooms = map[string][]string{
	"worker":             {"worker/history", "worker/jobs", "worker/lanes", "worker/loop", "worker/maintenance", "worker/send"},
	"worker/lanes":       {"worker/send"},
	"worker/maintenance": {"worker/history", "worker/loop"},
	"worker/history":     {},
	"worker/send":        {},
	"worker/loop":        {},
	"worker/jobs":        {},
}

func TestWorkerHasRooms(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, one := range packages(t) {
		name := strings.TrimPrefix(one.ImportPath, module+"/")
		allowed, known := workerRooms[name]
		if !known {
			continue
		}
		seen++
		for _, imported := range one.Imports {
			if within(imported, module+"/worker") && !slices.Contains(allowed, strings.TrimPrefix(imported, module+"/")) {
				t.Errorf("%s imports %s", one.ImportPath, imported)
			}
			if name == "worker/lanes" && (imported == "context" || within(imported, module+"/db")) {
				t.Errorf("%s imports %s: lanes have no database and no context", one.ImportPath, imported)
			}
		}
	}
	if seen != len(workerRooms) {
		t.Errorf("found %d of %d packages of worker", seen, len(workerRooms))
	}
}
