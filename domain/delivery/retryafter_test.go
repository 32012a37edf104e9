package delivery_test

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
)

var noon = time.Date(2026, time.March, 5, 12, 0, 0, 0, time.UTC)

func TestRetryAfterIsReadAsSecondsOrADateAndNothingElse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"120", 2 * time.Minute},
		{"0", 0},
		{"1", time.Second},
		{"007", 7 * time.Second},
		{" 120\t", 2 * time.Minute},
		{"86400", 24 * time.Hour},
		{"86401", 24 * time.Hour},
		{"1000000000000", 24 * time.Hour},
		{"9223372036", 24 * time.Hour},           // just over an int64 of nanoseconds
		{"18446744073709551616", 24 * time.Hour}, // 2^64, which must not wrap to 0
		{"18446744073709551736", 24 * time.Hour}, // 2^64 + 120
		{"99999999999999999999", 24 * time.Hour},
		{strings.Repeat("9", 64), 24 * time.Hour},
		{strings.Repeat("0", 63) + "5", 5 * time.Second},

		{"Thu, 05 Mar 2026 12:02:00 GMT", 2 * time.Minute},
		{"Thursday, 05-Mar-26 12:02:00 GMT", 2 * time.Minute},
		{"Thu Mar  5 12:02:00 2026", 2 * time.Minute},
		{"Thu, 05 Mar 2026 12:00:00 GMT", 0},
		{"Thu, 05 Mar 2026 11:59:59 GMT", 0},
		{"Fri, 06 Mar 2026 12:00:01 GMT", 24 * time.Hour},
		{"Fri, 31 Dec 9999 23:59:59 GMT", 24 * time.Hour},
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0},

		{"", 0},
		{" ", 0},
		{"-1", 0},
		{"+120", 0},
		{"1e12", 0},
		{"1.5", 0},
		{"120s", 0},
		{"120, 240", 0},
		{"0x78", 0},
		{"١٢٠", 0},
		{"soon", 0},
		{"Thu, 05 Mar 2026 12:02:00 +0100", 0},
		{"2026-03-05T12:02:00Z", 0},
		{"Thu, 35 Mar 2026 12:02:00 GMT", 0},
		{strings.Repeat("9", 65), 0},
		{strings.Repeat("x", 100_000), 0},
	}
	for _, tt := range tests {
		if got := delivery.ParseRetryAfter(tt.value, noon); got != tt.want {
			t.Errorf("%.40q: %s, want %s", tt.value, got, tt.want)
		}
	}
}

func TestARetryAfterDateIsMeasuredFromTheMomentOfTheAnswer(t *testing.T) {
	t.Parallel()
	now := noon.Add(500 * time.Millisecond).In(time.FixedZone("east", 3*60*60))
	if got := delivery.ParseRetryAfter("Thu, 05 Mar 2026 12:02:00 GMT", now); got != 2*time.Minute-500*time.Millisecond {
		t.Errorf("got %s: the next attempt would come before the time asked for, or too late", got)
	}
}

func FuzzRetryAfterStaysWithinADay(f *testing.F) {
	for _, s := range []string{"120", "-1", "1e12", "Thu, 05 Mar 2026 12:02:00 GMT", "99999999999999999999"} {
		f.Add(s, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, at int64) {
		if d := delivery.ParseRetryAfter(value, time.Unix(at%(1<<40), 0)); d < 0 || d > delivery.MaxRetryAfter {
			t.Errorf("%q: %s", value, d)
		}
	})
}
