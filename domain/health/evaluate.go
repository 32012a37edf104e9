package health

import (
	"slices"
	"time"

	"posthorn/domain/delivery"
)

// Verdict is what the policy says of an endpoint at a moment.
type Verdict struct {
	Disable bool   // now
	Reason  Reason // why it is disabled, or will be at DisableAt; empty when neither
	// DisableAt is the moment when it will be disabled if nothing changes, for the dashboard to count down to; zero if
	// there is none, as with policies that count without a clock. With Disable it is that date, or now if there was
	// none.
	DisableAt time.Time
	// that are due, the soonest date first; see Warnings for which of them to send. None with Disable
	Warn []Warning
}

// Stage says how near the end is.
type Stage string

// The stages, in the order in which they come.
const (
	Approaching Stage = "approaching" // half of everything that the policy asks for, but it still lacks failures: no date
	HalfWay     Stage = "half_way"    // half of the time until the date is over
	LastDay     Stage = "last_day"    // 24 hours are left; only of policies where that is later than half-way
)

var stages = []Stage{Approaching, HalfWay, LastDay}

// Warning tells an endpoint's owner that it will be disabled.
type Warning struct {
	Reason    Reason
	Stage     Stage
	Since     time.Time // when the streak began; zero when it began with the endpoint
	DisableAt time.Time // zero when Approaching
	Left      int       // failures that are still missing; 0 when dated
}

// day is the lead of the last warning.
const day = 24 * time.Hour

// streak is one policy's view of the counters.
type streak struct {
	reason Reason
	count  int // of so many failures
	needed int
	since  time.Time
	period time.Duration // and for so long; 0: counting alone decides
}

// streaks lists the policies that are on. The order is that of Reasons.
func (p Policy) streaks(c delivery.Counters) []streak {
	var on []streak
	add := func(switchedOn int, s streak) {
		if switchedOn > 0 {
			on = append(on, s)
		}
	}
	tls := 0
	if !c.TLSOnlySince.IsZero() {
		tls = 1
	}
	add(p.TLSHours, streak{TLS, tls, 1, c.TLSOnlySince, hours(p.TLSHours)})
	since := c.AuthSince
	if since.IsZero() {
		since = c.FirstFailureAt // of a streak that an older process recorded
	}
	add(p.AuthFailures, streak{Auth, c.AuthStreak, p.AuthFailures, since, time.Duration(p.AuthMinutes) * time.Minute})
	add(p.UnhealthyHours, streak{
		Unhealthy, c.ConsecutiveFailures, p.UnhealthyFailures, c.UnhealthySince,
		hours(p.UnhealthyHours),
	})
	add(p.FailuresOver, streak{
		Failures, c.ConsecutiveFailures, p.FailuresOver + 1, c.UnhealthySince,
		hours(p.FailuresHours),
	})
	// A delivery can run out of attempts by 429 alone, which leaves no other mark.
	add(p.Exhausted, streak{Exhausted, c.Exhausted, p.Exhausted, c.LastSuccessAt, 0})
	return on
}

func hours(n int) time.Duration { return time.Duration(n) * time.Hour }

// left is how many failures are missing.
func (s streak) left() int { return max(s.needed-s.count, 0) }

// date is when the policy holds if nothing changes; false when failures are missing or time plays no part.
func (s streak) date() (time.Time, bool) {
	if s.left() > 0 || s.period == 0 || s.since.IsZero() {
		return time.Time{}, false
	}
	return s.since.Add(s.period), true
}

// holds reports whether the policy's condition is there, and since when.
func (s streak) holds(now time.Time) (time.Time, bool) {
	if s.period == 0 {
		return now, s.left() == 0
	}
	at, dated := s.date()
	return at, dated && !now.Before(at)
}

// warning is the latest that is due; false when none is.
func (s streak) warning(now time.Time) (Warning, bool) {
	halfCount := 2*s.count >= s.needed
	halfTime := s.period == 0 || !s.since.IsZero() && !now.Before(s.since.Add(s.period/2))
	if !halfCount || !halfTime {
		return Warning{}, false
	}
	w := Warning{Reason: s.reason, Stage: Approaching, Since: s.since, Left: s.left()}
	if at, dated := s.date(); dated {
		w.DisableAt, w.Stage = at, HalfWay
		if s.period > 2*day && !now.Before(at.Add(-day)) {
			w.Stage = LastDay
		}
	}
	return w, true
}

// Evaluate says what the policy means for an endpoint with these counters. Time alone can complete a policy: an
// endpoint that is silent after its failures is disabled on the date that its owner was told.
func (p Policy) Evaluate(c delivery.Counters, now time.Time) Verdict {
	var v Verdict
	for _, s := range p.streaks(c) {
		if at, holds := s.holds(now); holds {
			return Verdict{Disable: true, Reason: s.reason, DisableAt: at}
		}
		if at, dated := s.date(); dated && (v.DisableAt.IsZero() || at.Before(v.DisableAt)) {
			v.Reason, v.DisableAt = s.reason, at
		}
		if w, due := s.warning(now); due {
			v.Warn = append(v.Warn, w)
		}
	}
	slices.SortStableFunc(v.Warn, func(a, b Warning) int {
		switch {
		case a.DisableAt.IsZero() || b.DisableAt.IsZero():
			return b.DisableAt.Compare(a.DisableAt) // the undated last
		default:
			return a.DisableAt.Compare(b.DisableAt)
		}
	})
	return v
}

// EvaluateDecision says what one decision means, which the counters don't know of: a 410.
func (p Policy) EvaluateDecision(d delivery.Decision, now time.Time) Verdict {
	if d.Disable != delivery.DisableGone || !p.Gone {
		return Verdict{}
	}
	return Verdict{Disable: true, Reason: Gone, DisableAt: now}
}

// Verdict is what the policy says of recorded counters, and of a 410 that is on record.
func (p Policy) Verdict(c delivery.Counters, gone bool, now time.Time) Verdict {
	if gone && p.Gone {
		return Verdict{Disable: true, Reason: Gone, DisableAt: now}
	}
	return p.Evaluate(c, now)
}

// SentWarning is a warning that went out.
type SentWarning struct {
	Reason Reason
	Stage  Stage
	Since  time.Time // of the warning
	At     time.Time // when it was decided to send it
}

// Warnings lists what of a verdict's warnings is still to be sent: what was not sent for the same streak, nor overtaken
// by a later stage of it. A warning whose date is over is left out, since the endpoint is disabled by now.
//
// A warning belongs to the present streak if it names its beginning, or was sent after it: results that come in out of
// order move a beginning back a little, and a new streak begins after everything that was sent for the one before.
func Warnings(v Verdict, sent []SentWarning, now time.Time) []Warning {
	if v.Disable {
		return nil
	}
	var send []Warning
	for _, w := range v.Warn {
		over := !w.DisableAt.IsZero() && !now.Before(w.DisableAt)
		told := slices.ContainsFunc(sent, func(s SentWarning) bool {
			return s.Reason == w.Reason && slices.Index(stages, s.Stage) >= slices.Index(stages, w.Stage) &&
				(s.Since.Equal(w.Since) || !s.At.Before(w.Since))
		})
		if !over && !told {
			send = append(send, w)
		}
	}
	return send
}
