// Code generated from domain/signature/shape.go. DO NOT EDIT.

package signature

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"posthorn/client/internal/egress"
	"posthorn/client/internal/fault"
)

// The bodies that a shape can choose.
const (
	bodyEnvelope = "envelope" // the format's own, with id, type and data
	bodyPayload  = "payload"  // the event's data, byte for byte

	// BodyMCP is an event as the Model Context Protocol has it (docs/mcp.md), in the standard format alone.
	BodyMCP = "mcp"
)

// timestampRFC3339 writes a timestamp that is not signed as RFC 3339 in UTC with milliseconds, not in unix seconds.
const timestampRFC3339 = "rfc3339"

// Shape is what an endpoint changes about its format, for receivers that verify another sender's webhooks. Zero fields
// change nothing.
type Shape struct {
	Body         string            `json:"body,omitempty"`
	HeaderPrefix string            `json:"header_prefix,omitempty"` // of every header, such as svix- or X-Acme-
	HeaderNames  map[string]string `json:"header_names,omitempty"`  // exact names by role; empty leaves the header out
	Signature    *Template         `json:"signature,omitempty"`     // of the format template alone
	Timestamp    string            `json:"timestamp,omitempty"`     // how the timestamp's header is written; empty: as the format says
	AlsoSign     *AlsoSign         `json:"also_sign,omitempty"`
	MessageID    bool              `json:"message_id,omitempty"` // the id is the delivery's, not the event's; of BodyMCP alone
}

// AlsoSign is a second signature on each request, in headers of its own, so that receivers can move at their own pace.
type AlsoSign struct {
	Format       Format            `json:"format"`
	Prefix       string            `json:"prefix,omitempty"`
	HeaderPrefix string            `json:"header_prefix,omitempty"`
	HeaderNames  map[string]string `json:"header_names,omitempty"`
	Signature    *Template         `json:"signature,omitempty"`
	Until        *time.Time        `json:"until,omitempty"` // nil: no end
	OwnSecret    bool              `json:"own_secret,omitempty"`
}

// Wire is how the second signature is made.
func (a *AlsoSign) Wire() Wire {
	return Wire{
		Format: a.Format,
		Prefix: a.Prefix,
		Shape: &Shape{
			HeaderPrefix: a.HeaderPrefix,
			HeaderNames:  a.HeaderNames,
			Signature:    a.Signature,
		},
	}
}

// Ended reports whether requests no longer have the second signature.
func (a *AlsoSign) Ended(now time.Time) bool { return a.Until != nil && now.After(*a.Until) }

// Format keeps a shape short in logs.
func (s *Shape) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("shape")) }

// IsZero reports whether the shape changes nothing.
func (s *Shape) IsZero() bool {
	return s == nil || s.Body == "" && s.HeaderPrefix == "" && len(s.HeaderNames) == 0 && s.Signature == nil &&
		s.Timestamp == "" && s.AlsoSign == nil && !s.MessageID
}

// Clone is a copy that shares nothing with s.
func (s *Shape) Clone() *Shape {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts and times alone
	}
	out := &Shape{}
	if err := json.Unmarshal(text, out); err != nil {
		panic(err)
	}
	return out
}

// The roles of headers, by which a shape names them.
var roles = []string{"id", "event", "endpoint", "delivery", "timestamp", "signature", "attempt", "replayed"}

// of is the name of a role's header.
func (n *names) of(role string) *string {
	switch role {
	case "id":
		return &n.id
	case "event":
		return &n.event
	case "endpoint":
		return &n.endpoint
	case "delivery":
		return &n.delivery
	case "timestamp":
		return &n.timestamp
	case "signature":
		return &n.signature
	case "attempt":
		return &n.attempt
	case "replayed":
		return &n.replayed
	}
	return nil
}

// rename gives a format's headers the names of a shape.
func (s *Shape) rename(n names) names {
	if s == nil {
		return n
	}
	if p := s.HeaderPrefix; p != "" {
		lower := p == strings.ToLower(p)
		for _, role := range roles {
			name := n.of(role)
			if *name == "" {
				continue
			}
			*name = p + strings.ToUpper(role[:1]) + role[1:]
			if lower {
				*name = p + role
			}
		}
		n.retry, n.resend = "", "" // body-hex repeats attempt and replayed under second names
	}
	for role, name := range s.HeaderNames {
		if at := n.of(role); at != nil {
			*at = name
		}
	}
	n.rfc3339 = n.rfc3339 || s.Timestamp == timestampRFC3339
	return n
}

// maxHeaderName is the length of the longest header name of a shape, in characters.
const maxHeaderName = 100

// Check says whether requests in format f can have this shape. The error is a *fault.Error that names every field that
// is wrong, below the field wire.
func (s *Shape) Check(f Format, prefix string) error {
	if s == nil {
		s = &Shape{}
	}
	var wrong []fault.Field
	refuse := func(field, code, detail string) {
		wrong = append(wrong, fault.Field{Name: "wire." + field, Code: code, Detail: detail})
	}
	switch {
	case s.Body == BodyMCP && f != Standard:
		refuse("body", "wire_body_unknown", "Only the format standard can have the body mcp.")
	case s.MessageID && s.Body != BodyMCP:
		refuse("message_id", "wire_body_unknown", "Only the body mcp can have the id of the message.")
	case s.Body != "" && s.Body != bodyEnvelope && s.Body != bodyPayload && s.Body != BodyMCP:
		refuse("body", "wire_body_unknown", "The body is envelope, payload, or mcp.")
	}
	if why := s.timestampFault(f); why != "" {
		refuse("timestamp", "wire_timestamp_refused", why)
	}
	checkPart("", f, s.HeaderPrefix, s.HeaderNames, s.Signature, refuse)
	if a := s.AlsoSign; a != nil {
		if !a.Format.Valid() {
			refuse("also_sign.format", "format_unknown", "There is no such format. "+useFormats)
		}
		if a.Prefix != "" {
			if err := fault.As(ValidPrefix(a.Prefix)); err != nil {
				refuse("also_sign.prefix", err.Fields[0].Code, err.Fields[0].Detail)
			}
		}
		checkPart("also_sign.", a.Format, a.HeaderPrefix, a.HeaderNames, a.Signature, refuse)
		first, second := Wire{Format: f, Prefix: prefix, Shape: s}, a.Wire()
		if strings.EqualFold(first.names().signature, second.names().signature) {
			refuse("also_sign.header_names", "wire_header_twice", "Both signatures would be in the same header. Give the second one a header prefix or a name of its own.")
		}
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	return nil
}

// timestampFault says why the timestamp's header can't be written as asked, or nothing.
func (s *Shape) timestampFault(f Format) string {
	covered := s.Signature != nil && strings.Contains(s.Signature.Content, "{ts}") &&
		!strings.Contains(s.Signature.Value, "{ts}")
	switch {
	case s.Timestamp == "":
		return ""
	case s.Timestamp != timestampRFC3339:
		return "The timestamp is rfc3339, or as the format says where it is left out."
	case f != Templated || covered:
		return "Only the format template, with a signature that does not cover the timestamp's header, can write it as rfc3339."
	}
	return ""
}

func checkPart(at string, f Format, prefix string, headers map[string]string, t *Template, refuse func(field, code,
	detail string),
) {
	if prefix != "" {
		if why := prefixFault(prefix); why != "" {
			refuse(at+"header_prefix", "wire_header_refused", why)
		}
	}
	for role, name := range headers {
		switch {
		case (&names{}).of(role) == nil:
			refuse(at+"header_names", "wire_header_refused", fmt.Sprintf("There is no header %.40q. The names are those of %s.", role, strings.Join(roles, ", ")))
		case name == "" && role == "signature":
			refuse(at+"header_names.signature", "wire_header_refused", "The signature can't be left out.")
		case name != "" && !validHeader(name):
			refuse(at+"header_names."+role, "wire_header_refused", "A header name has 1 to 100 letters, digits and hyphens, without a hyphen at either end.")
		case egress.ReservedInWire(name) != "":
			refuse(at+"header_names."+role, "wire_header_refused", egress.ReservedInWire(name))
		}
	}
	switch {
	case f == Templated && t == nil:
		refuse(at+"signature", "wire_template_missing", "The format template needs a signature: its value and what is signed.")
	case f != Templated && t != nil:
		refuse(at+"signature", "wire_template_unwanted", "Only the format template takes a signature template.")
	case t != nil:
		if detail := t.wrong(); detail != "" {
			refuse(at+"signature", "wire_template_malformed", detail)
		}
	}
}

// prefixFault says why a prefix can't start every header's name, or nothing. It is tried with each role, because the
// format can change later.
func prefixFault(prefix string) string {
	if !validHeader(prefix + "a") {
		return "A header prefix has letters, digits and hyphens, such as svix- or X-Acme-."
	}
	for _, role := range roles {
		if why := egress.ReservedInWire(prefix + role); why != "" {
			return strings.Replace(why, "another name", "another prefix", 1)
		}
	}
	return ""
}

func validHeader(name string) bool {
	if name == "" || len(name) > maxHeaderName || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		if name[i] != '-' && !isAlphanumeric(name[i]) {
			return false
		}
	}
	return name[len(name)-1] != '-'
}
