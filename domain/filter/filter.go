package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"posthorn/domain/expression"
	"posthorn/domain/fault"
)

// maxFilter bounds a filter as JSON, in bytes.
const maxFilter = 4 << 10

// Filter is a compiled filter. The nil *Filter matches every event. It is read-only and safe for concurrent use.
type Filter struct {
	program   *expression.Program // of an expression, or
	equal     []equality          // of a plain object
	readsData bool                // the expression looks at data, which must be decoded first
}

// Compile makes a Filter of a JSON value of at most 4 KiB:
//
//   - null, "", {} or nothing: no filter, a nil *Filter;
//   - a string: a CEL expression over type (string), data (the event's data, any shape) and channels (list of strings),
//     which must say true or false: data.amount > 100 && "eu" in channels;
//   - an object: paths into data with the scalars that must stand there, all of them: {"order.status": "paid"}.
//
// Expressions that would cost too much to run are refused; so is a pattern of matches() that is not a literal. Errors
// are *fault.Error with code filter_invalid and field filter, with the position in an expression.
func Compile(raw []byte) (*Filter, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > maxFilter {
		return nil, invalid(fmt.Sprintf("The filter has %d bytes; the maximum is %d.", len(raw), maxFilter))
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '"':
		var expression string
		if err := json.Unmarshal(raw, &expression); err != nil {
			return nil, invalid("The filter isn't a JSON string.")
		}
		return compileExpression(expression)
	case raw[0] == '{':
		return compileEqualities(raw)
	}
	return nil, invalid("A filter must be a string with an expression, or an object of paths and values.")
}

func invalid(detail string) *fault.Error {
	return fault.InvalidField("filter", "filter_invalid", detail)
}

// Match reports whether the filter takes an event. An expression that can't be evaluated on this event (a field that is
// missing, a comparison of different types, too much work) takes nothing, and the error says why in terms of the
// expression.
func (f *Filter) Match(in *Input) (bool, error) {
	if f == nil {
		return true, nil
	}
	if f.readsData {
		if _, err := in.decoded(); err != nil {
			return false, err
		}
	}
	if f.program == nil {
		return matchEqualities(f.equal, in.data), nil
	}
	out, err := f.program.Run((*variables)(in))
	if err != nil {
		var why *expression.Problem
		if errors.As(err, &why) {
			err = errors.New(why.Text)
		}
		return false, err
	}
	answer, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("the expression doesn't return true or false for this event")
	}
	return answer, nil
}

// ReadsData reports whether the filter looks at the event's data at all.
func (f *Filter) ReadsData() bool { return f != nil && f.readsData }

// Explain says in a sentence why the filter does not take an event, more closely than Decide does, which runs on the
// way of every event. It is empty where the filter takes the event. It names fields and never shows what is in them.
func (f *Filter) Explain(in *Input) string {
	ok, err := f.Match(in)
	switch {
	case ok:
		return ""
	case err != nil:
		return "The endpoint's filter can't be evaluated for this event: " + err.Error() + "."
	case f.program != nil:
		return "The endpoint's filter returns false for this event."
	}
	for _, clause := range f.equal {
		if there, equal := clause.holds(in.data); !there {
			return fmt.Sprintf("The endpoint's filter uses the field %.64q, which this event's data doesn't have.", strings.Join(clause.path, "."))
		} else if !equal {
			return fmt.Sprintf("The field %.64q in this event's data doesn't have the value that the endpoint's filter expects.", strings.Join(clause.path, "."))
		}
	}
	return ""
}
