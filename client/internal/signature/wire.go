// Code generated from domain/signature/wire.go. DO NOT EDIT.

package signature

import (
	"encoding/json"
	"strings"
)

// Wire is how a request was rendered. An attempt keeps it as text, so that its request can be shown later as it was
// sent, whatever the endpoint's settings have become.
type Wire struct {
	Format    Format    `json:"format"`
	Prefix    string    `json:"prefix,omitempty"`
	TypeField TypeField `json:"type_field,omitempty"`
	Shape     *Shape    `json:"shape,omitempty"` // nil: the format as it is
	// Transformed is the version of the endpoint's transformation that made the content; 0: none did.
	Transformed int64 `json:"transformed,omitempty"`
	// Batch is the request that the event shared with others; nil: it had its own.
	Batch *Batch `json:"batch,omitempty"`
}

// Wire is how this signing renders a message.
func (s Signing) Wire(m Message) Wire {
	return Wire{Format: s.Format, Prefix: s.Prefix, TypeField: m.TypeField, Shape: s.Shape}
}

// Field is how a body names the fields of an event: by the wire's type field, unless its shape says otherwise.
func (w Wire) Field() TypeField {
	if w.Shape != nil && w.Shape.Body == BodyMCP {
		return typeAsName
	}
	return w.TypeField
}

// Bare reports whether the body is the event's data alone.
func (w Wire) Bare() bool {
	switch {
	case w.Format == Raw:
		return true
	case w.Shape == nil:
		return w.Format == Templated
	case w.Format == Templated:
		return w.Shape.Body != bodyEnvelope
	}
	return w.Shape.Body == bodyPayload
}

// names are the names of the headers.
func (w Wire) names() names { return w.Shape.rename(namesOf(w.Format, w.Prefix)) }

// HeaderNames lists every header that requests can have.
func (w Wire) HeaderNames() []string {
	list := listNames(w.names())
	if w.Shape != nil && w.Shape.AlsoSign != nil {
		list = append(list, w.Shape.AlsoSign.Wire().HeaderNames()...)
	}
	return list
}

// DedupeHeader is the header by which receivers recognize what they have handled.
func (w Wire) DedupeHeader() string {
	n := w.names()
	if w.Format == Raw || n.id == "" {
		return n.delivery
	}
	return n.id
}

// HeaderName is the name of the header with a role; empty where requests have none.
func (w Wire) HeaderName(role string) string {
	n := w.names()
	if at := n.of(role); at != nil {
		return *at
	}
	return ""
}

// ParseKey reads a secret as this wire understands it.
func (w Wire) ParseKey(secret string) (Key, error) {
	if w.Format == Templated && w.Shape != nil && w.Shape.Signature != nil {
		return w.Shape.Signature.key(secret)
	}
	return ParseKey(w.Format, secret)
}

// String is the text that an attempt keeps: the format, the prefix and, in XWebhook, a type field that is not the
// default, with a slash between. Standard has neither. With a shape it is a
// JSON object.
func (w Wire) String() string {
	switch {
	case !w.Shape.IsZero() || w.Transformed != 0 || w.Batch != nil:
		text, err := json.Marshal(w)
		if err != nil {
			panic(err) // texts and times alone
		}
		return string(text)
	case w.Format == Standard:
		return string(w.Format)
	case w.Format == XWebhook && w.TypeField != "" && w.TypeField != TypeAsType:
		return string(w.Format) + "/" + w.Prefix + "/" + string(w.TypeField)
	}
	return string(w.Format) + "/" + w.Prefix
}

// ParseWire reads such a text. Attempts of older versions kept the format alone: their prefix is taken to be the
// endpoint's.
func ParseWire(text, endpointPrefix string) Wire {
	if strings.HasPrefix(text, "{") {
		var w Wire
		_ = json.Unmarshal([]byte(text), &w) // written by String alone
		return w
	}
	format, rest, kept := strings.Cut(text, "/")
	w := Wire{Format: Format(format), Prefix: endpointPrefix}
	if kept {
		prefix, field, _ := strings.Cut(rest, "/")
		w.Prefix, w.TypeField = prefix, TypeField(field)
	}
	return w
}
