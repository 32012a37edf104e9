package components

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/show"
)

func TestTimesAreWrittenAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ago  time.Duration
		want string
	}{
		{0, "just now"},
		{-4 * time.Second, "just now"},
		{42 * time.Second, "42 s ago"},
		{59*time.Minute + 59*time.Second, "59 min ago"},
		{5 * time.Hour, "5 h ago"},
		{-90 * time.Minute, "in 2 h"},
		{-89 * time.Minute, "in 1 h"},
		{-(7*24*time.Hour - time.Second), "in 7 d"},
		{-(24*time.Hour - time.Second), "in 1 d"},
		{-(time.Hour - time.Second), "in 1 h"},
		{-(5*time.Minute - time.Second), "in 5 min"},
		{47 * time.Hour, "1 d ago"},
		{61 * 24 * time.Hour, "2 months ago"},
		{-800 * 24 * time.Hour, "in 2 years"},
	} {
		if got := Ago(now.Add(-c.ago), now); got != c.want {
			t.Errorf("%v: %q, want %q", c.ago, got, c.want)
		}
	}
}

func TestDurationsSizesAndCountsAreShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                            "0 ms",
		840 * time.Microsecond:       "840 µs",
		12345 * time.Microsecond:     "12.3 ms",
		999600 * time.Microsecond:    "1000 ms",
		1250 * time.Millisecond:      "1.25 s",
		15 * time.Second:             "15 s",
		250 * time.Second:            "4 min 10 s",
		time.Hour:                    "1 h",
		26*time.Hour + 5*time.Minute: "26 h 5 min",
		74 * time.Hour:               "3 d 2 h",
		-time.Second:                 "-1 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 3482: "3.4 KiB", 1 << 20: "1 MiB", 5 << 30: "5 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if Many(1, "delivery", "deliveries") != "1 delivery" || Many(1200, "delivery", "deliveries") != "1,200 deliveries" {
		t.Error("a number does not go with its noun")
	}
	for in, want := range map[string]string{"dlv_01jd8m2k9x7q4v5w6y7z8a9b0c": "dlv_01jd…9b0c", "short": "short", "a_b": "a_b"} {
		if got := ShortID(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestPhasesFillTheirBarAndSayWhatItShows(t *testing.T) {
	t.Parallel()
	p := show.Phases{DNS: time.Millisecond, Connect: 9 * time.Millisecond, Wait: 90 * time.Millisecond}
	got := pieces(p, 0)
	if len(got) != 3 || got[0].x != "0" || got[0].width != "10" || got[2].x != "100" || got[2].width != "900" {
		t.Errorf("%+v", got)
	}
	if text := phasesText(p); text != "100 ms: DNS 1 ms, connect 9 ms, wait 90 ms" {
		t.Error(text)
	}
	if got := pieces(p, time.Second); got[0].width != "4" || got[2].width != "90" {
		t.Errorf("on a longer scale: %+v", got)
	}
	if none := (show.Phases{}); len(pieces(none, 0)) != 0 || !strings.HasPrefix(phasesText(none), "No time") {
		t.Error("No data shows something")
	}
}

// Endpoints of one host differ by the end of their paths, which a list must not cut off.
func TestTheEndOfALongURLIsAPartOfItsOwn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"https://example.com/in":                                 {"example.com/in"},
		"Old CRM, with a long description":                       {"Old CRM, with a long description"},
		"https://hooks.example.com/v1/receivers/orders-eu":       {"hooks.example.com/v1/receive", "rs/orders-eu"},
		"https://hooks.example.com/v1/receivers/größe-und-weite": {"hooks.example.com/v1/receivers/größ", "e-und-weite"},
	} {
		if start, end := Ends(text); start != want[0] || end != want[1] {
			t.Errorf("%s is shown as %q and %q, want %q", text, start, end, want)
		}
	}
}
