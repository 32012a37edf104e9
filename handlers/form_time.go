package handlers

import (
	"strings"
	"time"

	"posthorn/domain/fault"
)

// FormTime reads the value of a date and time field, which has no offset, as UTC, and writes it as RFC 3339. It keeps
// any other text as it is.
func FormTime(text string) string {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.000", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return text
}

// formExpiry reads when a new key expires. It is nil for never, if the field is empty.
func formExpiry(name, text string, now time.Time) (*time.Time, *fault.Field) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, FormTime(text))
	switch {
	case err != nil:
		return nil, &fault.Field{Name: name, Code: "time_malformed", Detail: "Enter a date and a time in UTC, or leave the field empty."}
	case !at.After(now):
		return nil, &fault.Field{Name: name, Code: "expires_at_past", Detail: "This time is in the past. Enter a time in the future, or leave the field empty for a key that never expires."}
	}
	at = at.UTC()
	return &at, nil
}
