package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"posthorn/domain/fault"
)

// Own is what an object itself says of a field, as text. What is absent, of another type or out of range counts as not
// said: a wrong setting must not switch off what protects everybody else.
func (f Field) Own(raw []byte) (text string, said bool) {
	at := object(raw)
	path := strings.Split(f.Name, ".")
	for _, part := range path[:len(path)-1] {
		at = object(at[part])
	}
	value, there := at[path[len(path)-1]]
	if !there {
		return "", false
	}
	text = f.text(value)
	if _, wrong := f.value(text); wrong != "" {
		return "", false
	}
	return text, true
}

func object(raw []byte) (out map[string]json.RawMessage) {
	if json.Unmarshal(raw, &out) != nil || out == nil {
		out = map[string]json.RawMessage{}
	}
	return out
}

// text is a stored value as people write it; empty for what it can't be.
func (f Field) text(value json.RawMessage) string {
	switch value := string(bytes.TrimSpace(value)); {
	case value == "null" && f.null:
		return "0"
	case f.onOffField():
		return map[string]string{"true": "on", "false": "off"}[value]
	case f.Words != nil:
		var word string
		_ = json.Unmarshal([]byte(value), &word) // a value that is no text is none of the words
		return word
	default:
		return value
	}
}

// value is a text as it is stored, or a sentence about what is wrong with it.
func (f Field) value(text string) (value json.RawMessage, wrong string) {
	if f.Words != nil {
		switch {
		case !slices.Contains(f.Words, text):
			return nil, f.rangeText()
		case f.onOffField():
			return json.RawMessage(strconv.FormatBool(text == "on")), ""
		}
		value, _ = json.Marshal(text)
		return value, ""
	}
	n, err := strconv.Atoi(text)
	if err != nil || (n < f.Low || n > f.High) && (n != 0 || f.Zero == "") {
		return nil, f.rangeText()
	}
	if n == 0 && f.null {
		return json.RawMessage("null"), ""
	}
	return json.RawMessage(strconv.Itoa(n)), ""
}

// Value is what holds, as text: what the last of the layers that says anything says, the platform's before the
// tenant's, else the default.
func (f Field) Value(layers ...[]byte) string {
	for _, raw := range slices.Backward(layers) {
		if text, said := f.Own(raw); said {
			return text
		}
	}
	return f.Default
}

// Word is the value of a setting by name, as text.
func Word(name string, layers ...[]byte) string { return find(name).Value(layers...) }

// On is the value of a switch by name.
func On(name string, layers ...[]byte) bool { return Word(name, layers...) == "on" }

// Number is the value of a number by name.
func Number(name string, layers ...[]byte) int {
	n, _ := strconv.Atoi(Word(name, layers...)) // checked when it was read; defaults are checked by a test
	return n
}

// Limits are the limits of one tenant; 0 is unlimited where the field allows it.
type Limits struct {
	EventsPerSecond int
	EventsPerMonth  int
	Endpoints       int
	MaxPayload      int // bytes of an event's data
}

// ReadLimits are a tenant's limits.
func ReadLimits(platform, tenant []byte) Limits {
	return Limits{
		EventsPerSecond: Number(EventsPerSecond, platform, tenant),
		EventsPerMonth:  Number(EventsPerMonth, platform, tenant),
		Endpoints:       Number(MaxEndpoints, platform, tenant),
		MaxPayload:      Number(MaxPayload, platform, tenant),
	}
}

// Change is what a setting was and is, as text; empty for not said.
type Change struct{ Was, Is string }

// Amend writes texts by name into an object and leaves the rest of it as it is. An empty text takes the setting out, so
// that what holds otherwise holds again. A text that a field can't be is refused with a *fault.Error that names the
// field and its range.
func Amend(raw []byte, among []Field, texts map[string]string) (out []byte, changed map[string]Change, err error) {
	var all map[string]any
	if len(raw) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&all); err != nil {
			return nil, nil, fmt.Errorf("settings: %w", err)
		}
	}
	if all == nil {
		all = map[string]any{}
	}
	var wrong []fault.Field
	changed = map[string]Change{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		at := slices.IndexFunc(among, func(f Field) bool { return f.Name == name })
		if at < 0 {
			wrong = append(wrong, fault.Field{Name: name, Code: "unknown_field", Detail: "Unknown setting."})
			continue
		}
		f, text := among[at], strings.TrimSpace(texts[name])
		was, _ := f.Own(raw)
		var value json.RawMessage
		if text != "" {
			var detail string
			if value, detail = f.value(text); detail != "" {
				wrong = append(wrong, fault.Field{Name: name, Code: "out_of_range", Detail: detail})
				continue
			}
			text = f.text(value)
		}
		if was != text {
			changed[name] = Change{was, text}
		}
		put(all, strings.Split(name, "."), value)
	}
	if len(wrong) > 0 {
		return nil, nil, fault.InvalidFields(wrong)
	}
	out, err = json.Marshal(all)
	return out, changed, err
}

// put sets a value within an object, or takes it out where it is nil, with the objects that are empty then.
func put(in map[string]any, path []string, value json.RawMessage) {
	if len(path) == 1 {
		if value == nil {
			delete(in, path[0])
		} else {
			in[path[0]] = value
		}
		return
	}
	inner, ok := in[path[0]].(map[string]any)
	if !ok {
		inner = map[string]any{}
	}
	put(inner, path[1:], value)
	if len(inner) == 0 {
		delete(in, path[0])
	} else {
		in[path[0]] = inner
	}
}
