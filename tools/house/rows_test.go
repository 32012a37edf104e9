package house_test

import (
	"flag"
	"go/ast"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The files that still see rows or call statements. The list only shrinks: a file that no longer does leaves it.
const remaining = "testdata/rows.txt"

var update = flag.Bool("update", false, "remove the files from the list that no longer belong there")

// What packages under db/ share among themselves: statements for batches, and connections that have no role yet.
var dbAlone = []string{"Args", "Identifier", "RoleIngest", "RoleWorker", "Schema", "SetRole", "Translate", "Widen"}

// seesRows says what a file does with the database that only packages under db/ do, or nothing. Rows and their
// statements are for db and worker; surfaces only pass a transaction on.
func seesRows(s source) string {
	if within(s.path, "db") {
		return ""
	}
	for _, imported := range s.imports() {
		if imported == "./db/sql" && !within(s.path, "worker") {
			return "imports db/sql"
		}
	}
	fields := transactions(s.file)
	for _, declaration := range s.file.Decls {
		declared := transactions(declaration)
		for node := range ast.Preorder(declaration) {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			name := selector.Sel.Name
			of, plain := selector.X.(*ast.Ident)
			field, nested := selector.X.(*ast.SelectorExpr)
			switch {
			case plain && of.Name == "sql" && name == "New", plain && of.Name == "db" && slices.Contains(dbAlone, name),
				name == "Pool" && (!plain || of.Name != "sync" && of.Name != "pgxpool"):
				return "uses " + name + ", which is for packages under db/"
			case within(s.path, "worker"):
			case plain && declared[of.Name], nested && fields[field.Sel.Name]:
				return "calls " + name + " on a transaction: call a function of the package under db/ that has the noun"
			}
		}
	}
	return ""
}

// transactions are the names that a declaration gives to a transaction.
func transactions(root ast.Node) map[string]bool {
	found := map[string]bool{}
	add := func(names []*ast.Ident, of ast.Expr) {
		if star, ok := of.(*ast.StarExpr); ok && (selects(star.X, "sql", "Queries") || selects(star.X, "db", "Tx")) {
			for _, name := range names {
				found[name.Name] = true
			}
		}
	}
	for node := range ast.Preorder(root) {
		switch n := node.(type) {
		case *ast.Field:
			add(n.Names, n.Type)
		case *ast.ValueSpec:
			add(n.Names, n.Type)
		}
	}
	return found
}

func selects(e ast.Expr, of, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name && isName(s.X, of)
}

func TestRowsStayInDBAndWorker(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(remaining)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, name := range strings.Fields(string(data)) {
		listed[name] = true
	}
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() || s.generated {
			continue
		}
		if why := seesRows(s); why != "" {
			found[s.path] = true
			if !listed[s.path] {
				t.Errorf("%s %s", s.path, why)
			}
		}
	}
	if *update {
		maps.DeleteFunc(listed, func(name string, _ bool) bool { return !found[name] })
		text := strings.Join(slices.Sorted(maps.Keys(listed)), "\n") + "\n"
		if err := os.WriteFile(remaining, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name := range listed {
		if !found[name] {
			t.Errorf("%s no longer sees rows: go test ./tools/house -update takes it off the list", name)
		}
	}
}

func TestRowsAreNoticed(t *testing.T) {
	t.Parallel()
	for text, noticed := range map[string]bool{
		"import \"" + module() + "/db/sql\"":                                true,
		"func f(q *db.Tx) { q.GetTenant() }":                                true,
		"func f() { d.Tenant(func(q *db.Tx) { q.GetTenant() }) }":           true,
		"func f(q *db.Tx) { each(q.GetTenant) }":                            true,
		"type r struct { q *db.Tx }\nfunc f(r r) { r.q.GetTenant() }":       true,
		"func f(q *db.Tx) { accounts.Tenant(q) }":                           false,
		"func f(q other) { q.GetTenant() }":                                 false,
		"func f(q *db.Tx) {}\nfunc g(q url.Values) { q.Get(\"a\") }":        false,
		"func f() { _ = db.SetRole }":                                       true,
		"func f(d *db.DB) { d.Pool() }":                                     true,
		"var buffers sync.Pool\nfunc f() { buffers.Get(); g(sync.Pool{}) }": false,
	} {
		if why := seesRows(madeUp(t, "handlers/made_up.go", "package p\n"+text)); (why != "") != noticed {
			t.Errorf("%s: %q, want it noticed: %t", text, why, noticed)
		}
		worker := strings.Contains(text, "SetRole") || strings.Contains(text, "Pool()")
		if why := seesRows(madeUp(t, "worker/made_up.go", "package p\n"+text)); (why != "") != worker {
			t.Errorf("%s in worker: %q, want it noticed: %t", text, why, worker)
		}
	}
}
