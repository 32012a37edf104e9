package main

import (
	"fmt"
	"log/slog"
)

// Secret is a text that is never printed: every way of formatting, logging or encoding it gives "redacted". Reveal is
// the only way to it, easy to find.
type Secret string

const redacted = "redacted"

// Reveal is the text itself, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String is "redacted", or empty when there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format covers every verb, %#v, %q and %x among them.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue is what log/slog writes.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is what encoding/json and its like write.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
