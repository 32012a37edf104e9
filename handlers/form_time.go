package handlers

import (
	"strings"
	"time"

	"posthorn/domain/fault"
)

// FormTime reads what a browser's field of date and time holds, which has no offset, as UTC, and writes it as RFC 3339. Any other
// text stays as it is.
func FormTime(text string) string {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.000", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return text
}

// FormExpiry reads when a key that is made now expires: nil for never, where the field is empty.
func FormExpiry(name, text string, now time.Time) (*time.Time, *fault.Field) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, FormTime(text))
	switch {
	case err != nil:
		return nil, &fault.Field{Name: name, Code: "time_malformed", Detail: "Write a date and a time in UTC, or leave it empty."}
	case !at.After(now):
		return nil, &fault.Field{Name: name, Code: "expires_at_past", Detail: "The key would be expired already. Give a time to come, or none for a key that does not expire."}
	}
	at = at.UTC()
	return &at, nil
}
