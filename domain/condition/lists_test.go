package condition_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"posthorn/domain/condition"
)

// declared are the values of the constants of a type that the package declares.
func declared(t *testing.T, typeName string) (values []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(file) {
			spec, is := node.(*ast.ValueSpec)
			if !is {
				continue
			}
			if of, named := spec.Type.(*ast.Ident); !named || of.Name != typeName {
				continue
			}
			for _, value := range spec.Values {
				if text, is := value.(*ast.BasicLit); is && text.Kind == token.STRING {
					plain, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, plain)
				}
			}
		}
	}
	slices.Sort(values)
	return values
}

// The lists have everything that is declared. The tests of the surfaces read the lists, so a condition that is new
// fails wherever a surface does not know it.
func TestTheListsLeaveNothingOut(t *testing.T) {
	t.Parallel()
	texts := func(list any) (out []string) {
		switch all := list.(type) {
		case []condition.State:
			for _, one := range all {
				out = append(out, string(one))
			}
		case []condition.Reason:
			for _, one := range all {
				out = append(out, string(one))
			}
		case []condition.Action:
			for _, one := range all {
				out = append(out, string(one))
			}
		}
		slices.Sort(out)
		return out
	}
	for name, list := range map[string]any{
		"State":  condition.States(),
		"Reason": condition.Reasons(),
		"Action": actions,
	} {
		if got, want := texts(list), declared(t, name); !slices.Equal(got, want) || len(want) < 5 {
			t.Errorf("%s: the list has %q, declared are %q", name, got, want)
		}
	}
}
