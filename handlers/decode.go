package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/event"
	"posthorn/domain/fault"
)

// maxDepth bounds how deep the JSON of a management call can be nested.
const maxDepth = 32

// decode reads one JSON object strictly. encoding/json alone would accept URL for url, the last of two equal names,
// and null for anything.
func decode(body []byte, into any) error {
	if err := wellFormed(body); err != nil {
		return err
	}
	w := walker{dec: json.NewDecoder(bytes.NewReader(body))}
	w.dec.UseNumber()
	if err := w.value(shape{t: reflect.TypeOf(into).Elem()}, ""); err != nil {
		return err
	}
	if len(w.wrong) > 0 {
		return fault.InvalidFields(w.wrong)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return notJSON(body)
	}
	return nil
}

// DecodeObject is Decode for a JSON object within a body.
func DecodeObject(text []byte, into any) error { return decode(text, into) }

func wellFormed(body []byte) error {
	if !utf8.Valid(body) {
		return fault.New(fault.Invalid, event.CodeNotUTF8, "The body is not UTF-8. Encode the request as UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a number beyond the range of doubles is JSON
	depth := 0
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) && depth == 0 && len(bytes.TrimSpace(body)) > 0 {
			break
		}
		if err != nil {
			return notJSON(body)
		}
		if d, ok := token.(json.Delim); ok {
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
		}
		if depth > maxDepth {
			return fault.New(fault.Invalid, event.CodeTooDeep, fmt.Sprintf("The JSON nests more than %d arrays and objects. Flatten it.", maxDepth))
		}
	}
	if !json.Valid(body) { // Token accepts a second value after the first
		return notJSON(body)
	}
	return nil
}

// notJSON says where a body stops being JSON. encoding/json found that it does.
func notJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return fault.New(fault.Invalid, event.CodeNotJSON, "The body is empty. Send a JSON object.")
	}
	if err := event.CheckJSON(body); err != nil {
		return err
	}
	return fault.New(fault.Invalid, event.CodeNotJSON, "The body is not JSON. Send one JSON object.")
}

// walker compares the names, types, and nulls of a document with a Go type, before encoding/json fills it.
type walker struct {
	dec   *json.Decoder
	wrong []fault.Field
}

// maxWrong bounds how many invalid fields one response lists.
const maxWrong = 20

func (w *walker) refuse(path, code, detail string) {
	if len(w.wrong) < maxWrong {
		w.wrong = append(w.wrong, fault.Field{Name: path, Code: code, Detail: detail})
	}
}

// shape is what is permitted at one position of a document.
type shape struct {
	t    reflect.Type // nil: anything
	null bool
}

var (
	rawMessage = reflect.TypeFor[json.RawMessage]()
	timeType   = reflect.TypeFor[time.Time]()
)

// isTime reports whether a type is a time, or a named type with a time underneath.
func isTime(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Struct && t.ConvertibleTo(timeType)
}

// field is the shape of a struct's field or a slice's element. A pointer says that it can be left out, but does not
// permit null.
func field(t reflect.Type) shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawMessage, t.Kind() == reflect.Interface:
		return shape{null: true}
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.Bool: // nullable.Nullable
		inner := field(t.Elem())
		inner.null = true
		return inner
	}
	return shape{t: t}
}

// member is the shape of a map's value: there a pointer permits null.
func member(t reflect.Type) shape {
	s := field(t)
	s.null = s.null || t.Kind() == reflect.Pointer
	return s
}

// value checks the next value. The document has passed wellFormed, so the decoder returns no errors.
func (w *walker) value(s shape, path string) error {
	token, err := w.dec.Token()
	if err != nil {
		return notJSON(nil)
	}
	if number, ok := token.(json.Number); ok {
		if _, err := number.Float64(); err != nil {
			w.refuse(path, "out_of_range", fmt.Sprintf("The field %q is a number beyond 1.7e308, which is the largest.", path))
			return nil
		}
	}
	if why := s.mismatch(path, token); why != "" {
		code := event.CodeFieldType
		switch {
		case path == "":
			code = event.CodeNotObject
		case isTime(s.t) && token != nil:
			code = event.CodeTimeMalformed
		}
		w.refuse(path, code, why)
		s = shape{}
	}
	switch token {
	case json.Delim('{'):
		return w.object(s.t, path)
	case json.Delim('['):
		element := shape{null: true}
		if s.t != nil {
			element = field(s.t.Elem())
		}
		for i := 0; w.dec.More(); i++ {
			if err := w.value(element, join(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
		_, err := w.dec.Token()
		return err
	}
	return nil
}

func (w *walker) object(t reflect.Type, path string) error {
	var known map[string]shape
	if t != nil && t.Kind() == reflect.Struct {
		known = fieldsOf(t)
	}
	seen := map[string]bool{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return notJSON(nil)
		}
		name, _ := token.(string)
		at := join(path, shorten(name))
		inner := shape{null: true}
		switch {
		case known != nil:
			s, ok := known[name]
			if !ok {
				w.refuse(at, event.CodeUnknownField, fmt.Sprintf("Unknown field %q. The fields are %s.", at, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
			} else {
				inner = s
			}
		case t != nil:
			inner = member(t.Elem())
		}
		if t != nil && seen[name] {
			w.refuse(at, event.CodeDuplicateField, fmt.Sprintf("The field %q appears twice. Send it once.", at))
		}
		seen[name] = true
		if err := w.value(inner, at); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// mismatch says why the value at a path can't be of this kind, or nothing.
func (s shape) mismatch(path string, token json.Token) string {
	subject := "The body"
	if path != "" {
		subject = fmt.Sprintf("The field %q", path)
	}
	if token == nil {
		if s.null {
			return ""
		}
		return subject + " must not be null. Use a value, or leave the field out."
	}
	if s.t == nil {
		return ""
	}
	var wanted string
	var ok bool
	switch kind := s.t.Kind(); {
	case isTime(s.t):
		wanted = "an RFC 3339 time with its offset, such as 2026-01-31T12:00:00Z"
		text, isText := token.(string)
		var at time.Time
		ok = isText && at.UnmarshalText([]byte(text)) == nil && at.Year() >= 1970 && at.Year() <= 9999
	case kind == reflect.Struct, kind == reflect.Map:
		wanted, ok = "an object", token == json.Delim('{')
	case kind == reflect.Slice:
		wanted, ok = "an array", token == json.Delim('[')
	case kind == reflect.String:
		wanted = "a string without NUL"
		var text string
		if text, ok = token.(string); ok {
			ok = !strings.ContainsRune(text, 0) // PostgreSQL's text cannot hold it
		}
	case kind == reflect.Bool:
		wanted = "true or false"
		_, ok = token.(bool)
	case kind == reflect.Float64:
		wanted = "a number"
		var number json.Number
		if number, ok = token.(json.Number); ok {
			_, err := number.Float64()
			ok = err == nil
		}
	default:
		wanted = "a whole number"
		var number json.Number
		if number, ok = token.(json.Number); ok {
			_, err := strconv.ParseInt(number.String(), 10, 32)
			ok = err == nil
		}
	}
	if ok {
		return ""
	}
	return subject + " must be " + wanted + "."
}

func fieldsOf(t reflect.Type) map[string]shape {
	known := make(map[string]shape, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			known[name] = field(f.Type)
		}
	}
	return known
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
