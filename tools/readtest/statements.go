package readtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// statement is one of queries/, as sqlc generated it.
type statement struct {
	text   string
	params []string // names in the order of the numbers
}

// statements reads all from a folder of generated code.
func statements(t testing.TB, folder string) map[string]statement {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.sql.gen.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no generated code in %s: %v", folder, err)
	}
	all, structs, single := map[string]statement{}, map[string][]string{}, map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					readSpec(spec, all, structs)
				}
			case *ast.FuncDecl:
				if list := d.Type.Params.List; len(list) == 2 && len(list[1].Names) == 1 {
					single[d.Name.Name] = list[1].Names[0].Name
				}
			}
		}
	}
	for name, s := range all {
		if !strings.HasPrefix(s.text, "-- name: ") {
			delete(all, name)
			continue
		}
		if s.params = structs[name+"Params"]; s.params == nil && single[name] != "" {
			s.params = []string{single[name]}
		}
		all[name] = s
	}
	return all
}

// readSpec takes a statement's text or the fields of a struct.
func readSpec(spec ast.Spec, all map[string]statement, structs map[string][]string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			all[spec.Names[0].Name] = statement{text: text}
		}
	case *ast.TypeSpec:
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					structs[spec.Name.Name] = append(structs[spec.Name.Name], name.Name)
				}
			}
		}
	}
}

var firstTable = regexp.MustCompile(`(?:FROM|UPDATE|INTO|JOIN)\s+(?:posthorn\.)?([a-z_]+)\b`)

// value is the literal for a parameter: by its type, its name and the table that the statement is about, the ids of
// what is there.
func (h *history) value(s statement, i int, kind string) string {
	name := ""
	if i < len(s.params) {
		name = strings.ToLower(s.params[i])
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(name, w) {
				return true
			}
		}
		return false
	}
	quote := func(text string) string { return fmt.Sprintf("'%s'::%s", text, kind) }
	element, isList := strings.CutSuffix(kind, "[]")
	if isList {
		one := h.value(s, i, element)
		if strings.HasPrefix(one, "NULL") {
			return "'{}'::" + kind
		}
		return "ARRAY[" + one + "]"
	}
	switch kind {
	case "uuid":
		return quote(h.id(s, has))
	case "timestamp with time zone":
		switch {
		case has("high", "until", "before", "now", "last"):
			return "now()"
		case has("low", "since", "after", "first", "oldest", "from"):
			return "(now() - interval '8 days')"
		}
		return quote(h.moment)
	case "date":
		return "(now() - interval '1 day')::date"
	case "boolean":
		return "true"
	case "smallint", "integer", "bigint":
		switch {
		case has("most", "scan", "limit", "budget"):
			return quote("20")
		case has("status") && strings.Contains(s.text, "= -2"):
			return quote("-2")
		}
		return quote("1")
	case "real", "double precision", "numeric", "interval":
		return quote("1")
	case "json", "jsonb":
		return quote("{}")
	case "text", "character varying":
		if has("type") {
			return quote("order.paid")
		}
		return quote("")
	}
	return "NULL::" + kind
}

// id is what a parameter of the type uuid names.
func (h *history) id(s statement, has func(words ...string) bool) string {
	table := ""
	if m := firstTable.FindStringSubmatch(s.text); m != nil {
		table = m[1]
	}
	switch {
	case has("tenant"):
		return h.tenant
	case has("endpoint"):
		return h.endpoint
	case has("job"):
		return h.job
	case has("deliver"):
		return h.delivery
	case has("event"):
		return h.event
	case has("low", "after", "position", "floor", "oldest", "beyond"):
		return "00000000-0000-0000-0000-000000000000"
	case has("high", "before"):
		return "ffffffff-ffff-ffff-ffff-ffffffffffff"
	case table == "events":
		return h.event
	case table == "endpoints", table == "lanes":
		return h.endpoint
	case table == "bulk_jobs":
		return h.job
	case table == "tenants":
		return h.tenant
	}
	return h.delivery
}
