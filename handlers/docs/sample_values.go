package docs

import (
	"regexp"
	"strings"
)

// style is the syntax of a language's values.
type style struct {
	null, yes, no, indent string
	name                  func(string) string // writes the name of a member
}

var (
	pythonStyle     = style{null: "None", yes: "True", no: "False", indent: "    ", name: quoteJSON}
	typeScriptStyle = style{null: "null", yes: "true", no: "false", indent: "  ", name: typeScriptKey}
	plainKey        = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// typeScriptKey is a member's name, quoted if necessary.
func typeScriptKey(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return quoteJSON(name)
}

// write writes a value of an example. indent is the indent of its line.
func (s style) write(v any, indent string) string {
	inner := indent + s.indent
	var parts []string
	switch v := v.(type) {
	case nil:
		return s.null
	case bool:
		if v {
			return s.yes
		}
		return s.no
	case object:
		if len(v) == 0 {
			return "{}"
		}
		for _, p := range v {
			parts = append(parts, inner+s.name(p.name)+": "+s.write(p.value, inner)+",\n")
		}
		return "{\n" + strings.Join(parts, "") + indent + "}"
	case []any:
		for _, one := range v {
			parts = append(parts, s.write(one, indent))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return compact(v)
}

func quoteJSON(s string) string { return compact(s) }
