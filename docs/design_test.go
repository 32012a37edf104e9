package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// The page's walk names a file and a function for each step of an event's life. Both have to exist.
func TestTheWalkThroughTheDesignNamesFunctionsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, _ := strings.Cut(string(page), "| step | file | function |\n")
	walk, _, _ = strings.Cut(walk, "\n\n")
	steps := 0
	for line := range strings.Lines(walk) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			continue
		}
		steps++
		declared := map[string]bool{}
		for _, file := range quoted.FindAllStringSubmatch(cells[2], -1) {
			for _, name := range functionsOf(t, filepath.Join("..", file[1])) {
				declared[name] = true
			}
		}
		for _, function := range quoted.FindAllStringSubmatch(cells[3], -1) {
			if !declared[function[1]] {
				t.Errorf("%s: no function %s in%s", strings.TrimSpace(cells[1]), function[1], cells[2])
			}
		}
	}
	if steps < 9 {
		t.Errorf("the walk has %d steps", steps)
	}
}

// Every file and folder that the page names exists.
func TestTheDesignNamesFilesThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("design.md")
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile("`((?:db|worker|handlers|domain|queries|web|views|client)/[a-z0-9_/.]*)`")
	named := path.FindAllStringSubmatch(string(page), -1)
	for _, m := range named {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("%s does not exist", m[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d files are named", len(named))
	}
}

func functionsOf(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			names = append(names, f.Name.Name)
		}
	}
	return names
}
