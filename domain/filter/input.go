package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
)

// Input is one event, looked at by many filters. Its data is decoded when the first filter asks for it, once. It is
// safe for concurrent use; the data given to NewInput must not change.
type Input struct {
	typ      string
	raw      []byte
	channels []string

	once   sync.Once
	data   any
	forCEL any // data without precise numbers
	err    error
}

// NewInput makes an Input of an event's type, its data as received, and its channels.
func NewInput(typ string, data []byte, channels []string) *Input {
	return &Input{typ: typ, raw: data, channels: channels}
}

// decoded is the event's data as objects (map[string]any), lists ([]any) and scalars (nil, bool, string, int64,
// uint64, float64, precise). Of members with one name the last counts.
func (in *Input) decoded() (any, error) {
	in.once.Do(func() {
		large := false
		in.data, in.err = decode(in.raw, &large)
		if in.forCEL = in.data; large {
			in.forCEL = doubles(in.data)
		}
	})
	return in.data, in.err
}

func decode(raw []byte, large *bool) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("the event's data is not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the event's data is more than one JSON value")
	}
	return exact(v, large), nil
}

// exact replaces the numbers of a decoded value, in place: integers stay integers, so that a 64-bit id is compared
// digit by digit and not as the nearest double. large becomes true where there is a precise number.
func exact(v any, large *bool) any {
	switch v := v.(type) {
	case json.Number:
		n := number(v)
		if _, is := n.(precise); is {
			*large = true
		}
		return n
	case map[string]any:
		for k, member := range v {
			if needsExact(member) {
				v[k] = exact(member, large)
			}
		}
	case []any:
		for i, item := range v {
			if needsExact(item) {
				v[i] = exact(item, large)
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

// number is a JSON number as int64 or uint64 where it is an integer that fits, else as the nearest double, and as
// precise where other numbers have the same nearest double.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return u
	}
	f, err := strconv.ParseFloat(string(n), 64)
	// Doubles tell numbers of 15 digits apart. One that is too small for a double is 0, without an error.
	if err == nil && len(n) <= 16 && (f != 0 || !strings.ContainsAny(string(n), "eE")) {
		return f
	}
	if exact := canonical(string(n)); err != nil || f == 0 && exact != "0" || digits(exact) > 15 {
		return precise{exact, f}
	}
	return f
}

// precise is a number that its nearest double does not tell apart from others.
type precise struct {
	exact string // as canonical writes it
	near  float64
}

// canonical writes a JSON number as its digits, without zeros at either end, and a power of ten: equal numbers are
// equal texts. It never computes the power, which can have many digits.
func canonical(n string) string {
	n, negative := strings.CutPrefix(n, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(n), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	kept := strings.TrimRight(all, "0")
	if kept == "" {
		return "0"
	}
	exponent := new(big.Int)
	exponent.SetString(strings.TrimPrefix(power, "+"), 10) // 0 where there is none
	exponent.Add(exponent, big.NewInt(int64(len(all)-len(kept)-len(fraction))))
	if negative {
		kept = "-" + kept
	}
	return kept + "e" + exponent.String()
}

func digits(canonical string) int {
	mantissa, _, _ := strings.Cut(strings.TrimPrefix(canonical, "-"), "e")
	return len(mantissa)
}

// doubles is decoded data for CEL, which has no other numbers. It copies what holds a precise number.
func doubles(v any) any {
	switch v := v.(type) {
	case precise:
		return v.near
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = doubles(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = doubles(item)
		}
		return out
	}
	return v
}

// variables shows an Input to CEL under the names type, data and channels.
type variables Input

// ResolveName implements cel.Activation. The caller has decoded the data.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "type":
		return v.typ, true
	case "data":
		return v.forCEL, true
	case "channels":
		return v.channels, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*variables) Parent() cel.Activation { return nil }
