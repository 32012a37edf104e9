package event

import (
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"posthorn/domain/fault"
)

// ValidType reports whether name can be an event type: 1 to 128 characters, segments of ASCII letters, digits, hyphens
// and underscores, joined by full stops (order.completed). It does not begin with a hyphen, which a spreadsheet reads
// as a formula.
func ValidType(name string) bool {
	if len(name) > MaxName || name != "" && name[0] == '-' {
		return false
	}
	segment := 0
	for i := range len(name) {
		switch c := name[i]; {
		case isAlphanumeric(c) || c == '_' || c == '-':
			segment++
		case c == '.' && segment > 0:
			segment = 0
		default:
			return false
		}
	}
	return segment > 0
}

// reserved begin the types that Posthorn itself emits: receivers trust an endpoint.verification to be its own.
var reserved = []string{"endpoint.", "posthorn."}

// reservedType reports whether Posthorn alone emits events of a type.
func reservedType(name string) bool {
	return slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// ValidChannel reports whether name can be a channel: 1 to 128 ASCII letters, digits and . _ - : / @.
func ValidChannel(name string) bool {
	for i := range len(name) {
		switch c := name[i]; c {
		case '.', '_', '-', ':', '/', '@':
		default:
			if !isAlphanumeric(c) {
				return false
			}
		}
	}
	return name != "" && len(name) <= MaxName
}

// ValidIdempotencyKey reports whether key can be an idempotency key: 1 to 255 visible ASCII characters, no space.
func ValidIdempotencyKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxIdempotencyKey
}

// CheckIdempotencyKey is ValidIdempotencyKey with the refusal, for the field idempotency_key and the header alike.
func CheckIdempotencyKey(key string) error {
	if ValidIdempotencyKey(key) {
		return nil
	}
	return fault.InvalidField("idempotency_key", CodeIdempotencyKey, fmt.Sprintf(
		"An idempotency key must have 1 to %d visible ASCII characters without spaces, such as a UUID.", maxIdempotencyKey))
}

// maxEventID is the length of the longest event id of a producer.
const maxEventID = 256

// CheckEventID says whether a producer can give an event this id, for receivers to see: 1 to 256 visible ASCII
// characters. A full stop is refused, since Standard Webhooks joins the parts of what it signs with it, and quotes and
// backslashes need no escapes in a body without them.
func CheckEventID(text string) error {
	if strings.Contains(text, ".") {
		return errEventID
	}
	return CheckUnsentID(text)
}

// CheckUnsentID is CheckEventID for an id that no receiver sees: it can have full stops.
func CheckUnsentID(text string) error {
	ok := text != "" && len(text) <= maxEventID
	for i := range len(text) {
		c := text[i]
		ok = ok && c > ' ' && c <= '~' && c != '"' && c != '\\'
	}
	if ok {
		return nil
	}
	return errEventID
}

var errEventID = fault.InvalidField("event_id", CodeEventID, fmt.Sprintf(
	"An event id has 1 to %d visible ASCII characters without spaces, full stops, quotes and backslashes. Leave the field out to get a generated id.", maxEventID))

// checkContentType accepts a media type, such as application/xml; charset=utf-8.
func checkContentType(text string) error {
	_, _, err := mime.ParseMediaType(text)
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			err = errControl
		}
	}
	if err == nil && strings.Contains(text, "/") && len(text) <= maxContentType && !strings.HasPrefix(strings.ToLower(text), ReferenceType) {
		return nil
	}
	return fault.InvalidField("content_type", CodeContentType, "A content type is a media type of at most 255 ASCII characters, such as application/xml or text/plain; charset=utf-8.")
}

var errControl = errors.New("not visible ASCII")

func (p *parser) checkType(name string) error {
	switch {
	case reservedType(name) && !p.reserved:
		return fault.InvalidField(
			"type",
			CodeTypeReserved,
			"Event types that start with endpoint. or posthorn. are reserved. Choose another name.",
		)
	case ValidType(name):
		return nil
	}
	return fault.InvalidField("type", CodeTypeMalformed, fmt.Sprintf(
		"An event type can have at most %d letters, digits, hyphens, and underscores, in segments joined by dots, such as order.completed.", MaxName))
}

func checkVersion(version string) error {
	for i := range len(version) {
		if c := version[i]; !isAlphanumeric(c) && c != '.' && c != '_' && c != '-' {
			version = ""
			break
		}
	}
	if version != "" && len(version) <= MaxVersion {
		return nil
	}
	return fault.InvalidField("version", CodeVersionMalformed, fmt.Sprintf(
		"A payload version can have 1 to %d letters, digits, and the characters . _ -, such as 2026-01-31.", MaxVersion))
}

// checkKey refuses control characters, NUL above all: PostgreSQL's text cannot hold it.
func checkKey(key string) error {
	ok := key != "" && len(key) <= maxKey && utf8.ValidString(key)
	for _, r := range key {
		ok = ok && !unicode.IsControl(r)
	}
	if ok {
		return nil
	}
	return fault.InvalidField("key", CodeKeyMalformed, fmt.Sprintf(
		"An ordering key must have 1 to %d bytes, without control characters. Leave the field out to send without ordering.", maxKey))
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
