package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"posthorn/domain/expression"
	"posthorn/domain/fault"
	"posthorn/domain/signature"
)

// language is what expressions of transformations can use.
var language = &expression.Language{
	MaxSource:   MaxExpression,
	MaxEstimate: 2_000_000,
	MaxCost:     30_000,
	Options: append(functions,
		cel.Variable("event", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("data", cel.DynType),
		cel.Variable("delivery", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("endpoint", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("vars", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("link", cel.StringType),
		cel.OptionalTypes(),
	),
}

// Compiled is a transformation that is ready to run. It is read-only and safe for concurrent use.
type Compiled struct {
	t       *Transformation
	body    *expression.Program // of CEL
	headers map[string]*expression.Program
	names   []string // of the headers, in order
	keep    tree
	drop    tree
	redact  tree
}

func (t *Transformation) compile() (*Compiled, error) {
	c := &Compiled{t: t, headers: map[string]*expression.Program{}, keep: treeOf(t.Keep), drop: treeOf(t.Drop), redact: treeOf(t.Redact)}
	var err error
	if t.Kind == CEL {
		if c.body, err = language.Compile(t.Expression); err != nil {
			return nil, wrongExpression("expression", err)
		}
	}
	c.names = slices.Sorted(maps.Keys(t.Headers))
	for _, name := range c.names {
		if len(t.Headers[name]) > maxHeader {
			return nil, refuse("headers."+name, "out_of_range", fmt.Sprintf("The expression of a header has at most %d bytes.", maxHeader))
		}
		if c.headers[name], err = language.Compile(t.Headers[name]); err != nil {
			return nil, wrongExpression("headers."+name, err)
		}
	}
	return c, nil
}

func wrongExpression(field string, err error) error {
	var p *expression.Problem
	switch {
	case errors.As(err, &p):
		where := ""
		if p.Line > 0 {
			where = fmt.Sprintf(" at line %d, column %d", p.Line, p.Column)
		}
		return refuse(field, "transformation_invalid", "Invalid expression"+where+": "+p.Text+". It can use event, data, delivery, endpoint, vars, and link.")
	case errors.Is(err, expression.ErrExpensive):
		return refuse(field, "transformation_invalid", "The expression is too expensive for large events. Use fewer nested loops (map, filter, all, exists).")
	}
	return &fault.Error{Kind: fault.Internal, Code: "internal", Detail: "Expressions can't be compiled right now. Try again, and contact the operator if this persists.", Cause: err}
}

// Input is an event on its way to an endpoint.
type Input struct {
	Message  signature.Message
	Format   signature.Format
	Key      string
	Channels []string
	JSON     bool          // nothing else can be sent: several events share a request
	Link     func() string // the delivery's signed link, made when an expression reads it
}

// Output is a request's content.
type Output struct {
	Body        []byte
	ContentType string
	Method      string             // empty: POST
	Headers     []signature.Header // in the order of their names
}

// Render applies the transformation to an event. The error is a *Problem.
func (c *Compiled) Render(in Input) (out Output, err error) {
	vars := &variables{c: c, in: &in}
	m := in.Message
	out.ContentType = m.BodyType(in.Format)
	switch c.t.Kind {
	case Fields:
		if m.Data, err = c.part(m); err != nil {
			return out, err
		}
		out.Body = signature.AppendBody(nil, in.Format, m)
	case CEL:
		if out.Body, out.ContentType, err = c.build(vars); err != nil {
			return out, err
		}
	default:
		out.Body = signature.AppendBody(nil, in.Format, m)
	}
	if c.t.ContentType != "" {
		out.ContentType = c.t.ContentType
	}
	if kind, _, _ := mime.ParseMediaType(out.ContentType); in.JSON && kind != jsonType && !strings.HasSuffix(kind, "+json") {
		return out, &Problem{Problem: expression.Problem{Text: "it makes " + kind + ", but events that share a request must be JSON"}}
	}
	out.Method = c.t.Method
	for _, name := range c.names {
		value, err := c.header(name, vars)
		if err != nil {
			return out, err
		}
		if value != "" {
			out.Headers = append(out.Headers, signature.Header{Name: name, Value: value})
		}
	}
	return out, nil
}

// build is the body that the expression makes: text as it is, and everything else as JSON.
func (c *Compiled) build(vars *variables) (body []byte, contentType string, err error) {
	v, err := c.body.Run(vars)
	if err != nil {
		return nil, "", problemOf("", vars, err)
	}
	if text, ok := v.(types.String); ok {
		if len(text) > MaxOutput {
			return nil, "", &Problem{Problem: expression.Problem{Text: tooLarge}}
		}
		return []byte(text), textType, nil
	}
	if body, err = appendValue(nil, v, 0); err != nil {
		return nil, "", problemOf("", vars, err)
	}
	return body, jsonType, nil
}

func (c *Compiled) header(name string, vars *variables) (string, error) {
	v, err := c.headers[name].Run(vars)
	if err != nil {
		return "", problemOf(name, vars, err)
	}
	var text string
	switch v := v.(type) {
	case types.String:
		text = string(v)
	case types.Null:
		return "", nil
	case types.Int, types.Uint, types.Double, types.Bool:
		b, err := appendValue(nil, v, 0)
		if err != nil {
			return "", problemOf(name, vars, err)
		}
		text = string(b)
	default:
		if o, is := v.(*types.Optional); is && !o.HasValue() {
			return "", nil
		}
		return "", problemOf(name, vars, errors.New("a header's value is a string, a number, true, false, or null for none"))
	}
	if text = strings.TrimSpace(text); len(text) > maxHeaderSize || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", problemOf(name, vars, fmt.Errorf("a header's value has no control characters and at most %d bytes", maxHeaderSize))
	}
	return text, nil
}

func problemOf(header string, vars *variables, err error) error {
	if vars.err != nil {
		err = vars.err
	}
	p := &Problem{Header: header}
	var at *expression.Problem
	if errors.As(err, &at) {
		p.Problem = *at
	} else {
		p.Text = err.Error()
	}
	return p
}

// decode reads data with its numbers as they were written.
func decode(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if len(data) > 0 {
		err = d.Decode(&v)
	}
	return v, err
}

// variables are what an expression can use. An event's data is decoded when something first asks for it.
type variables struct {
	c    *Compiled
	in   *Input
	once sync.Once
	data any
	err  error
}

// ResolveName implements cel.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	m := &v.in.Message
	switch name {
	case "data":
		v.once.Do(func() { v.data, v.err = decode(m.Data) })
		return v.data, true
	case "event":
		at := m.OccurredAt
		if at.IsZero() {
			at = m.CreatedAt
		}
		channels := make([]any, len(v.in.Channels))
		for i, c := range v.in.Channels {
			channels[i] = c
		}
		return map[string]any{
			"id":           m.EventID,
			"type":         m.Type,
			"timestamp":    signature.Timestamp(at),
			"created_at":   signature.Timestamp(m.CreatedAt),
			"key":          v.in.Key,
			"channels":     channels,
			"version":      m.Version,
			"content_type": m.BodyType(signature.Raw),
		}, true
	case "delivery":
		return map[string]any{"id": m.DeliveryID, "first_id": m.FirstID}, true
	case "endpoint":
		return map[string]any{"id": m.EndpointID}, true
	case "link":
		if v.in.Link == nil {
			return "", true
		}
		return v.in.Link(), true
	case "vars":
		all := make(map[string]any, len(v.c.t.Variables))
		for name, value := range v.c.t.Variables {
			all[name] = value
		}
		return all, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*variables) Parent() cel.Activation { return nil }
