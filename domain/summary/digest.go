package summary

import (
	"slices"
	"time"

	"posthorn/domain/health"
)

// DigestDay is the UTC day of a moment, at its midnight: the part of a digest's unique key beside the tenant.
func DigestDay(now time.Time) time.Time { return now.UTC().Truncate(day) }

// ShouldDigest says whether a tenant gets a digest now: something is degraded, or a delivery failed permanently in the
// last 24 hours, and no digest was made for this UTC day. last is the day of the last one, zero for none. A clock that
// was put back finds a day that is not later than the last one, and sends nothing. Failed attempts whose retries
// succeeded are no reason while the rates are good: a busy tenant always has some. Nor is a stop that began before
// yesterday: its own notice told of it.
func ShouldDigest(s Summary, last, now time.Time) bool {
	news := slices.ContainsFunc(s.Findings, func(f Finding) bool {
		return f.Severity > health.OK && (f.since.IsZero() || now.Sub(f.since) < day)
	})
	if !news && s.FailedDeliveries <= 0 {
		return false
	}
	return last.IsZero() || DigestDay(now).After(DigestDay(last))
}
