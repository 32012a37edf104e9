package house_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// A source is a Go file. Its path is below the root, with slashes.
type source struct {
	path      string
	text      []byte
	file      *ast.File
	positions *token.FileSet
	generated bool
}

func (s source) dir() string { return path.Dir(s.path) }
func (s source) test() bool  { return strings.HasSuffix(s.path, "_test.go") }

// at is a position as `file:line`.
func (s source) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.positions.Position(node.Pos()).Line)
}

// imports are the packages that the file imports: those of this repository as "./db/sql", all others by their path.
func (s source) imports() (all []string) {
	for _, i := range s.file.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		if name == module() || strings.HasPrefix(name, module()+"/") {
			name = "." + strings.TrimPrefix(name, module())
		}
		all = append(all, name)
	}
	return all
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

// module is the path of the server's module, which an owner can rename.
var module = sync.OnceValue(func() string {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		panic(err)
	}
	return string(moduleLine.FindSubmatch(data)[1])
})

var generatedCode = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// eachFile calls visit with the path of every file of the repository, without test data and what builds leave behind.
func eachFile(visit func(name string) error) error {
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || name == "bin" || strings.HasPrefix(name, ".") && file != root):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		return visit(filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))))
	})
}

// parsed reads every Go file of the repository once.
var parsed = sync.OnceValues(func() (all []source, err error) {
	positions := token.NewFileSet()
	err = eachFile(func(name string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
		head, _, _ := bytes.Cut(text, []byte("\npackage "))
		all = append(all, source{name, text, file, positions, generatedCode.Match(head)})
		return err
	})
	return all, err
})

func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil || len(all) < 1000 {
		t.Fatalf("read %d files: %v", len(all), err)
	}
	return all
}

// madeUp is a file for the tests of the rules themselves.
func madeUp(t *testing.T, name, text string) source {
	t.Helper()
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{name, []byte(text), file, positions, false}
}
