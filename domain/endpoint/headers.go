package endpoint

import (
	"encoding/json"
	"slices"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// Header is the value of a custom header.
type Header struct {
	Value     string
	Sensitive bool // the tenant wants it hidden although the name does not give it away
}

// Headers are an endpoint's custom headers by name.
type Headers map[string]Header

// Hidden reports whether a header's value is write-only: by its name, or because the tenant said so.
func (h Headers) Hidden(name string) bool { return h[name].Sensitive || egress.SensitiveHeader(name) }

// Values are the headers as they are sent.
func (h Headers) Values() map[string]string {
	out := make(map[string]string, len(h))
	for name, v := range h {
		out[name] = v.Value
	}
	return out
}

// Encode is the text that is sealed and stored, a JSON object of strings; nil for no headers.
func (h Headers) Encode() []byte {
	if len(h) == 0 {
		return nil
	}
	out, err := json.Marshal(h.Values())
	if err != nil {
		panic(err) // strings alone
	}
	return out
}

// Marked lists the names that the tenant marked as sensitive, in order.
func (h Headers) Marked() []string {
	out := []string{}
	for _, name := range h.Names() {
		if h[name].Sensitive {
			out = append(out, name)
		}
	}
	return out
}

// DecodeHeaders reads what Encode and Marked gave; nothing is no headers.
func DecodeHeaders(text []byte, marked []string) (Headers, error) {
	values := map[string]string{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &values); err != nil {
			return nil, err
		}
	}
	h := make(Headers, len(values))
	for name, value := range values {
		h[name] = Header{Value: value, Sensitive: slices.Contains(marked, name)}
	}
	return h, nil
}

// Marker replaces a hidden value in responses, and so does null. Sent back, either keeps what is stored.
const Marker = "***"

// Replace makes the headers that a request asks for: given is the whole new set, in which nil or Marker keeps the value
// stored under the same name, and sensitive lists names whose values are to be hidden (nil: what is marked stays
// marked). A header that is hidden stays hidden as long as its value is kept: otherwise taking the mark off would show
// it.
func (h Headers) Replace(given map[string]*string, sensitive []string) (Headers, error) {
	marked := make(map[string]bool, len(sensitive))
	for _, name := range sensitive {
		marked[name] = true
	}
	out := make(Headers, len(given))
	var wrong []fault.Field
	for name, value := range given {
		old, stored := h[name]
		switch {
		case value != nil && !(stored && *value == Marker):
			out[name] = Header{Value: *value, Sensitive: marked[name] || sensitive == nil && old.Sensitive}
		case stored:
			out[name] = Header{Value: old.Value, Sensitive: old.Sensitive || marked[name]}
		default:
			wrong = append(wrong, fault.Field{
				Name:   "custom_headers." + printable(name),
				Code:   "custom_header_unknown",
				Detail: "This header has no stored value. Send its value.",
			})
		}
	}
	for _, name := range sensitive {
		if _, ok := out[name]; !ok {
			wrong = append(wrong, fault.Field{
				Name:   "sensitive_headers",
				Code:   "custom_header_unknown",
				Detail: "Every name in sensitive_headers must also be in custom_headers, spelled the same.",
			})
			break
		}
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(sorted(wrong))
	}
	return out, nil
}
