package db

import (
	"time"

	"posthorn/domain/id"
)

// OrZero is a column's time, zero for NULL.
func OrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Widen grows a range of times to hold one more.
func Widen(low, high, at time.Time) (time.Time, time.Time) {
	if low.IsZero() || at.Before(low) {
		low = at
	}
	if high.IsZero() || at.After(high) {
		high = at
	}
	return low, high
}

// TenantOrZero is what seals of things without a tenant are bound to.
func TenantOrZero(uuid *id.UUID) id.UUID {
	if uuid == nil {
		return id.UUID{}
	}
	return *uuid
}

// OrNull is a time as a column that is NULL for the zero time.
func OrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// TextOf is TextOrNull the other way round.
func TextOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// TextOrNull is a text as a column that is NULL for the empty text.
func TextOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
