package api

import (
	"time"

	"github.com/oapi-codegen/nullable"
)

// Time is a time in a request or a response. It is written in UTC with three digits of a second, even if they are
// zeros, so that times of one field have one length and sort as text.
type Time time.Time

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// AppendText appends the time as it is shown.
func (t Time) AppendText(b []byte) ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(b, timeLayout), nil
}

// MarshalText returns the time as it is shown.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText reads a time of RFC 3339.
func (t *Time) UnmarshalText(text []byte) error { return (*time.Time)(t).UnmarshalText(text) }

// orNullTime is a time that is null if it is zero.
func orNullTime(t time.Time) nullable.Nullable[Time] {
	if t.IsZero() {
		return nullable.NewNullNullable[Time]()
	}
	return nullable.NewNullableWithValue(Time(t))
}

// orNullAt is a time that can be null.
func orNullAt(t *time.Time) nullable.Nullable[Time] {
	if t == nil {
		return nullable.NewNullNullable[Time]()
	}
	return nullable.NewNullableWithValue(Time(*t))
}
