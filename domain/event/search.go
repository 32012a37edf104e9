package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxQuery bounds what is searched for, in bytes.
const MaxQuery = 256

// Query is what somebody searches for.
type Query struct {
	Text   string   // as typed, without surrounding spaces
	Path   []string // the field in the event's data that has the value; nil: any field
	Value  string
	either bool // the text can also be a value itself, as order.id=x can
}

// ReadQuery reads a query: data.order_id:ord_1 and order_id=ord_1 name a field and its whole value, any other text is
// found anywhere in the data. The case of letters doesn't matter.
func ReadQuery(text string) Query {
	q := Query{Text: strings.TrimSpace(text)}
	q.Value = q.Text
	at := strings.IndexAny(q.Text, ":=")
	if at < 0 {
		return q
	}
	path, inData := strings.CutPrefix(strings.TrimSpace(q.Text[:at]), "data.")
	value := strings.Trim(strings.TrimSpace(q.Text[at+1:]), `"`)
	if q.either = q.Text[at] == '='; !inData && !q.either || value == "" || path == "" || strings.ContainsAny(path, " \t") {
		return q
	}
	q.Path, q.Value = strings.Split(path, "."), value
	return q
}

// Needles are bytes of which the data of every event with the value contains one, when the case of ASCII letters is
// left out: the longest part that JSON writes only in one way. Slashes, quotes and letters beyond ASCII can be escaped.
// Of a text without such a part they are the text in its cases, as it is and escaped.
func (q Query) Needles() [][]byte {
	best, start := "", 0
	for i := 0; i <= len(q.Value); i++ {
		if i < len(q.Value) && plain(q.Value[i]) {
			continue
		}
		if i-start > len(best) {
			best = q.Value[start:i]
		}
		start = i + 1
	}
	if best != "" {
		return [][]byte{[]byte(best)}
	}
	var all [][]byte
	for _, text := range []string{q.Value, strings.ToLower(q.Value), strings.ToUpper(q.Value)} {
		for _, needle := range [][]byte{[]byte(text), escaped(text)} {
			if !slices.ContainsFunc(all, func(one []byte) bool { return bytes.Equal(one, needle) }) {
				all = append(all, needle)
			}
		}
	}
	return all
}

// Certain is the longest part without letters of what the database looks for, which it finds without folding case;
// empty if there is none.
func (q Query) Certain() []byte {
	best, needles := []byte{}, q.Needles()
	if len(needles) > 1 {
		return best
	}
	for part := range bytes.FieldsFuncSeq(needles[0], unicode.IsLetter) {
		if len(part) > len(best) {
			best = part
		}
	}
	return best
}

// escaped is a text as encoders of JSON write it that leave ASCII alone (RFC 8259, section 7). The digits have both
// cases, which are left out.
func escaped(text string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		switch {
		case unit == '"' || unit == '\\':
			out = append(out, '\\', byte(unit))
		case unit < utf8.RuneSelf:
			out = append(out, byte(unit))
		default:
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// plain reports whether encoders of JSON leave a character as it is. Some escape <, > and &.
func plain(c byte) bool {
	return c >= ' ' && c <= '~' && !strings.ContainsRune("\"\\/<>&'", rune(c))
}

// maxDepth bounds how deep data is searched.
const maxDepth = 64

// In gives where data has what is searched for, as a path such as order.items.sku. The path is empty where data is the
// value itself.
func (q Query) In(data []byte) (path string, found bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if !utf8.Valid(data) || d.Decode(&v) != nil {
		return "", false
	}
	if q.Path != nil && q.at(v, q.Path, 0) {
		return strings.Join(q.Path, "."), true
	}
	if q.Path == nil || q.either {
		return q.anywhere(v, "", 0)
	}
	return "", false
}

// at reports whether the field that a path names has the value. A list has it where one of its items does.
func (q Query) at(v any, path []string, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if q.at(item, path, depth+1) {
				return true
			}
		}
		return false
	case map[string]any:
		if len(path) == 0 {
			return false
		}
		next, ok := v[path[0]]
		return ok && q.at(next, path[1:], depth+1)
	}
	text, ok := scalar(v)
	return ok && len(path) == 0 && strings.EqualFold(text, q.Value)
}

func (q Query) anywhere(v any, path string, depth int) (string, bool) {
	if depth > maxDepth {
		return "", false
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if at, ok := q.anywhere(item, path, depth+1); ok {
				return at, true
			}
		}
		return "", false
	case map[string]any:
		least, found := "", false
		for name, item := range v {
			// The order of a map is random: of several fields the first by name is given.
			if at, ok := q.anywhere(item, strings.TrimPrefix(path+"."+name, "."), depth+1); ok && (!found || at < least) {
				least, found = at, true
			}
		}
		return least, found
	}
	text, ok := scalar(v)
	return path, ok && strings.Contains(strings.ToLower(text), strings.ToLower(q.Text))
}

// scalar is a value that is neither a list nor an object, as text.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	case nil:
		return "null", true
	}
	return "", false
}
