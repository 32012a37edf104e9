package db_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// db.Args relies on the order of the generated fields: it must be the order in which the generated methods pass them.
func TestParametersAreInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("sql/*.sql.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	fields, passed := map[string][]string{}, map[string][]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(file) {
			switch n := node.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && strings.HasSuffix(n.Name.Name, "Params") {
					for _, f := range s.Fields.List {
						fields[n.Name.Name] = append(fields[n.Name.Name], f.Names[0].Name)
					}
				}
			case *ast.CallExpr:
				name, args := statementCall(n)
				if len(args) > 0 {
					passed[name+"Params"] = args
				}
			}
		}
	}
	if len(fields) < 100 {
		t.Fatalf("found %d sets of parameters", len(fields))
	}
	for name, want := range fields {
		if !slices.Equal(passed[name], want) {
			t.Errorf("%s has the fields %q and is passed as %q", name, want, passed[name])
		}
	}
}

// statementCall is the statement that a generated method sends, with the fields of arg that it passes.
func statementCall(call *ast.CallExpr) (statement string, args []string) {
	if len(call.Args) < 3 {
		return "", nil
	}
	name, ok := call.Args[1].(*ast.Ident)
	if !ok {
		return "", nil
	}
	for _, a := range call.Args[2:] {
		s, ok := a.(*ast.SelectorExpr)
		if !ok {
			return "", nil
		}
		if of, ok := s.X.(*ast.Ident); !ok || of.Name != "arg" {
			return "", nil
		}
		args = append(args, s.Sel.Name)
	}
	return name.Name, args
}
