package handlers

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var codeLike = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// notOfTheAPI are folders and files whose errors appear on a terminal, in logs, or in users' own programs, and never
// in a response of the API.
var notOfTheAPI = []string{
	"../db/embedded", "../tools/dbtest", "../db/seal", "../db/migrate.go", "../db/roles.go", "../db/move", "../db/endpoints/verified.go", "../db/connect.go", "../domain/signature/verify.go",
	"../domain/signature/sign.go", "../domain/health/amend.go", "../domain/summary",
	"../worker/worker.go",
	"../handlers/svix", // responds with the codes of Svix's API
}

// makers are the functions that take a code, and the index of that argument.
var makers = map[string]int{"readConnection": 1, "New": 1, "InvalidField": 1, "refuse": 1, "add": 1, "tooMany": 0, "conflict": 0}

// codes finds the codes in a file: in calls that make an error, in fields named Code, and in constants named Code...
func codes(t *testing.T, path string, into map[string]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	note := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && codeLike.MatchString(text) {
				into[text] = path
			}
		}
	}
	for node := range ast.Preorder(file) {
		switch n := node.(type) {
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			if at, ok := makers[name]; ok && len(n.Args) > at+1 {
				note(n.Args[at])
			}
			// oneOf makes the code from a field's name, which is its first literal (domain/endpoint,
			// handlers/filter.go) or that of a row of the table of settings (choiceField).
			if name == "oneOf" {
				if i := slices.IndexFunc(n.Args, func(e ast.Expr) bool { return literal(e) != "" }); i >= 0 {
					note(&ast.BasicLit{Kind: token.STRING, Value: strings.TrimSuffix(literal(n.Args[i]), `"`) + `_unknown"`})
				}
			}
		case *ast.CompositeLit:
			if name := choiceField(n); name != "" {
				note(&ast.BasicLit{Kind: token.STRING, Value: strings.TrimSuffix(name, `"`) + `_unknown"`})
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
				note(n.Value)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if strings.HasPrefix(name.Name, "Code") && i < len(n.Values) {
					note(n.Values[i])
				}
			}
		}
	}
}

// choiceField is the literal name of a setting that is chosen from a few (domain/endpoint/fields.go), or empty.
func choiceField(n *ast.CompositeLit) (name string) {
	choice := false
	for _, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return ""
		}
		switch key, _ := pair.Key.(*ast.Ident); {
		case key == nil:
		case key.Name == "Name":
			name = literal(pair.Value)
		case key.Name == "Type":
			word, ok := pair.Value.(*ast.Ident)
			choice = ok && word.Name == "Choice"
		}
	}
	if !choice {
		return ""
	}
	return name
}

// literal is the value of a string literal, or empty.
func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok {
		return lit.Value
	}
	return ""
}

func TestTheExampleOfARefusalIsOne(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "\n```json\n")
	example, _, _ = strings.Cut(example, "```")
	var p problem
	dec := json.NewDecoder(strings.NewReader(example))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil || p.Type != problemPage+p.Code || p.Title != http.StatusText(p.Status) ||
		len(p.Errors) != 1 || p.Errors[0].Code != p.Code {
		t.Errorf("%v: %+v", err, p)
	}
}

func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for _, root := range []string{"../handlers", "../domain", "../db", "../worker"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasSuffix(path, ".gen.go") {
				return err
			}
			for _, other := range notOfTheAPI {
				if strings.HasPrefix(filepath.ToSlash(path), other) {
					return nil
				}
			}
			codes(t, path, found)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^### `([a-z0-9_]+)`$").FindAllStringSubmatch(string(page), -1) {
		if explained[m[1]] {
			t.Errorf("%s is explained twice", m[1])
		}
		explained[m[1]] = true
	}
	for code, path := range found {
		if !explained[code] {
			t.Errorf("%s (%s) is not in docs/errors.md", code, path)
		}
	}
	for code := range explained {
		if _, ok := found[code]; !ok {
			t.Errorf("docs/errors.md explains %s, which nothing answers", code)
		}
	}
	if len(found) < 80 {
		t.Errorf("%d codes: were they found?", len(found))
	}
}
