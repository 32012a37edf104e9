package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// equality is one clause of a plain filter: what must stand at a path.
type equality struct {
	path []string
	want any // nil, bool, string, int64, uint64, float64 or precise
}

// compileEqualities reads {"path.to.field": scalar}. It reads token by token, since a map would hide a path that is
// given twice.
func compileEqualities(raw []byte) (*Filter, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if !json.Valid(raw) {
		return nil, invalid("The filter isn't a JSON object.")
	}
	if _, err := dec.Token(); err != nil { // the opening brace
		return nil, invalid("The filter isn't a JSON object.")
	}
	f := &Filter{readsData: true}
	seen := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, invalid("The filter isn't a JSON object.")
		}
		path := name.(string) // a valid object's member begins with a string
		value, err := dec.Token()
		if err != nil {
			return nil, invalid("The filter isn't a JSON object.")
		}
		parts := strings.Split(path, ".")
		switch _, container := value.(json.Delim); {
		case container:
			return nil, invalid(fmt.Sprintf("The filter's value at %.64q is an object or a list. Use a string, number, true, false, or null, or write an expression instead.", path))
		case seen[path]:
			return nil, invalid(fmt.Sprintf("The filter has the path %.64q twice.", path))
		case hasEmpty(parts):
			return nil, invalid(fmt.Sprintf("The filter's path %.64q has an empty segment. Use field names joined by dots, such as order.status.", path))
		}
		seen[path] = true
		f.equal = append(f.equal, equality{path: parts, want: exact(value, new(bool))})
	}
	if len(f.equal) == 0 {
		return nil, nil // all of nothing: every event
	}
	return f, nil
}

func hasEmpty(parts []string) bool {
	for _, part := range parts {
		if part == "" {
			return true
		}
	}
	return false
}

// matchEqualities reports whether every clause holds. A path that leads nowhere holds nothing, null neither.
func matchEqualities(clauses []equality, data any) bool {
	for _, clause := range clauses {
		if _, equal := clause.holds(data); !equal {
			return false
		}
	}
	return true
}

// holds reports whether there is a value at the clause's path, and whether it is what the clause asks for.
func (e *equality) holds(data any) (there, equal bool) {
	at := data
	for _, name := range e.path {
		object, ok := at.(map[string]any)
		if !ok {
			return false, false
		}
		if at, ok = object[name]; !ok {
			return false, false
		}
	}
	return true, equalScalars(at, e.want)
}

// equalScalars compares two scalars; numbers by value, whatever their form: 1, 1.0 and 1e0 are equal.
func equalScalars(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64, uint64, float64, precise:
		return equalNumbers(a, b)
	}
	return false
}

func equalNumbers(a, b any) bool {
	if p, ok := a.(precise); ok {
		return p.equals(b)
	}
	if p, ok := b.(precise); ok {
		return p.equals(a)
	}
	if f, ok := a.(float64); ok {
		a = whole(f)
	}
	if f, ok := b.(float64); ok {
		b = whole(f)
	}
	return a == b
}

// equals compares by exact value: a double is the shortest number that reads as it, as it was written.
func (p precise) equals(other any) bool {
	switch other := other.(type) {
	case precise:
		return p.exact == other.exact
	case int64:
		return p.exact == canonical(strconv.FormatInt(other, 10))
	case uint64:
		return p.exact == canonical(strconv.FormatUint(other, 10))
	case float64:
		return p.exact == canonical(strconv.FormatFloat(other, 'e', -1, 64))
	}
	return false
}

// whole is a double as the integer that it equals, in the form that number gives such an integer; else as it is.
func whole(f float64) any {
	if f != math.Trunc(f) {
		return f
	}
	// Both limits are exact powers of two; the largest int64 and uint64 are not doubles.
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	if f >= 1<<63 && f < 1<<64 {
		return uint64(f)
	}
	return f
}
