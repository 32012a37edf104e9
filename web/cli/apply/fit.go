package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fits compares fields with the API's type itself, so that each mistake has its path and line. The messages of
// encoding/json differ between Go's versions.
func fits[T any](d *decoder, fields map[string]any, path string, except ...string) {
	t := reflect.TypeFor[T]()
	for name, v := range fields {
		if slices.Contains(except, name) {
			continue
		}
		if inner, ok := typeOf(t, name); ok {
			d.fit(inner, v, join(path, name))
		} else {
			d.problem(join(path, name), "Unknown field. The API's reference lists the fields.")
		}
	}
}

// typeOf is the type of a struct's field by its name in JSON.
func typeOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if named, _, _ := strings.Cut(f.Tag.Get("json"), ","); named == name && name != "-" {
			return f.Type, true
		}
	}
	return nil, false
}

// fit checks the value at a path against a type. null fits everywhere: it resets the field, or the API rejects it.
func (d *decoder) fit(t reflect.Type, v any, path string) {
	if _, is := v.(unset); is {
		v = "" // a reference is a text, also for a value of another type
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map && t.Key().Kind() == reflect.Bool { // nullable.Nullable
		t = t.Elem()
	}
	if v == nil || t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
		return
	}
	var ok bool
	switch value := v.(type) {
	case map[string]any:
		ok = d.fitMapping(t, value, path)
	case []any:
		if ok = t.Kind() == reflect.Slice; ok {
			for i, item := range value {
				d.fit(t.Elem(), item, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	default:
		ok = fitsScalar(t, v)
	}
	if !ok {
		d.problem(path, fmt.Sprintf("This must be %s, not %s.", typeName(t), givenName(v)))
	}
}

func (d *decoder) fitMapping(t reflect.Type, value map[string]any, path string) bool {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return false
	case t.Kind() == reflect.Map:
		for name, v := range value {
			d.fit(t.Elem(), v, join(path, name))
		}
	case t.Kind() == reflect.Struct:
		names := jsonNames(t)
		for name, v := range value {
			if inner, ok := typeOf(t, name); ok {
				d.fit(inner, v, join(path, name))
			} else {
				d.unknown(join(path, name), name, names)
			}
		}
	default:
		return false
	}
	return true
}

func fitsScalar(t reflect.Type, v any) bool {
	switch v := v.(type) {
	case bool:
		return t.Kind() == reflect.Bool
	case string:
		if t == reflect.TypeFor[time.Time]() {
			_, err := time.Parse(time.RFC3339, v)
			return err == nil
		}
		return t.Kind() == reflect.String
	case json.Number:
		var err error
		switch {
		case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
			_, err = strconv.ParseInt(v.String(), 10, t.Bits())
		case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
			_, err = strconv.ParseUint(v.String(), 10, t.Bits())
		case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
			_, err = strconv.ParseFloat(v.String(), t.Bits())
		default:
			return false
		}
		return err == nil
	}
	return false
}

// typeName is a Go type as people write its JSON.
func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "a time with its offset, such as 2026-01-31T12:00:00Z"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a text (quote it)"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "a list"
	case t.Kind() == reflect.Map || t.Kind() == reflect.Struct:
		return "a mapping"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// givenName is what a value is instead. It repeats no text: that can be a secret.
func givenName(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return "the number " + v.String()
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return "this text"
}
