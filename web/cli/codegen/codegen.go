// Package codegen writes the data of a catalogue's event types as types of Go, TypeScript, and Python.
package codegen

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"posthorn/domain/catalogue"
)

// Language is a language that types are written in.
type Language string

// The languages.
const (
	Go         Language = "go"
	TypeScript Language = "ts"
	Python     Language = "python"
)

// Generate writes a file with a type for the data of each entry and of each of its payload versions, and what connects
// the names of event types with them. pkg is the package of Go. The same entries give the same bytes. What a schema
// says beyond types, such as ranges and patterns, is not in it. A schema that can't be read is an error.
func Generate(in Language, pkg string, entries []catalogue.Entry) ([]byte, error) {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b catalogue.Entry) int {
		return strings.Compare(a.Name, b.Name)
	})
	f := &file{}
	b := &builder{file: f, initialisms: in == Go, used: reserved(in)}
	for _, e := range entries {
		if err := b.entry(e); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", e.Name, err)
		}
	}
	switch in {
	case Go:
		return f.goFile(pkg)
	case TypeScript:
		return f.typeScriptFile(), nil
	case Python:
		return f.pythonFile(), nil
	}
	return nil, fmt.Errorf("there is no generator for %q", in)
}

// reserved are names that the files declare themselves.
func reserved(in Language) map[string]bool {
	names := map[Language][]string{
		Go:         {"Decode"},
		TypeScript: {"EventData", "EventType", "EventVersions", "WebhookEvent", "Array", "Record"},
		Python:     {"Any", "Dict", "EventType", "List", "Literal", "NotRequired", "Optional", "TypedDict", "Union", "WebhookEvent", "None", "True", "False"},
	}
	out := map[string]bool{}
	for _, name := range names[in] {
		out[name] = true
	}
	return out
}

// file is what is written, in an order in which each type comes after those that it uses.
type file struct {
	types  []*shape // that have a name
	events []event
}

// event is an event type with the shape of its data.
type event struct {
	name, ident, doc string
	data             *shape
	deprecated       bool
	versions         []version
}

type version struct {
	name string
	data *shape
}

type kind int

const (
	anything kind = iota
	boolean
	integer
	number
	text
	list
	tuple
	mapping
	object
	listed // some values
	union
)

// shape is a type as all languages can write it.
type shape struct {
	kind     kind
	name     string // of what is declared; empty: written where it is used
	doc      string
	nullable bool
	items    *shape // of a list, and the values of a mapping
	choices  []*shape
	values   []any // of listed: texts, json.Number, bool
	fields   []field
}

type field struct {
	name, doc string
	required  bool
	of        *shape
}

// initialisms are written in capitals in Go.
var initialisms = []string{"api", "html", "http", "https", "id", "ip", "json", "sql", "uri", "url", "utc", "uuid", "xml"}

// pascal is a name for a type: order.completed becomes OrderCompleted.
func pascal(name string, capitals bool) string {
	var b strings.Builder
	for _, word := range words(name) {
		lower := strings.ToLower(word)
		if capitals && slices.Contains(initialisms, lower) {
			b.WriteString(strings.ToUpper(word))
			continue
		}
		runes := []rune(word)
		b.WriteRune(unicode.ToUpper(runes[0]))
		b.WriteString(string(runes[1:]))
	}
	out := b.String()
	if out == "" || !unicode.IsLetter(rune(out[0])) {
		return "X" + out
	}
	return out
}

// words splits a name at what is no ASCII letter or digit, and before a capital after a small letter.
func words(name string) (out []string) {
	start := -1
	runes := []rune(name)
	for i := 0; i <= len(runes); i++ {
		plain := i < len(runes) && runes[i] < unicode.MaxASCII && (unicode.IsLetter(runes[i]) ||
			unicode.IsDigit(runes[i]))
		capital := plain && start >= 0 && i > start && unicode.IsUpper(runes[i]) && unicode.IsLower(runes[i-1])
		if start >= 0 && (!plain || capital) {
			out = append(out, string(runes[start:i]))
			start = -1
		}
		if plain && start < 0 {
			start = i
		}
	}
	return out
}

// lines are the lines of a description, without what would end a comment.
func lines(doc string) []string {
	var out []string
	for line := range strings.Lines(doc) {
		line = strings.Map(func(r rune) rune {
			if !unicode.IsGraphic(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Zl, r) ||
				unicode.Is(unicode.Zp, r) {
				return -1
			}
			return r
		}, line)
		if line = strings.TrimSpace(strings.ReplaceAll(line, "*/", "* /")); line != "" {
			out = append(out, line)
		}
	}
	return out
}
