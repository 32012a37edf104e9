// Code generated from domain/signature/body.go. DO NOT EDIT.

package signature

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Message is what a format shows of an event on its way to one endpoint. Ids are in their outer form (evt_...).
type Message struct {
	EventID, DeliveryID, EndpointID string

	// FirstID is, of a replay, the id of the first delivery of the event to the endpoint; else empty.
	FirstID string

	Type       string
	OccurredAt time.Time // the producer's time; zero when it gave none
	CreatedAt  time.Time
	Data       []byte // the exact bytes that were emitted; one JSON value
	Version    string // of the payload, where the event type has versions; else empty
	// ContentType is that of an event whose data is the text of a payload that is no JSON: a body that is the data
	// alone is the text itself. Empty: the data is JSON.
	ContentType string

	TypeField TypeField // of the endpoint; XWebhook alone reads it
	Bare      bool      // of the endpoint: the body is the data alone, in every format

	// Traceparent is the context of the event's trace as it is stored; empty: none. No format has it in its body.
	Traceparent string
}

// TypeField is the name under which an XWebhook body holds the event's type. Empty is TypeAsType.
type TypeField string

// The names.
const (
	TypeAsType  TypeField = "type"
	TypeAsEvent TypeField = "event" // for receivers that read body.event
	TypeAsBoth  TypeField = "both"

	typeAsName TypeField = "name" // of BodyMCP, with its other fields; no endpoint has it as a setting
)

// TypeFields lists the names, the default first.
func TypeFields() []TypeField { return []TypeField{TypeAsType, TypeAsEvent, TypeAsBoth} }

// dedupeID is the value that receivers of the Raw format deduplicate by: the same for a delivery and all of its
// replays.
func (m Message) dedupeID() string {
	if m.FirstID != "" {
		return m.FirstID
	}
	return m.DeliveryID
}

// alone reports whether a body in format f is the data alone.
func (m Message) alone(f Format) bool { return f == Raw || m.Bare }

// BodyType is the content type of the body in format f.
func (m Message) BodyType(f Format) string {
	if m.ContentType != "" && m.alone(f) {
		return m.ContentType
	}
	return ContentType
}

// text is the body of an event whose data is the text of another content type.
func (m Message) text(f Format) (text string, ok bool) {
	return text, m.ContentType != "" && m.alone(f) && json.Unmarshal(m.Data, &text) == nil
}

// AppendBody appends the request body in format f to dst. It depends on m alone, so every attempt of an event has the
// same bytes, and so has its replay. The data is copied byte for byte. Times are RFC 3339 in UTC with milliseconds,
// cut, not rounded: "timestamp" is the producer's time if it gave one, else the event's creation; "created_at" is
// always the creation. A payload version comes before the data, which is last so that a truncated copy still shows the
// head.
func AppendBody(dst []byte, f Format, m Message) []byte {
	if text, ok := m.text(f); ok {
		return append(dst, text...)
	}
	if m.alone(f) {
		if len(m.Data) == 0 && m.Bare {
			return append(dst, "null"...)
		}
		return append(dst, m.Data...)
	}
	at := m.OccurredAt
	if at.IsZero() {
		at = m.CreatedAt
	}
	switch {
	case m.TypeField == typeAsName:
		return appendOccurrence(dst, m, at)
	case f == BodyHex:
		dst = append(dst, `{"event":`...)
		dst = appendString(dst, m.Type)
		dst = append(dst, `,"timestamp":"`...)
	case f == XWebhook:
		dst = appendHead(dst, m, m.TypeField)
		dst = append(dst, `,"created_at":"`...)
		at = m.CreatedAt
	default:
		dst = appendHead(dst, m, TypeAsType)
		dst = append(dst, `,"timestamp":"`...)
	}
	dst = appendTime(dst, at)
	dst = append(dst, '"')
	if m.Version != "" {
		dst = append(dst, `,"version":`...)
		dst = appendString(dst, m.Version)
	}
	dst = append(dst, `,"data":`...)
	if len(m.Data) == 0 {
		dst = append(dst, "null"...)
	}
	dst = append(dst, m.Data...)
	return append(dst, '}')
}

// appendOccurrence writes an event as the Model Context Protocol has it. Its data is an object: other data is in the
// field value of one.
func appendOccurrence(dst []byte, m Message, at time.Time) []byte {
	dst = append(dst, `{"eventId":`...)
	dst = appendString(dst, m.EventID)
	dst = append(dst, `,"name":`...)
	dst = appendString(dst, m.Type)
	dst = append(dst, `,"timestamp":"`...)
	dst = appendTime(dst, at)
	dst = append(dst, `","data":`...)
	object := bytes.HasPrefix(bytes.TrimLeft(m.Data, " \t\r\n"), []byte("{"))
	if !object {
		dst = append(dst, `{"value":`...)
	}
	if len(m.Data) == 0 {
		dst = append(dst, "null"...)
	}
	dst = append(dst, m.Data...)
	if !object {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendHead(dst []byte, m Message, field TypeField) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, m.EventID)
	if field != TypeAsEvent {
		dst = append(dst, `,"type":`...)
		dst = appendString(dst, m.Type)
	}
	if field == TypeAsEvent || field == TypeAsBoth {
		dst = append(dst, `,"event":`...)
		dst = appendString(dst, m.Type)
	}
	return dst
}

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Timestamp is a moment as bodies have it.
func Timestamp(at time.Time) string { return string(appendTime(nil, at)) }

// appendTime writes a moment in timeLayout, in UTC and to the millisecond. Every body has two.
func appendTime(dst []byte, at time.Time) []byte {
	at = at.UTC()
	year, month, day := at.Date()
	if year < 1000 || year > 9999 {
		return at.AppendFormat(dst, timeLayout)
	}
	hour, minute, second := at.Clock()
	dst = append(appendTwo(appendTwo(dst, year/100), year%100), '-')
	dst = append(appendTwo(dst, int(month)), '-')
	dst = append(appendTwo(dst, day), 'T')
	dst = append(appendTwo(dst, hour), ':')
	dst = append(appendTwo(dst, minute), ':')
	dst = append(appendTwo(dst, second), '.')
	millisecond := at.Nanosecond() / 1e6
	return append(appendTwo(append(dst, byte('0'+millisecond/100)), millisecond%100), 'Z')
}

func appendTwo(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string (RFC 8259 section 7) with the fewest escapes: HTML characters stay as they are,
// which encoding/json would change. Bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return append(dst, '"')
}
