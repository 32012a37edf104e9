// Package filter decides which events an endpoint gets: event type patterns, channels, and filters over the event. A
// filter is an expression of the Common Expression Language (CEL) or a plain object of values that must be equal.
// Filters are written by tenants and run on the path of every event, so whatever one is, compiling it and running it
// are bounded.
package filter

import (
	"strings"

	"posthorn/domain/fault"
)

// MaxType bounds an event type's name, in bytes.
const MaxType = 128

// ValidPattern reports whether a subscription's pattern is well-formed: *, an event type, or a prefix that ends in .*
// such as order.*. The error is a *fault.Error with code event_type_pattern_invalid and field event_types.
func ValidPattern(p string) error {
	prefix, _ := strings.CutSuffix(p, ".*")
	if p == "*" || len(p) <= MaxType && segments(prefix) {
		return nil
	}
	return fault.InvalidField(
		"event_types",
		"event_type_pattern_invalid",
		"A subscription is an event type such as order.completed, a prefix such as order.*, or * for all types. A * can only be the last segment.",
	)
}

// segments reports whether a text is segments of letters, digits, _ and - joined by dots.
func segments(s string) bool {
	fresh := true // at the start of a segment, where no dot and no end is allowed
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.' && !fresh:
			fresh = true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			fresh = false
		default:
			return false
		}
	}
	return !fresh
}

// ownPrefix begins the types of Posthorn's own notices, which no tenant can emit.
const ownPrefix = "posthorn."

// Own reports whether a type, or a pattern, is of Posthorn's own notices. Such an event goes only to endpoints that
// name the type or its prefix: who subscribes to * asked for the events of a product.
func Own(typ string) bool { return strings.HasPrefix(typ, ownPrefix) }

// MatchType reports whether any of the patterns takes an event type. order.* takes order.created and
// order.item.created, not order itself. * takes all types but Posthorn's own. No pattern takes nothing. It does not
// allocate. Patterns are those that ValidPattern accepts.
func MatchType(patterns []string, typ string) bool {
	for _, p := range patterns {
		if p == "*" && !Own(typ) || p == typ {
			return true
		}
		if n := len(p) - 1; n > 0 && p[n] == '*' && len(typ) > n && typ[:n] == p[:n] {
			return true
		}
	}
	return false
}
