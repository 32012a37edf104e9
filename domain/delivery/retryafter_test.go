package delivery_test

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
)

var noon = time.Date(2026, time.March, 5, 12, 0, 0, 0, time.UTC)

func TestRetryAfterIsReadAsSecondsOrADate(t *testing.T) {
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
		{"1000000000000", 24 * time.Hour},        // a date of 2001 in milliseconds: too far from now to be meant
		{"9223372036", 24 * time.Hour},           // just over an int64 of nanoseconds
		{"18446744073709551616", 24 * time.Hour}, // 2^64, which must not wrap to 0
		{"18446744073709551736", 24 * time.Hour}, // 2^64 + 120
		{"99999999999999999999", 24 * time.Hour},
		{strings.Repeat("9", 64), 24 * time.Hour},
		{strings.Repeat("9", 128), 24 * time.Hour},

		{"40.5", 41 * time.Second},
		{"0.493", time.Second},
		{"0.0", 0},
		{"60.000", time.Minute},

		{"1772715600", time.Hour}, // 13:00 in seconds since 1970
		{"1772715600.25", time.Hour + time.Second},
		{"1772715600000", time.Hour},
		{"1772715600000000", time.Hour},
		{"1772715600000000000", time.Hour},
		{"1772708400", 0}, // 11:00
		{"1772708400000", 0},
		{"1773000000", 24 * time.Hour},
		{"9999999999", 24 * time.Hour}, // the year 2286
		{"1600000000", 24 * time.Hour}, // 2020

		{"Thu, 05 Mar 2026 12:02:00 UTC", 2 * time.Minute},
		{"Thu, 05 Mar 2026 12:02:00 UT", 2 * time.Minute},
		{"Thu, 05 Mar 2026 12:02:00 +0000", 2 * time.Minute},
		{"Thursday, 05-Mar-26 12:02:00 UTC", 2 * time.Minute},

		{"40, 50", 50 * time.Second},
		{"50,40", 50 * time.Second},
		{"120, soon", 2 * time.Minute},
		{"soon, 120", 0}, // as if "soon" were a day's name
		{"60, Thu, 05 Mar 2026 12:02:00 GMT", 2 * time.Minute},
		{"Thu, 05 Mar 2026 12:02:00 GMT, 60", 2 * time.Minute},
		{"Thu, 05 Mar 2026 12:01:00 GMT, Thu, 05 Mar 2026 12:02:00 GMT", 2 * time.Minute},
		{", 7,", 7 * time.Second},
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
		{"1.5.5", 0},
		{".5", 0},
		{"5.", 0},
		{"120s", 0},
		{",", 0},
		{"0x78", 0},
		{"١٢٠", 0},
		{"soon", 0},
		{"Thu, 05 Mar 2026 12:02:00 +0100", 0},
		{"2026-03-05T12:02:00Z", 0},
		{"Thu, 35 Mar 2026 12:02:00 GMT", 0},
		{strings.Repeat("9", 129), 0},
		{strings.Repeat("x", 100_000), 0},
	}
	for _, tt := range tests {
		if got := delivery.ParseRetryAfter(tt.value, "", noon); got != tt.want {
			t.Errorf("%.40q: %s, want %s", tt.value, got, tt.want)
		}
	}
}

func TestARetryAfterDateIsMeasuredFromTheMomentOfTheAnswer(t *testing.T) {
	t.Parallel()
	now := noon.Add(500 * time.Millisecond).In(time.FixedZone("east", 3*60*60))
	if got := delivery.ParseRetryAfter("Thu, 05 Mar 2026 12:02:00 GMT", "", now); got != 2*time.Minute-500*time.Millisecond {
		t.Errorf("got %s: the next attempt would come before the time asked for, or too late", got)
	}
}

func TestADateInRetryAfterIsReadByTheClockOfItsServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		date string
		want time.Duration
	}{
		"its clock is an hour behind": {"Thu, 05 Mar 2026 11:00:00 GMT", time.Hour + 2*time.Minute},
		"its clock is ahead":          {"Thu, 05 Mar 2026 12:01:00 GMT", time.Minute},
		"the date is a constant":      {"Thu, 01 Jan 1970 00:00:00 GMT", 2 * time.Minute},
		"the date is junk":            {"today", 2 * time.Minute},
	} {
		for _, value := range []string{"Thu, 05 Mar 2026 12:02:00 GMT", "1772712120", "1772712120000"} {
			if got := delivery.ParseRetryAfter(value, c.date, noon); got != c.want {
				t.Errorf("%s: %s is a wait of %s, want %s", name, value, got, c.want)
			}
		}
		if got := delivery.ParseRetryAfter("30", c.date, noon); got != 30*time.Second {
			t.Errorf("%s: 30 seconds are %s", name, got)
		}
	}
}

func FuzzRetryAfterStaysWithinADay(f *testing.F) {
	for _, s := range []string{"120", "-1", "1e12", "Thu, 05 Mar 2026 12:02:00 GMT", "99999999999999999999", "1.5, 7"} {
		f.Add(s, "Thu, 05 Mar 2026 12:02:00 GMT", int64(0))
	}
	f.Fuzz(func(t *testing.T, value, date string, at int64) {
		if d := delivery.ParseRetryAfter(value, date, time.Unix(at%(1<<40), 0)); d < 0 || d > delivery.MaxRetryAfter {
			t.Errorf("%q: %s", value, d)
		}
	})
}
