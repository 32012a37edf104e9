package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// exportedFor are names that belong to others that are used outside.
var exportedFor = map[string]string{
	"endpoints.Created":   "one of the words for what an import did to a type",
	"endpoints.Updated":   "one of the words for what an import did to a type",
	"endpoints.Unchanged": "one of the words for what an import did to a type",
	"endpoints.Skipped":   "one of the words for what an import did to a type",
}

// Methods that interfaces of other modules call.
var calledByOthers = []string{
	"Error", "Unwrap", "Is", "String", "Scan", "Close", "Exec", "Query", "QueryRow", "MarshalJSON", "UnmarshalJSON",
	"TraceQueryStart", "TraceQueryEnd", "TraceBatchStart", "TraceBatchQuery", "TraceBatchEnd",
	"PlanScan", "PlanEncode", "SkipUnderlyingTypePlan", "Encode", "UUIDValue", "ScanUUID",
}

// exports are the exported functions, variables and constants of a file by "package.Name", and methods by ".Name".
// Types are left out: others use them as results without naming them.
func exports(file *ast.File) (all []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case !d.Name.IsExported():
			case d.Recv == nil:
				all = append(all, file.Name.Name+"."+d.Name.Name)
			case !slices.Contains(calledByOthers, d.Name.Name):
				all = append(all, "."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range s.Names {
					if name.IsExported() {
						all = append(all, file.Name.Name+"."+name.Name)
					}
				}
			}
		}
	}
	return all
}

// A name that only its own package uses is not exported: what a package under db/ exports is what others can call.
func TestPackagesUnderDBExportOnlyWhatOthersUse(t *testing.T) {
	t.Parallel()
	used := map[string][]string{} // by ".Name" or "package.Name", the folders that use it
	for _, s := range sources(t) {
		from := s.dir()
		// A test of a package that is compiled outside it sees only what is exported.
		if strings.HasSuffix(s.file.Name.Name, "_test") {
			from += "_test"
		}
		use := func(key string) {
			if !slices.Contains(used[key], from) {
				used[key] = append(used[key], from)
			}
		}
		for node := range ast.Preorder(s.file) {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				use("." + selector.Sel.Name)
				if x, ok := selector.X.(*ast.Ident); ok {
					use(x.Name + "." + selector.Sel.Name)
				}
			}
		}
	}
	seen := 0
	for _, s := range sources(t) {
		if !within(s.path, "db") || s.test() || strings.HasSuffix(s.path, ".gen.go") {
			continue
		}
		for _, key := range exports(s.file) {
			seen++
			outside := slices.ContainsFunc(used[key], func(from string) bool { return from != s.dir() })
			if !outside && exportedFor[key] == "" {
				t.Errorf("%s: %s is used in its package alone: do not export it", s.dir(), key)
			}
		}
	}
	if seen < 200 {
		t.Errorf("found %d exported names: the rule was not tried", seen)
	}
}
