// Package schema checks events' data against JSON Schema (draft 2020-12 unless a schema names another). Schemas are
// written by tenants and run on the way of events: they load nothing, and compiling and checking are bounded.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"posthorn/domain/fault"
)

// The bounds.
const (
	maxBytes      = 64 << 10  // of a schema as JSON
	maxNodes      = 2000      // of a schema, what $ref leads to counted where it is referred to
	maxChecks     = 4_000_000 // nodes times values of the data
	maxMatching   = 32 << 20  // patterns times bytes of the data
	maxMismatches = 10        // that are told
)

// Schema is a compiled schema. It is read-only and safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	size     size
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
	w := walker{root: doc, known: map[string]*size{}}
	if err := w.refer("#"); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closed{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, invalid("The schema is invalid: " + plain(err) + ".")
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, invalid("The schema is invalid: " + plain(err) + ".")
	}
	return &Schema{compiled: compiled, size: *w.known["#"]}, nil
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

// Check says in what data, one JSON value, does not fit the schema; nil where it fits. At most ten things are told.
func (s *Schema) Check(data []byte) []Mismatch {
	values := 1 + bytes.Count(data, []byte{','}) + bytes.Count(data, []byte{':'})
	if s.size.nodes*values > maxChecks || s.size.patterns*len(data) > maxMatching {
		return []Mismatch{{"data", "The data has too many values to check against its schema. Send less data, or simplify the schema."}}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return []Mismatch{{"data", "The data isn't JSON."}}
	}
	err = s.compiled.Validate(value)
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		if err != nil {
			return []Mismatch{{"data", "The data can't be checked: " + plain(err) + "."}}
		}
		return nil
	}
	var found []Mismatch
	leaves(wrong, &found)
	return found
}

// leaves gathers the errors that have no further cause.
func leaves(e *jsonschema.ValidationError, found *[]Mismatch) {
	for _, cause := range e.Causes {
		leaves(cause, found)
	}
	if len(e.Causes) > 0 || len(*found) == maxMismatches {
		return
	}
	m := Mismatch{Field: strings.Join(append([]string{"data"}, e.InstanceLocation...), "."), Detail: plain(e)}
	if _, words, cut := strings.Cut(m.Detail, "': "); cut {
		m.Detail = words
	}
	m.Detail = "The schema rejects it: " + m.Detail + "."
	if len(m.Field) > 200 {
		m.Field = strings.ToValidUTF8(m.Field[:200], "") + "..."
	}
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
		Kind: fault.Invalid, Code: "schema_mismatch", Fields: fields,
		Detail: "The data doesn't match the schema of its event type. " + found[0].Field + ": " + found[0].Detail + " Fix the data, or the schema of the type.",
	}
}
