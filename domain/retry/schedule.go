// Package retry holds the schedules by which a delivery is tried again: data, and the arithmetic that reads it. Time
// and randomness come from the caller, so the same input always gives the same delay.
package retry

import (
	"fmt"
	"math"
	"slices"
	"time"

	"posthorn/domain/fault"
)

// Default names the schedule of an endpoint and a tenant that chose none.
const Default = "standard"

// Once names the schedule of a single attempt.
const Once = "once"

// The range of one delay before jitter, and of the number of delays in a custom schedule.
const (
	MinDelay  = time.Second
	MaxDelay  = 24 * time.Hour
	MaxDelays = 20
)

// Schedule is the list of waits between attempts. The zero value means a single attempt and no retry.
type Schedule struct {
	Name   string          // one of Names, or "custom"
	Delays []time.Duration // the wait after the 1st, 2nd, ... attempt, before jitter; never modified
	Jitter float64         // each wait varies by plus or minus this share of itself, 0 to 1
	Full   bool            // full jitter instead: a wait is drawn evenly from nothing up to the whole delay
}

var schedules = []Schedule{
	{
		Name:   "standard",
		Jitter: 0.20,
		Delays: []time.Duration{
			5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
			10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		},
	},
	{Name: "exponential", Full: true, Delays: doubling(time.Minute, 11)},
	{
		Name:   "five",
		Jitter: 0.10,
		Delays: []time.Duration{
			time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour,
		},
	},
	{Name: "short", Jitter: 0.10, Delays: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}},
	{Name: "quick", Jitter: 0.10, Delays: []time.Duration{time.Second, 4 * time.Second}},
	{
		Name:   "daily",
		Jitter: 0.25,
		Delays: []time.Duration{
			time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour,
		},
	},
	{
		Name:   "seven",
		Jitter: 0.10,
		Delays: []time.Duration{
			30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
		},
	},
	{Name: Once, Delays: []time.Duration{}},
}

func doubling(first time.Duration, n int) []time.Duration {
	delays := make([]time.Duration, n)
	for i := range delays {
		delays[i] = min(first<<i, MaxDelay)
	}
	return delays
}

// Patience is how long a delivery waits before retention can end it, counted from when it could be sent: the longest
// schedule that any endpoint has, with jitter, and a day for what holds up its attempts. own is the longest schedule of
// an endpoint's own.
func Patience(own time.Duration) time.Duration {
	longest := 2 * own // jitter can double each delay
	for _, s := range schedules {
		sum := time.Duration(0)
		for _, d := range s.Delays {
			sum += d + time.Duration(s.Jitter*float64(d))
		}
		longest = max(longest, sum)
	}
	return longest + 24*time.Hour
}

// Names lists the built-in schedules, the default first.
func Names() []string {
	names := make([]string, len(schedules))
	for i, s := range schedules {
		names[i] = s.Name
	}
	return names
}

// Named finds a built-in schedule; false if there is none of that name.
func Named(name string) (Schedule, bool) {
	for _, s := range schedules {
		if s.Name == name {
			s.Delays = slices.Clone(s.Delays)
			return s, true
		}
	}
	return Schedule{}, false
}

// Custom makes a schedule named "custom" from up to 20 delays of 1 s to 24 h and a jitter of 0 to 1. Without delays
// there is a single attempt. A value outside is a *fault.Error that names retry_policy.delays or retry_policy.jitter.
func Custom(delays []time.Duration, jitter float64) (Schedule, error) {
	if len(delays) > MaxDelays {
		return Schedule{}, fault.InvalidField(
			"retry_policy.delays",
			"retry_delays_count",
			fmt.Sprintf("A retry schedule can have at most %d delays; this one has %d.", MaxDelays, len(delays)),
		)
	}
	for i, d := range delays {
		if d < MinDelay || d > MaxDelay {
			return Schedule{}, fault.InvalidField(
				"retry_policy.delays",
				"retry_delay_range",
				fmt.Sprintf("Delay %d is %s. Every delay must be from 1 second to 24 hours.", i+1, d),
			)
		}
	}
	if math.IsNaN(jitter) || jitter < 0 || jitter > 1 {
		return Schedule{}, fault.InvalidField(
			"retry_policy.jitter",
			"retry_jitter_range",
			"Jitter is the fraction by which a delay varies. Use a number from 0 to 1, such as 0.1.",
		)
	}
	return Schedule{Name: "custom", Delays: slices.Clone(delays), Jitter: jitter}, nil
}

// Attempts is how often a delivery is tried in all: the first time and once after every delay.
func (s Schedule) Attempts() int { return len(s.Delays) + 1 }

// Delay is the wait after the nth attempt, counted from 1, and whether there is a next attempt at all. random is drawn
// evenly from [0, 1) by the caller. No wait is shorter than MinDelay: without that floor full jitter, or a jitter of 1,
// could send several attempts within a moment and use up the schedule on one hiccup. None is longer than MaxDelay:
// where jitter could go beyond, the wait is drawn evenly up to it, so that waits do not gather at the limit.
func (s Schedule) Delay(attempt int, random float64) (d time.Duration, more bool) {
	attempt = max(attempt, 1)
	if attempt > len(s.Delays) {
		return 0, false
	}
	if math.IsNaN(random) {
		random = 0
	}
	random = min(max(random, 0), 1)
	whole := float64(s.Delays[attempt-1])
	if s.Full {
		// 1 - random turns [0, 1) into (0, 1], so that the whole delay can come up and zero cannot.
		d = time.Duration(whole * (1 - random))
	} else {
		low, high := whole*(1-s.Jitter), min(whole*(1+s.Jitter), float64(MaxDelay))
		d = time.Duration(low + (high-low)*random)
	}
	return max(d, MinDelay), true
}
