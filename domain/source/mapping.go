package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"cel.dev/cel-go/cel"

	"posthorn/domain/event"
	"posthorn/domain/expression"
	"posthorn/domain/fault"
	"posthorn/domain/transform"
)

// DefaultMapping takes a message that is an event as the API has it.
const DefaultMapping = "body"

// MaxMapping bounds a mapping, in bytes.
const MaxMapping = 16 << 10

// language is what mappings can use.
var language = &expression.Language{
	MaxSource:   MaxMapping,
	MaxEstimate: 2_000_000,
	MaxCost:     30_000,
	Options: append(transform.Functions(),
		cel.Variable("body", cel.DynType),
		cel.Variable("message", cel.MapType(cel.StringType, cel.DynType)),
		cel.OptionalTypes(),
	),
}

// Mapping is a mapping that is ready to run. It is read-only and safe for concurrent use.
type Mapping struct{ program *expression.Program }

// Compile prepares a mapping. The error is a *fault.Error.
func Compile(text string) (Mapping, error) {
	if len(text) > MaxMapping {
		return Mapping{}, invalid(fmt.Sprintf("A mapping can have at most %d KiB.", MaxMapping>>10))
	}
	p, err := language.Compile(text)
	var at *expression.Problem
	switch {
	case errors.As(err, &at):
		return Mapping{}, invalid("Invalid expression: " + at.Error() + ". It can use body and message.")
	case errors.Is(err, expression.ErrExpensive):
		return Mapping{}, invalid("The expression is too expensive for large messages. Use fewer nested loops (map, filter, all, exists).")
	case err != nil:
		return Mapping{}, &fault.Error{Kind: fault.Internal, Code: "internal", Detail: "Expressions can't be compiled right now. Try again, and contact the operator if this persists.", Cause: err}
	}
	if k := p.Type().Kind(); k != cel.DynKind && k != cel.MapKind {
		return Mapping{}, invalid(`A mapping makes an object, such as {"type": "order.created", "data": body}.`)
	}
	return Mapping{p}, nil
}

func invalid(detail string) error { return fault.InvalidField("mapping", "mapping_invalid", detail) }

// Event is the event that a mapping makes of a message, as the body of a request to the API, and as it is read. now
// bounds its times. The error is a *fault.Error.
func (m Mapping) Event(of Message, now time.Time) (body []byte, e event.Emission, err error) {
	v, err := m.program.Run(&variables{of: of})
	if err == nil {
		body, err = transform.AppendJSON(nil, v)
	}
	if err != nil {
		var at *expression.Problem
		if !errors.As(err, &at) {
			at = &expression.Problem{Text: err.Error()}
		}
		return nil, e, fault.New(fault.Invalid, "mapping_failed", "The mapping can't be applied to the message: "+at.Error()+".")
	}
	e, err = event.Parse(body, event.Limits{MaxPayload: event.DefaultMaxPayload}, now)
	return body, e, err
}

// variables are what a mapping can use. The body is decoded when something first asks for it.
type variables struct {
	of   Message
	body any
	read bool
}

// ResolveName implements cel.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "body":
		if !v.read {
			v.body, v.read = v.of.decoded(), true
		}
		return v.body, true
	case "message":
		headers := make(map[string]any, len(v.of.Headers))
		for name, value := range v.of.Headers {
			headers[name] = value
		}
		out := map[string]any{
			"id":        orNull(v.of.ID),
			"type":      orNull(v.of.Type),
			"key":       orNull(v.of.Key),
			"queue":     v.of.Queue,
			"partition": int64(v.of.Partition),
			"offset":    v.of.Offset,
			"headers":   headers,
			"text":      v.of.Text,
			"time":      nil,
		}
		if v.of.Time != nil {
			out["time"] = v.of.Time.UTC().Format(time.RFC3339Nano)
		}
		return out, true
	}
	return nil, false
}

// orNull is a text, or null where the message has none, so that an event has none either.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Parent implements cel.Activation.
func (*variables) Parent() cel.Activation { return nil }

// decoded is the body as JSON, its numbers as they were written, or as text where it is none.
func (m Message) decoded() any {
	text := m.Body()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err == nil {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return v
		}
	}
	if len(text) == 0 {
		return nil
	}
	if m.Bytes != nil {
		return m.Bytes
	}
	return m.Text
}
