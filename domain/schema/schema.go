// Package schema checks events' data against JSON Schema (draft 2020-12 unless a schema names another). Schemas are
// written by tenants and run on the way of events: they load nothing, and compiling and checking are bounded.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"posthorn/domain/fault"
)

// The bounds. The price of a check is in meter.go, that of patterns in pattern.go.
const (
	maxBytes      = 64 << 10 // of a schema as JSON
	maxNodes      = 2000     // of a schema, what $ref leads to counted where it is referred to
	maxMismatches = 10       // that are told
	maxLeaves     = 100      // that are put into words to find these
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	doc      any
	patterns patterns
	mu       sync.Mutex
	free     []*checker
}

// checker is a compiled schema for one check at a time: its patterns and subschemas pay into its meter.
type checker struct {
	compiled *jsonschema.Schema
	meter    meter
}

// Mismatch is one thing in which data does not fit a schema.
type Mismatch struct {
	Field  string // dotted path that begins with data
	Detail string
}

// Compile makes a Schema of a JSON Schema of at most 64 KiB. $ref can only point into the same schema ("#/$defs/...")
// and not to an enclosing part. $dynamicRef, $anchor and $id below the top are refused. Errors are *fault.Error with
// code schema_invalid and field schema.
func Compile(text []byte) (*Schema, error) {
	if len(text) > maxBytes {
		return nil, invalid(fmt.Sprintf("The schema has %d bytes; the maximum is %d.", len(text), maxBytes))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, invalid("The schema isn't JSON.")
	}
	if _, found := longNumber(doc, nil); found {
		return nil, invalid(fmt.Sprintf("The schema has a number with more than %d digits, or with an exponent beyond %d. Use a smaller number.", maxNumber, maxNumber))
	}
	w := walker{root: doc, known: map[string]*size{}, patterns: patterns{known: map[string]*pattern{}}}
	if err := w.refer("#"); err != nil {
		return nil, err
	}
	s := &Schema{doc: doc, patterns: w.patterns}
	first, err := s.checker()
	if err != nil {
		return nil, invalid("The schema is invalid: " + plain(err) + ".")
	}
	s.free = append(s.free, first)
	return s, nil
}

// checker compiles a checker.
func (s *Schema) checker() (*checker, error) {
	one := &checker{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closed{})
	c.UseRegexpEngine(s.patterns.engine(&one.meter))
	if err := c.AddResource(name, s.doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	one.compiled = compiled
	one.meter.attach(compiled, map[*jsonschema.Schema]*price{})
	return one, nil
}

// take returns a checker that nobody uses. As many are kept as can run at the same time.
func (s *Schema) take() (*checker, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		one := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		return one, nil
	}
	s.mu.Unlock()
	return s.checker()
}

func (s *Schema) give(one *checker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < runtime.GOMAXPROCS(0) {
		s.free = append(s.free, one)
	}
}

// name is what the compiler knows a schema by.
const name = "schema.json"

// closed loads nothing: the library's own loader would read files of this machine.
type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: external schemas aren't loaded; include it in the schema", url)
}

func invalid(detail string) *fault.Error {
	return fault.InvalidField("schema", "schema_invalid", detail)
}

// plain is a message of the library without its inner names, on one line.
func plain(err error) string {
	text := err.Error()
	var nested *jsonschema.SchemaValidationError
	if errors.As(err, &nested) && nested.Err != nil {
		text = nested.Err.Error()
	}
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, name+"#", "#")), " ")
	// The quoted part can be long and comes first; the reason follows.
	if runes := []rune(text); len(runes) > 250 {
		text = string(runes[:100]) + "..." + string(runes[len(runes)-150:])
	}
	return strings.TrimSuffix(text, ".")
}

// ErrStopped says that a check was not finished, because its caller was no longer waiting.
var ErrStopped = errors.New("the check was stopped")

var errTooCostly = errors.New("the check costs too much")

// Check says in what data, one JSON value, does not fit the schema; nil where it fits. At most ten things are told.
// Data that would take long to check does not fit. stop, which can be nil, is asked during a long check: where it
// returns true, Check returns ErrStopped. There is no other error.
func (s *Schema) Check(data []byte, stop func() bool) ([]Mismatch, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return []Mismatch{{"data", "The data isn't JSON."}}, nil
	}
	if at, found := longNumber(value, []string{"data"}); found {
		return []Mismatch{{fieldOf(at), fmt.Sprintf("A number with more than %d digits, or with an exponent beyond %d, can't be checked against a schema. Send a smaller number, or a string.", maxNumber, maxNumber)}}, nil
	}
	checker, err := s.take()
	if err != nil {
		return []Mismatch{{"data", "The data can't be checked: " + plain(err) + "."}}, nil
	}
	defer s.give(checker)
	err = checker.meter.run(stop, func() error { return checker.compiled.Validate(value) })
	switch {
	case errors.Is(err, errTooCostly):
		return []Mismatch{{"data", tooCostlyText}}, nil
	case errors.Is(err, ErrStopped):
		return nil, err
	}
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		if err != nil {
			return []Mismatch{{"data", "The data can't be checked: " + plain(err) + "."}}, nil
		}
		return nil, nil
	}
	var found []Mismatch
	left := maxLeaves
	leaves(wrong, &found, &left)
	return found, nil
}

// fieldOf is a dotted path, cut where it is long.
func fieldOf(path []string) string {
	field := strings.Join(path, ".")
	if len(field) > 200 {
		field = strings.ToValidUTF8(field[:200], "") + "..."
	}
	return field
}

// leaves gathers the errors that have no further cause, of the left ones at most: many can say the same, and their
// texts can be long.
func leaves(e *jsonschema.ValidationError, found *[]Mismatch, left *int) {
	for _, cause := range e.Causes {
		leaves(cause, found, left)
	}
	if len(e.Causes) > 0 || len(*found) == maxMismatches || *left == 0 {
		return
	}
	*left--
	m := Mismatch{Field: fieldOf(append([]string{"data"}, e.InstanceLocation...)), Detail: plain(e)}
	if _, words, cut := strings.Cut(m.Detail, "': "); cut {
		m.Detail = words
	}
	m.Detail = "The schema rejects it: " + m.Detail + "."
	if !slices.Contains(*found, m) {
		*found = append(*found, m)
	}
}

// Fault is the refusal of data that does not fit; nil where there is no mismatch.
func Fault(found []Mismatch) error {
	if len(found) == 0 {
		return nil
	}
	fields := make([]fault.Field, len(found))
	for i, m := range found {
		fields[i] = fault.Field{Name: m.Field, Code: "schema_mismatch", Detail: m.Detail}
	}
	return &fault.Error{
		Kind:   fault.Invalid,
		Code:   "schema_mismatch",
		Fields: fields,
		Detail: "The data doesn't match the schema of its event type. " + found[0].Field + ": " + found[0].Detail + " Fix the data, or the schema of the type.",
	}
}
