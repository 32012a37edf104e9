// Package trace reads and writes W3C Trace Context (https://www.w3.org/TR/trace-context/, level 1): where an event's
// trace came from, and which spans its attempts are.
package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"posthorn/domain/id"
)

// The headers that carry a context, in the form of net/http.
const (
	Header      = "Traceparent"
	StateHeader = "Tracestate"
)

// Context is a place in a trace: a span that others can follow. The zero value is none.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	Sampled bool
	State   string // what tracing systems add to it, as tracestate carries it; empty: nothing
}

// Valid reports whether the context names a trace and a span.
func (c Context) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// String is the context as the header carries it, 55 bytes: 00-<trace id>-<span id>-01.
func (c Context) String() string {
	out := make([]byte, 0, 55)
	out = append(out, "00-"...)
	out = hex.AppendEncode(out, c.TraceID[:])
	out = append(out, '-')
	out = hex.AppendEncode(out, c.SpanID[:])
	if c.Sampled {
		return string(append(out, "-01"...))
	}
	return string(append(out, "-00"...))
}

// Parse reads a header. What the specification calls invalid is no context, and is no error either: a broken trace must
// not stop an event. A later version is read as far as version 00 goes.
func Parse(text string) (c Context, ok bool) {
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' || strings.ContainsFunc(text[:55], notOfHeader) {
		return Context{}, false
	}
	switch version := text[:2]; {
	case version == "ff", version == "00" && len(text) != 55, len(text) > 55 && text[55] != '-':
		return Context{}, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		into []byte
		from string
	}{{version[:], text[:2]}, {c.TraceID[:], text[3:35]}, {c.SpanID[:], text[36:52]}, {flags[:], text[53:55]}} {
		if _, err := hex.Decode(part.into, []byte(part.from)); err != nil {
			return Context{}, false
		}
	}
	c.Sampled = flags[0]&1 == 1
	return c, c.Valid()
}

// notOfHeader reports whether a character can't be in the header: its digits are lower case.
func notOfHeader(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '-' }

// Stored is the context as it is kept with an event: traceparent, and tracestate after a space where there is one.
func (c Context) Stored() string {
	if c.State == "" {
		return c.String()
	}
	return c.String() + " " + c.State
}

// ParseStored reads what Stored wrote.
func ParseStored(text string) (Context, bool) {
	parent, state, _ := strings.Cut(text, " ")
	c, ok := Parse(parent)
	c.State = state
	return c, ok
}

// FromHeaders is the context of a request's headers traceparent and tracestate; the zero value where there is no
// traceparent, or more than one.
func FromHeaders(parents, states []string) Context {
	if len(parents) != 1 {
		return Context{}
	}
	c, ok := Parse(strings.TrimSpace(parents[0]))
	if ok {
		c.State = parseState(states)
	}
	return c
}

// Bounds of tracestate: the specification's number of members, the length that it says to keep at least, and the length
// of members that it says to leave out first.
const (
	maxStateMembers = 32
	maxStateLength  = 512
	longStateMember = 128
)

// stateMember is one member of tracestate: a key of one tracing system, and its value.
var stateMember = regexp.MustCompile(`^[a-z0-9][a-z0-9_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]$`)

// parseState reads tracestate, which can be several headers. It is dropped as a whole where it is invalid, and
// shortened where it is too long, as the specification says.
func parseState(values []string) string {
	var members []string
	for _, member := range strings.Split(strings.Join(values, ","), ",") {
		if member = strings.Trim(member, " \t"); member == "" {
			continue
		}
		if !stateMember.MatchString(member) || len(members) == maxStateMembers {
			return ""
		}
		members = append(members, member)
	}
	if len(strings.Join(members, ",")) > maxStateLength {
		members = slices.DeleteFunc(members, func(m string) bool { return len(m) > longStateMember })
	}
	for len(strings.Join(members, ",")) > maxStateLength {
		members = members[:len(members)-1]
	}
	return strings.Join(members, ",")
}

// AttemptSpan is the id of the span of an attempt. It follows from the delivery and the attempt's number, so that a
// retry can link to the attempt before it, whichever process made that, and nothing is stored for it.
func AttemptSpan(delivery id.UUID, number int) (span [8]byte) {
	var seed [24]byte
	copy(seed[:], delivery[:])
	binary.BigEndian.PutUint64(seed[16:], uint64(number))
	sum := sha256.Sum256(seed[:])
	copy(span[:], sum[:])
	return span
}

// Attempt is the context that a receiver gets with an attempt of a delivery, for an event that was stored with a
// context: the same trace and state, and the span of the attempt.
func Attempt(stored string, delivery id.UUID, number int) (Context, bool) {
	c, ok := ParseStored(stored)
	c.SpanID = AttemptSpan(delivery, number)
	return c, ok
}

// ValidID reports whether a text is the id of a trace: 32 lower-case hexadecimal digits that are not all zero.
func ValidID(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 16 && strings.ToLower(text) == text && strings.Trim(text, "0") != ""
}

// ID is the trace's id of a stored context; empty where it holds none.
func ID(stored *string) string {
	if stored == nil || len(*stored) < 35 {
		return ""
	}
	return (*stored)[3:35]
}
