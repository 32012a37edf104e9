package delivery

import (
	"strings"
	"time"
)

// The three date forms of RFC 9110 section 5.6.7; senders write the first, receivers must read all.
var httpDates = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// ParseRetryAfter reads a Retry-After header (RFC 9110 section 10.2.3: whole seconds, or an HTTP date) as a wait from
// now, capped at MaxRetryAfter. Junk, a sign, a fraction, an exponent, and times that have passed are 0.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.Trim(value, " \t")
	if value == "" || len(value) > 64 {
		return 0
	}
	if seconds, ok := digits(value); ok {
		return seconds
	}
	for _, layout := range httpDates {
		if at, err := time.Parse(layout, value); err == nil {
			return min(max(at.Sub(now), 0), MaxRetryAfter)
		}
	}
	return 0
}

// digits stops at the cap while it reads, so that a number of any length neither overflows nor wraps to a short wait.
func digits(value string) (time.Duration, bool) {
	var wait time.Duration
	for i := range len(value) {
		c := value[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		wait = min(wait*10+time.Duration(c-'0')*time.Second, MaxRetryAfter)
	}
	return wait, true
}
