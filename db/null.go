package db

import (
	"time"

	"posthorn/domain/id"
)

// OrZero returns a column's time, or zero for NULL.
func OrZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// NotEpoch is zero for the epoch, which statements return for a time that is not known.
func NotEpoch(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t
}

// Widen extends a range of times to include one more.
func Widen(low, high, at time.Time) (time.Time, time.Time) {
	if low.IsZero() || at.Before(low) {
		low = at
	}
	if high.IsZero() || at.After(high) {
		high = at
	}
	return low, high
}

// TenantOrZero is the tenant id under which values are sealed; zero for values without a tenant.
func TenantOrZero(uuid *id.UUID) id.UUID {
	if uuid == nil {
		return id.UUID{}
	}
	return *uuid
}

// OrNull returns nil for the zero time, which a column stores as NULL.
func OrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// TextOf is the inverse of TextOrNull.
func TextOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// TextOrNull returns nil for the empty text, which a column stores as NULL.
func TextOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
