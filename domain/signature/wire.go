package signature

import "strings"

// Wire is how a request was rendered. An attempt keeps it as text, so that its request can be shown later as it was sent,
// whatever the endpoint's settings have become.
type Wire struct {
	Format    Format
	Prefix    string
	TypeField TypeField
}

// Wire is how this signing renders a message.
func (s Signing) Wire(m Message) Wire {
	return Wire{Format: s.Format, Prefix: s.Prefix, TypeField: m.TypeField}
}

// String is the text that an attempt keeps: the format, the prefix and, in XWebhook, a type field that is not the default, with a
// slash between. Standard has neither.
func (w Wire) String() string {
	switch {
	case w.Format == Standard:
		return string(w.Format)
	case w.Format == XWebhook && w.TypeField != "" && w.TypeField != TypeAsType:
		return string(w.Format) + "/" + w.Prefix + "/" + string(w.TypeField)
	}
	return string(w.Format) + "/" + w.Prefix
}

// ParseWire reads such a text. Attempts of older versions kept the format alone: their prefix is taken to be the endpoint's.
func ParseWire(text, endpointPrefix string) Wire {
	format, rest, kept := strings.Cut(text, "/")
	w := Wire{Format: Format(format), Prefix: endpointPrefix}
	if kept {
		prefix, field, _ := strings.Cut(rest, "/")
		w.Prefix, w.TypeField = prefix, TypeField(field)
	}
	return w
}
