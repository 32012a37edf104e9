package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Value is a text in an event's data, by which people tell events apart: order_id ord_10242.
type Value struct {
	Path string // object.id, items.0.sku; empty: the data is the text itself
	Text string
}

// A value is shown in one line, and is found in the first bytes of the data.
const (
	maxValue = 48 // characters
	ValueIn  = 2048
)

// FirstValue is the first short text in an event's data, or in the first ValueIn bytes of it; empty if it has none.
func FirstValue(data []byte) Value {
	d := json.NewDecoder(bytes.NewReader(data[:min(len(data), ValueIn)]))
	d.UseNumber()
	v, _ := firstValue(d, nil)
	return v
}

// firstValue reads one JSON value. more is false at the end of what can be read.
func firstValue(d *json.Decoder, path []string) (v Value, more bool) {
	token, err := d.Token()
	if err != nil || len(path) > maxDepth {
		return v, false
	}
	switch token := token.(type) {
	case string:
		if short(token) {
			v = Value{Path: strings.Join(path, "."), Text: token}
		}
	case json.Delim:
		for n := 0; d.More(); n++ {
			name := strconv.Itoa(n)
			if token == '{' {
				key, err := d.Token()
				if err != nil {
					return v, false
				}
				name, _ = key.(string)
			}
			if v, more = firstValue(d, append(path, name)); v.Text != "" || !more {
				return v, more
			}
		}
		_, err = d.Token()
	}
	return v, err == nil
}

// short reports whether a text fits in a line and can be read there.
func short(text string) bool {
	if text == "" || utf8.RuneCountInString(text) > maxValue || !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
