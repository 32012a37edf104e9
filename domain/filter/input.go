package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"cel.dev/cel-go/cel"
)

// Input is one event, looked at by many filters. Its data is decoded when the first filter asks for it, once. It is
// safe for concurrent use; the data given to NewInput must not change.
type Input struct {
	typ      string
	raw      []byte
	channels []string

	once sync.Once
	data any
	err  error
}

// NewInput makes an Input of an event's type, its data as received, and its channels.
func NewInput(typ string, data []byte, channels []string) *Input {
	return &Input{typ: typ, raw: data, channels: channels}
}

// decoded is the event's data as objects (map[string]any), lists ([]any) and scalars (nil, bool, string, int64, uint64,
// float64). Of members with one name the last counts.
func (in *Input) decoded() (any, error) {
	in.once.Do(func() { in.data, in.err = decode(in.raw) })
	return in.data, in.err
}

func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("the event's data is not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the event's data is more than one JSON value")
	}
	return exact(v), nil
}

// exact replaces the numbers of a decoded value, in place: integers stay integers, so that a 64-bit id is compared
// digit by digit and not as the nearest double.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case map[string]any:
		for k, member := range v {
			if needsExact(member) {
				v[k] = exact(member)
			}
		}
	case []any:
		for i, item := range v {
			if needsExact(item) {
				v[i] = exact(item)
			}
		}
	}
	return v
}

func needsExact(v any) bool {
	switch v.(type) {
	case json.Number, map[string]any, []any:
		return true
	}
	return false
}

// number is a JSON number as int64 or uint64 where it is an integer that fits, else as the nearest double, which is
// infinite for one beyond all doubles.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return u
	}
	f, _ := strconv.ParseFloat(string(n), 64)
	return f
}

// variables shows an Input to CEL under the names type, data and channels.
type variables Input

// ResolveName implements cel.Activation. The caller has decoded the data.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "type":
		return v.typ, true
	case "data":
		return v.data, true
	case "channels":
		return v.channels, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*variables) Parent() cel.Activation { return nil }
