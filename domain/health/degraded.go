package health

import "time"

// degradedFor is how long after a failed attempt an endpoint that responds again is still degraded.
const degradedFor = 15 * time.Minute

// Record is what an endpoint's attempts of the last 24 hours ended with, and when. Times are zero where there was none.
type Record struct {
	Day       Rate
	Succeeded time.Time // the last success, at most a minute early
	Failed    time.Time // the last failed attempt, at most a minute early
	Since     time.Time // since when the endpoint is sent to: it became active, or its circuit breaker closed
}

// InARow is how many attempts have failed since the last success, as far as that is known: the counters leave out
// responses that reject an event, so a day without a success says more.
func (r Record) InARow(counted int) int {
	if r.Day.Succeeded == 0 {
		counted = max(counted, int(r.Day.Total))
	}
	return counted
}

// Over reports whether nothing failed, or what failed is over: the endpoint is sent to again since, or responds well
// for degradedFor.
func (r Record) Over(now time.Time) bool {
	return r.Failed.IsZero() || r.Since.After(r.Failed) ||
		r.Succeeded.After(r.Failed) && now.Sub(r.Failed) > degradedFor
}

// Degraded reports whether an endpoint that is sent to fails too often now: fewer than WarningPercent of the attempts
// of its last 24 hours succeeded, and that is not over.
func (r Record) Degraded(now time.Time) bool { return r.Day.Under(WarningPercent) && !r.Over(now) }
