package domain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
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

// exports are the exported functions, methods, variables and constants of a file. Types are left out: others use them
// as results without naming them.
func exports(file *ast.File, add func(name string, method bool)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && !strings.HasPrefix(d.Name.Name, "Test") {
				add(d.Name.Name, d.Recv != nil)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range s.Names {
						if name.IsExported() {
							add(name.Name, false)
						}
					}
				}
			}
		}
	}
}

// Methods that interfaces of other modules call.
var calledByOthers = []string{
	"Error", "Unwrap", "Is", "String", "Scan", "Close", "Exec", "Query", "QueryRow", "MarshalJSON", "UnmarshalJSON",
	"TraceQueryStart", "TraceQueryEnd", "TraceBatchStart", "TraceBatchQuery", "TraceBatchEnd",
	"PlanScan", "PlanEncode", "SkipUnderlyingTypePlan", "Encode", "UUIDValue", "ScanUUID",
}

// A name that only its own package uses is not exported: what a package under db/ exports is what others can call.
func TestPackagesUnderDBExportOnlyWhatOthersUse(t *testing.T) {
	t.Parallel()
	type declared struct {
		dir, pkg, name string
		method         bool
	}
	var all []declared
	used, files := map[string]map[string]bool{}, token.NewFileSet() // by ".Name" or "pkg.Name", the folders that use it
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../")))
		test, generated := strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".gen.go")
		if (dir == "db" || strings.HasPrefix(dir, "db/")) && dir != "db/dbtest" && !test && !generated {
			exports(file, func(name string, method bool) {
				all = append(all, declared{dir, file.Name.Name, name, method})
			})
		}
		// A test of a package that is compiled outside it sees only what is exported.
		from := dir
		if strings.HasSuffix(file.Name.Name, "_test") {
			from += "_test"
		}
		use := func(key string) {
			if used[key] == nil {
				used[key] = map[string]bool{}
			}
			used[key][from] = true
		}
		for node := range ast.Preorder(file) {
			if s, ok := node.(*ast.SelectorExpr); ok {
				use("." + s.Sel.Name)
				if x, ok := s.X.(*ast.Ident); ok {
					use(x.Name + "." + s.Sel.Name)
				}
			}
		}
		return nil
	})
	if err != nil || len(all) < 200 {
		t.Fatalf("found %d exported names: %v", len(all), err)
	}
	outside := func(key, dir string) bool {
		for from := range used[key] {
			if from != dir {
				return true
			}
		}
		return false
	}
	for _, d := range all {
		key := d.pkg + "." + d.name
		if d.method {
			key = "." + d.name
		}
		if !outside(key, d.dir) && !slices.Contains(calledByOthers, d.name) && exportedFor[d.pkg+"."+d.name] == "" {
			t.Errorf("%s: %s is used in its package alone: do not export it", d.dir, d.name)
		}
	}
}
