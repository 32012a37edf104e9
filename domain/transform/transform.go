// Package transform shapes what an endpoint receives: fewer fields, or JSON that an expression builds. A transformation
// is a pure function of the event, so that every attempt of a delivery has the same bytes (docs/transformations.md).
package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"posthorn/domain/egress"
	"posthorn/domain/expression"
	"posthorn/domain/fault"
)

// Kind is what becomes of the body.
type Kind string

// The kinds.
const (
	Full   Kind = "full"   // as the endpoint's format has it
	Fields Kind = "fields" // as the format has it, with a part of the data
	CEL    Kind = "cel"    // what an expression builds
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Full, Fields, CEL} }

// The bounds.
const (
	MaxExpression = 16 << 10 // bytes
	maxHeader     = 1 << 10  // bytes of a header's expression
	maxHeaders    = 20
	maxPaths      = 100
	maxPath       = 200 // bytes
	maxVariables  = 20
	maxVariable   = 4 << 10 // bytes of a value
	MaxOutput     = 1 << 20 // bytes of a body
	maxHeaderSize = 4 << 10 // bytes of a header's value
	maxDepth      = 64      // of a body
	redacted      = "***"   // in the place of a value
	jsonType      = "application/json"
	textType      = "text/plain; charset=utf-8"
)

// Marker stands for the value of a variable in responses. Sent back, it keeps what is stored.
const Marker = "***"

// Methods lists the methods that a request can have, the default first.
func Methods() []string { return []string{http.MethodPost, http.MethodPut, http.MethodPatch} }

// Transformation is what an endpoint makes of its events. Fields of other kinds are empty.
type Transformation struct {
	Kind        Kind              `json:"kind"`
	Preset      string            `json:"preset,omitempty"`     // what it was made from; changes nothing
	Keep        []string          `json:"keep,omitempty"`       // of Fields: paths into the data that stay; none: all
	Drop        []string          `json:"drop,omitempty"`       // of Fields: paths that are removed
	Redact      []string          `json:"redact,omitempty"`     // of Fields: paths whose value becomes "***"
	Expression  string            `json:"expression,omitempty"` // of CEL
	ContentType string            `json:"content_type,omitempty"`
	Method      string            `json:"method,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`   // expressions by header name
	Variables   map[string]string `json:"variables,omitempty"` // of expressions, as vars; stored sealed
}

// Clone is a copy that shares nothing with t.
func (t *Transformation) Clone() *Transformation {
	if t == nil {
		return nil
	}
	c := *t
	c.Keep, c.Drop, c.Redact = slices.Clone(t.Keep), slices.Clone(t.Drop), slices.Clone(t.Redact)
	c.Headers, c.Variables = maps.Clone(t.Headers), maps.Clone(t.Variables)
	return &c
}

// Shown is the transformation without the values of its variables.
func (t *Transformation) Shown() *Transformation {
	c := t.Clone()
	if c != nil {
		for name := range c.Variables {
			c.Variables[name] = Marker
		}
	}
	return c
}

// hidden stands for the value of a variable where a transformation is tried.
const hidden = "[hidden]"

// Hidden is the transformation for trying it without the values of its variables, which nobody can read back.
func (t *Transformation) Hidden() *Transformation {
	c := t.Clone()
	if c != nil {
		for name := range c.Variables {
			c.Variables[name] = hidden
		}
	}
	return c
}

// KeepVariables takes the values over that are only marked.
func (t *Transformation) KeepVariables(before *Transformation) {
	if t == nil {
		return
	}
	for name, value := range t.Variables {
		if value == Marker && before != nil && before.Variables[name] != "" {
			t.Variables[name] = before.Variables[name]
		}
	}
}

// Parse reads a transformation from JSON; null is nil. It rejects fields that there are not. A preset fills what is
// left out.
func Parse(raw []byte) (*Transformation, error) {
	var t *Transformation
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, refuse("", "body_malformed", "transformation has another shape: "+strings.TrimPrefix(err.Error(), "json: ")+".")
	}
	if t != nil {
		return t, t.fill()
	}
	return nil, nil
}

// fill sets what a preset says and the request does not.
func (t *Transformation) fill() error {
	if t.Preset == "" {
		return nil
	}
	p, ok := PresetNamed(t.Preset)
	if !ok {
		return refuse("preset", "transformation_invalid", "There is no such preset. Use one of "+strings.Join(PresetNames(), ", ")+".")
	}
	if t.Kind == "" {
		t.Kind = CEL
	}
	if t.Kind != CEL || t.Expression != "" {
		return nil
	}
	t.Expression = p.Expression
	if t.ContentType == "" {
		t.ContentType = p.ContentType
	}
	if t.Method == "" {
		t.Method = p.Method
	}
	if t.Headers == nil {
		t.Headers = maps.Clone(p.Headers)
	}
	return nil
}

func refuse(field, code, detail string) *fault.Error {
	return fault.InvalidField(strings.TrimSuffix("transformation."+field, "."), code, detail)
}

// Check says what is wrong with a transformation. http: its endpoint has requests with a method. taken are names of
// headers that the endpoint's format sets. The error is a *fault.Error that names every wrong field.
func (t *Transformation) Check(http bool, taken ...string) error {
	if t == nil {
		return nil
	}
	var wrong []fault.Field
	add := func(err error) {
		var f *fault.Error
		if errors.As(err, &f) {
			wrong = append(wrong, f.Fields...)
		}
	}
	if !slices.Contains(Kinds(), t.Kind) {
		add(refuse("kind", "transformation_invalid", "transformation.kind must be full, fields, or cel."))
	}
	add(t.checkPaths())
	add(t.checkRequest(http, taken))
	add(t.checkVariables())
	if t.Kind == CEL && strings.TrimSpace(t.Expression) == "" {
		add(refuse("expression", "transformation_invalid", "A transformation of the kind cel needs an expression. Write one, such as {\"text\": data.message}."))
	}
	if t.Kind != CEL && t.Expression != "" {
		add(refuse("expression", "transformation_invalid", "Only a transformation of the kind cel has an expression. Leave it out, or set kind to cel."))
	}
	if len(wrong) == 0 {
		_, err := t.compile()
		add(err)
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	return nil
}

func (t *Transformation) checkPaths() error {
	lists := map[string][]string{"keep": t.Keep, "drop": t.Drop, "redact": t.Redact}
	for _, name := range []string{"keep", "drop", "redact"} {
		list := lists[name]
		switch {
		case len(list) > 0 && t.Kind != Fields:
			return refuse(name, "transformation_invalid", "Only a transformation of the kind fields has "+name+". Leave it out, or set kind to fields.")
		case len(list) > maxPaths:
			return refuse(name, "transformation_invalid", fmt.Sprintf("%s can have at most %d paths; this has %d.", name, maxPaths, len(list)))
		}
		for _, path := range list {
			if len(path) > maxPath || slices.Contains(strings.Split(path, "."), "") {
				return refuse(name, "transformation_invalid", fmt.Sprintf(
					"A path names a field of the data, such as customer.email; * is every field or element, such as items.*.price. It has at most %d characters.", maxPath))
			}
		}
	}
	if t.Kind == Fields && len(t.Keep)+len(t.Drop)+len(t.Redact) == 0 {
		return refuse("", "transformation_invalid", "A transformation of the kind fields needs keep, drop, or redact.")
	}
	return nil
}

func (t *Transformation) checkRequest(http bool, taken []string) error {
	switch {
	case t.Method != "" && !http:
		return refuse("method", "transformation_invalid", "Only requests over HTTP have a method. Leave it out.")
	case t.Method != "" && !slices.Contains(Methods(), t.Method):
		return refuse("method", "transformation_invalid", "transformation.method must be POST, PUT, or PATCH.")
	case len(t.Headers) > maxHeaders:
		return refuse("headers", "transformation_invalid", fmt.Sprintf("A transformation can have at most %d headers; this has %d.", maxHeaders, len(t.Headers)))
	}
	if t.ContentType != "" {
		if _, _, err := mime.ParseMediaType(t.ContentType); err != nil || len(t.ContentType) > 100 {
			return refuse("content_type", "transformation_invalid", "content_type is no media type. Write one such as application/json or text/plain; charset=utf-8.")
		}
	}
	names := make(map[string]string, len(t.Headers))
	for name := range t.Headers {
		names[name] = "x"
	}
	err := egress.CheckHeaders(names, taken...)
	var f *fault.Error
	if errors.As(err, &f) && len(f.Fields) > 0 {
		return refuse("headers", f.Fields[0].Code, f.Fields[0].Detail)
	}
	return nil
}

func (t *Transformation) checkVariables() error {
	if len(t.Variables) > maxVariables {
		return refuse("variables", "transformation_invalid", fmt.Sprintf("A transformation can have at most %d variables; this has %d.", maxVariables, len(t.Variables)))
	}
	for name, value := range t.Variables {
		switch {
		case !isName(name):
			return refuse("variables", "transformation_invalid", "A variable's name has 1 to 50 lowercase letters, digits, and underscores, and begins with a letter, such as routing_key.")
		case value == "":
			return refuse("variables."+name, "transformation_invalid", "The variable "+name+" needs a value. Set it, or leave the variable out.")
		case value == Marker:
			return refuse("variables."+name, "transformation_invalid", "The variable "+name+" has no stored value. Send its value.")
		case len(value) > maxVariable:
			return refuse("variables."+name, "out_of_range", fmt.Sprintf("A variable's value has at most %d bytes.", maxVariable))
		}
	}
	return nil
}

func isName(s string) bool {
	if s == "" || len(s) > 50 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Problem is why a transformation can't be applied to an event.
type Problem struct {
	Header string // whose expression failed; empty: the body's
	expression.Problem
}

// Error is the problem in a sentence without its end.
func (p *Problem) Error() string {
	where := "the expression"
	if p.Header != "" {
		where = "the expression of the header " + p.Header
	}
	if p.Line > 0 {
		where += fmt.Sprintf(" at line %d, column %d", p.Line, p.Column)
	}
	return where + ": " + p.Text
}

// Mark is the line of an expression that a problem is in, and below it a caret at its character; empty: the problem is
// nowhere in particular.
func (p *Problem) Mark(source string) string {
	lines := strings.Split(source, "\n")
	if p == nil || p.Line < 1 || p.Line > len(lines) {
		return ""
	}
	line := strings.ReplaceAll(strings.TrimRight(lines[p.Line-1], "\r"), "\t", " ")
	return line + "\n" + strings.Repeat(" ", max(min(p.Column-1, utf8.RuneCountInString(line)), 0)) + "^"
}

// Source is the expression that a problem is in.
func (t *Transformation) Source(p *Problem) string {
	if t == nil || p == nil {
		return ""
	}
	if p.Header != "" {
		return t.Headers[p.Header]
	}
	return t.Expression
}

// Misplaced is where an expression can't be compiled; nil: all can be.
func (t *Transformation) Misplaced() *Problem {
	if t == nil {
		return nil
	}
	at := func(header, source string) *Problem {
		var p *expression.Problem
		if _, err := language.Compile(source); errors.As(err, &p) {
			return &Problem{Header: header, Problem: *p}
		}
		return nil
	}
	if t.Kind == CEL && len(t.Expression) <= MaxExpression {
		if p := at("", t.Expression); p != nil {
			return p
		}
	}
	for i, name := range slices.Sorted(maps.Keys(t.Headers)) {
		if i == maxHeaders || len(t.Headers[name]) > maxHeader {
			break
		}
		if p := at(name, t.Headers[name]); p != nil {
			return p
		}
	}
	return nil
}
