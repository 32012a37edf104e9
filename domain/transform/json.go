package transform

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

var tooLarge = fmt.Sprintf("the body would be larger than %d KiB", MaxOutput>>10)

var (
	errTooLarge = errors.New(tooLarge)
	errTooDeep  = fmt.Errorf("the body would be nested more than %d levels", maxDepth)
)

// AppendJSON appends what an expression built as JSON, of at most MaxOutput bytes.
func AppendJSON(dst []byte, v ref.Val) ([]byte, error) { return appendValue(dst, v, 0) }

// appendValue writes what an expression built as JSON, members in the order of their names. What is copied whole from
// the data keeps its numbers as they were written.
func appendValue(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if len(dst) > MaxOutput {
		return nil, errTooLarge
	}
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		return appendDouble(dst, float64(v))
	case types.String:
		return appendText(dst, string(v)), nil
	case types.Bytes:
		return appendText(dst, base64.StdEncoding.EncodeToString(v)), nil
	case types.Timestamp:
		return appendText(dst, v.UTC().Format(time.RFC3339Nano)), nil
	case types.Duration:
		return appendText(dst, v.Duration.String()), nil
	case *types.Optional:
		if !v.HasValue() {
			return append(dst, "null"...), nil
		}
		return appendValue(dst, v.GetValue(), depth)
	case *types.Err:
		return nil, errors.New(v.Error())
	case traits.Mapper:
		if native, is := v.Value().(map[string]any); is {
			return appendNative(dst, native, depth)
		}
		return appendMap(dst, v, depth)
	case traits.Lister:
		if native, is := v.Value().([]any); is {
			return appendNative(dst, native, depth)
		}
		return appendList(dst, v, depth)
	}
	return nil, fmt.Errorf("a value of the type %s can't be written as JSON", v.Type().TypeName())
}

func appendMap(dst []byte, m traits.Mapper, depth int) (_ []byte, err error) {
	members := map[string]ref.Val{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, errors.New("the keys of an object must be strings")
		}
		members[string(name)] = m.Get(key)
	}
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, name), ':')
		if dst, err = appendValue(dst, members[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendList(dst []byte, l traits.Lister, depth int) (_ []byte, err error) {
	dst = append(dst, '[')
	first := true
	for it := l.Iterator(); it.HasNext() == types.True; {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if dst, err = appendValue(dst, it.Next(), depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// appendNative writes decoded JSON.
func appendNative(dst []byte, v any, depth int) (_ []byte, err error) {
	if len(dst) > MaxOutput {
		return nil, errTooLarge
	}
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendText(dst, v), nil
	case json.Number:
		return append(dst, v...), nil
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendNative(dst, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, name), ':')
			if dst, err = appendNative(dst, v[name], depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	return nil, fmt.Errorf("a value of the type %T can't be written as JSON", v)
}

func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("JSON has no number for infinity or NaN")
	}
	text, err := json.Marshal(f)
	return append(dst, text...), err
}

// appendText writes a string with the signs of HTML as they are. Line separators are escaped: some receivers evaluate
// JSON as JavaScript.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r < 0x20 || r == 0x2028 || r == 0x2029:
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
