package event

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"posthorn/domain/fault"
)

// ValidType reports whether name can be an event type: 1 to 128 characters, segments of ASCII letters, digits, hyphens
// and underscores, joined by full stops (order.completed). It does not begin with a hyphen, which a spreadsheet reads as a formula.
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

// ReservedType reports whether Posthorn alone emits events of a type.
func ReservedType(name string) bool {
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
	return key != "" && len(key) <= MaxIdempotencyKey
}

// CheckIdempotencyKey is ValidIdempotencyKey with the refusal, for the field idempotency_key and the header alike.
func CheckIdempotencyKey(key string) error {
	if ValidIdempotencyKey(key) {
		return nil
	}
	return fault.InvalidField("idempotency_key", CodeIdempotencyKey, fmt.Sprintf(
		"An idempotency key has 1 to %d visible ASCII characters and no space; a UUID is a good one.", MaxIdempotencyKey))
}

func (p *parser) checkType(name string) error {
	switch {
	case ReservedType(name) && !p.reserved:
		return fault.InvalidField("type", CodeTypeReserved,
			"Event types that begin with endpoint. or posthorn. are Posthorn's own. Give the type another name.")
	case ValidType(name):
		return nil
	}
	return fault.InvalidField("type", CodeTypeMalformed, fmt.Sprintf(
		"An event type has at most %d letters, digits, hyphens and underscores, in parts joined by full stops, such as order.completed.", MaxName))
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
		"A payload version has 1 to %d letters, digits and the characters . _ - and nothing else, such as 2026-01-31.", MaxVersion))
}

// checkKey refuses control characters, NUL above all: PostgreSQL's text cannot hold it.
func checkKey(key string) error {
	ok := key != "" && len(key) <= MaxKey && utf8.ValidString(key)
	for _, r := range key {
		ok = ok && !unicode.IsControl(r)
	}
	if ok {
		return nil
	}
	return fault.InvalidField("key", CodeKeyMalformed, fmt.Sprintf(
		"An ordering key has 1 to %d bytes and no control characters. Leave the field out to send without an order.", MaxKey))
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
