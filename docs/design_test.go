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
func TestTheStepsOfTheDesignNameFunctionsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, stages, _ := strings.Cut(string(page), "| step | file | function |\n")
	stages, _, _ = strings.Cut(stages, "\n\n")
	steps := 0
	for line := range strings.Lines(stages) {
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

// Every file and folder that the pages for maintainers name exists.
func TestThePagesForMaintainersNameFilesThatExist(t *testing.T) {
	t.Parallel()
	path := regexp.MustCompile("`((?:db|worker|handlers|domain|queries|web|views|client|docs)/[a-z0-9_/.]*)`")
	for page, least := range map[string]int{"design.md": 30, "../CONTRIBUTING.md": 25, "../SECURITY.md": 8} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := path.FindAllStringSubmatch(string(text), -1)
		for _, m := range named {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
		if len(named) < least {
			t.Errorf("%s names only %d files", page, len(named))
		}
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
