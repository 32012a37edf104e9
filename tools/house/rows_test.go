package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// What packages under db/ share among themselves: statements for batches, and connections that have no role yet.
var dbAlone = []string{"Args", "Identifier", "RoleIngest", "RoleWorker", "Schema", "SetWriter", "Translate", "Widen"}

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
	for _, s := range sources(t) {
		if s.test() || s.generated {
			continue
		}
		if why := seesRows(s); why != "" {
			t.Errorf("%s %s", s.path, why)
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
		"func f() { _ = db.SetWriter }":                                     true,
		"func f(d *db.DB) { d.Pool() }":                                     true,
		"var buffers sync.Pool\nfunc f() { buffers.Get(); g(sync.Pool{}) }": false,
	} {
		if why := seesRows(madeUp(t, "handlers/made_up.go", "package p\n"+text)); (why != "") != noticed {
			t.Errorf("%s: %q, want it noticed: %t", text, why, noticed)
		}
		worker := strings.Contains(text, "SetWriter") || strings.Contains(text, "Pool()")
		if why := seesRows(madeUp(t, "worker/made_up.go", "package p\n"+text)); (why != "") != worker {
			t.Errorf("%s in worker: %q, want it noticed: %t", text, why, worker)
		}
	}
}
