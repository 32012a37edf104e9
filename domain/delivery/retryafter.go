package delivery

import (
	"math"
	"strings"
	"time"
)

// The three date forms of RFC 9110 section 5.6.7; senders write the first, receivers must read all.
var httpDates = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// zones are what senders write instead of GMT: Go's RFC1123 prints UTC, printers of RFC 2822 dates print an offset.
var zones = [...]string{" UTC", " UT", " +0000", " -0000"}

const (
	longestRetryAfter = 128 // bytes: two dates, as a proxy joins two headers
	// A number that is a date within a year of now is read as that date. No server asks for a wait of 50 years.
	nearADate = 366 * 24 * time.Hour
)

// dateUnits are how many of a number are a second, where the number is a date: seconds, milliseconds, microseconds or
// nanoseconds since 1970.
var dateUnits = [...]float64{1, 1e3, 1e6, 1e9}

// ParseRetryAfter reads a Retry-After header (RFC 9110 section 10.2.3: whole seconds, or an HTTP date) as a wait from
// now, capped at MaxRetryAfter. It also reads what servers really send: decimals, rounded up; a date as a number; UTC
// or +0000 for GMT; and a list, of which the longest wait counts. Junk, a sign, an exponent, and times that have passed
// are 0. A date is compared with the response's own Date header if that is within a day of now, so that a wrong clock
// of the server does not change the wait.
func ParseRetryAfter(value, date string, now time.Time) (wait time.Duration) {
	if len(value) > longestRetryAfter {
		return 0
	}
	if theirs, ok := httpDate(date); ok && theirs.Sub(now).Abs() <= MaxRetryAfter {
		now = theirs
	}
	for len(value) > 0 {
		var one string
		one, value = firstValue(value)
		wait = max(wait, retryAfter(one, now))
	}
	return min(wait, MaxRetryAfter)
}

// firstValue cuts the first value off a list. A date has a comma after its day's name.
func firstValue(list string) (one, rest string) {
	end := strings.IndexByte(list, ',')
	if end < 0 {
		return strings.Trim(list, " \t"), ""
	}
	if day := strings.Trim(list[:end], " \t"); isWord(day) {
		if next := strings.IndexByte(list[end+1:], ','); next >= 0 {
			end += 1 + next
		} else {
			end = len(list)
		}
	}
	return strings.Trim(list[:end], " \t"), list[min(end+1, len(list)):]
}

func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}

// retryAfter reads one value as a wait from now, not capped at its upper end for dates.
func retryAfter(value string, now time.Time) time.Duration {
	if n, ok := number(value); ok {
		return waitOf(n, now)
	}
	if at, ok := httpDate(value); ok {
		return max(at.Sub(now), 0)
	}
	return 0
}

// waitOf is the wait that a number asks for.
func waitOf(n float64, now time.Time) time.Duration {
	if n <= MaxRetryAfter.Seconds() {
		return time.Duration(math.Ceil(n)) * time.Second
	}
	for _, unit := range dateUnits {
		from := n/unit - float64(now.UnixMilli())/1e3
		if math.Abs(from) <= nearADate.Seconds() {
			return time.Duration(math.Ceil(min(max(from, 0), MaxRetryAfter.Seconds()))) * time.Second
		}
	}
	return MaxRetryAfter
}

// number reads digits, possibly with a fraction. A number of any length neither overflows nor wraps to a short wait.
func number(value string) (n float64, ok bool) {
	digits, scale := 0, 0.0
	for i := range len(value) {
		switch c := value[i]; {
		case c == '.' && scale == 0 && digits > 0:
			scale = 1
		case c < '0' || c > '9':
			return 0, false
		case scale > 0:
			scale /= 10
			n += float64(c-'0') * scale
			digits++
		default:
			n = n*10 + float64(c-'0')
			digits++
		}
	}
	return n, digits > 0 && value[len(value)-1] != '.'
}

func httpDate(value string) (time.Time, bool) {
	value = strings.Trim(value, " \t")
	for _, zone := range zones {
		if rest, ends := strings.CutSuffix(value, zone); ends {
			value = rest + " GMT"
			break
		}
	}
	for _, layout := range httpDates {
		if at, err := time.Parse(layout, value); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
