package components

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type nowKey struct{}

// WithNow fixes the present time for relative times in tests; otherwise it is the clock's.
func WithNow(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, nowKey{}, now)
}

func now(ctx context.Context) time.Time {
	if t, ok := ctx.Value(nowKey{}).(time.Time); ok {
		return t
	}
	return time.Now()
}

// Ago says how long before now a moment was, or how long after: "3 min ago", "in 2 h". static/js/app.js uses the same
// rule.
func Ago(t, now time.Time) string {
	d := now.Sub(t)
	far := d.Abs()
	if far < 5*time.Second {
		return "just now"
	}
	const day = 24 * time.Hour
	// Times in the future are rounded to the nearest: an invitation for 7 days expires in 7 d a moment after its
	// creation, not in 6 d.
	if d < 0 {
		switch {
		case far >= day-30*time.Minute:
			far += day / 2
		case far >= time.Hour-30*time.Second:
			far += 30 * time.Minute
		case far >= time.Minute:
			far += 30 * time.Second
		}
	}
	var span string
	switch {
	case far < time.Minute:
		span = fmt.Sprintf("%d s", far/time.Second)
	case far < time.Hour:
		span = fmt.Sprintf("%d min", far/time.Minute)
	case far < day:
		span = fmt.Sprintf("%d h", far/time.Hour)
	case far < 60*day:
		span = fmt.Sprintf("%d d", far/day)
	case far < 730*day:
		span = fmt.Sprintf("%d months", far/(30*day))
	default:
		span = fmt.Sprintf("%d years", far/(365*day))
	}
	if d < 0 {
		return "in " + span
	}
	return span + " ago"
}

// Stamp writes a moment in UTC, to the second: "2026-11-21 22:04:05 UTC".
func Stamp(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04:05") + " UTC" }

// Duration writes a duration with at most three digits: "840 µs", "12.3 ms", "1.25 s", "4 min 10 s", "3 h 5 min".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0 ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return digits(float64(d)/float64(time.Millisecond)) + " ms"
	case d < time.Minute:
		return digits(d.Seconds()) + " s"
	case d < time.Hour:
		return pairOf(int64(d/time.Minute), "min", int64(d%time.Minute/time.Second), "s")
	case d < 48*time.Hour:
		return pairOf(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "min")
	}
	return pairOf(int64(d/(24*time.Hour)), "d", int64(d%(24*time.Hour)/time.Hour), "h")
}

func pairOf(n int64, unit string, rest int64, small string) string {
	if rest == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
}

// digits writes a number below 1,000 with three digits, and without trailing zeros.
func digits(v float64) string {
	places := 0
	switch {
	case v < 9.995:
		places = 2
	case v < 99.95:
		places = 1
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if places > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Bytes writes a size: "812 B", "3.4 KiB", "1 MiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1024, next
	}
	return digits(v) + " " + unit
}

// Count writes a number for people: 1,234,567.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Many writes a number with its noun: "1 delivery", "1,200 deliveries".
func Many(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// urlEnd is how many characters of a long URL's end are always shown.
const urlEnd = 12

// Ends are a URL without its scheme, in two parts: where room is short, the first loses its end and the second is shown
// whole, since endpoints of one host differ by the end of their paths. Any other text is one part.
func Ends(text string) (start, end string) {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		return text, ""
	}
	if len(rest) <= urlEnd+8 {
		return rest, ""
	}
	at := len(rest) - urlEnd
	for at < len(rest) && !utf8.RuneStart(rest[at]) {
		at++
	}
	return rest[:at], rest[at:]
}

// ShortID is the start and the end of an id, for lists: "dlv_01jd…8xk2".
func ShortID(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) <= 12 {
		return id
	}
	return prefix + "_" + rest[:4] + "…" + rest[len(rest)-4:]
}

// Plain writes a number for programs.
func Plain(n int64) string { return strconv.FormatInt(n, 10) }

// Since is Ago from the page's moment.
func Since(ctx context.Context, t time.Time) string { return Ago(t, now(ctx)) }

// OrZero is a time, or zero without one.
func OrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Choices are the options of a field with a few words. The first option is for none of them.
func Choices(selected, none string, words ...string) []Option {
	options := []Option{{Label: none}}
	for _, w := range words {
		options = append(options, Option{Value: w, Label: Capital(w), Selected: w == selected})
	}
	return options
}
