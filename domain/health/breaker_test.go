package health_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func failed(n int) delivery.Counters {
	return delivery.Counters{ConsecutiveFailures: n, UnhealthySince: noon, FirstFailureAt: noon, LastFailureAt: noon}
}

func halfOpen(probes int) health.Breaker {
	return health.Breaker{State: health.HalfOpen, OpenedAt: noon, NextProbeAt: after(2 * time.Minute), Probes: probes}
}

func TestTheBreakerFollowsEveryOutcomeFromEveryState(t *testing.T) {
	t.Parallel()
	open := health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: after(time.Minute)}
	now := after(90 * time.Second)
	next := func(wait time.Duration, probes int) health.Breaker {
		return health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: now.Add(wait), Probes: probes}
	}
	fresh := health.Breaker{State: health.Open, OpenedAt: now, NextProbeAt: now.Add(time.Minute)}
	tests := []struct {
		name  string
		from  health.Breaker
		c     delivery.Counters
		class delivery.Class
		want  health.Breaker
	}{
		{"nine failures leave it closed", health.Breaker{}, failed(9), delivery.Unhealthy, health.Breaker{}},
		{"the tenth opens it", health.Breaker{}, failed(10), delivery.Unhealthy, fresh},
		{"more than ten open it too", health.Breaker{}, failed(11), delivery.Unhealthy, fresh},
		{"refusals alone don't open it", health.Breaker{}, delivery.Counters{AuthStreak: 50, FirstFailureAt: noon}, delivery.Auth, health.Breaker{}},
		{"throttling doesn't open it", health.Breaker{}, delivery.Counters{}, delivery.Throttled, health.Breaker{}},
		{"a success leaves it closed", health.Breaker{}, delivery.Counters{LastSuccessAt: now}, delivery.Success, health.Breaker{}},
		{"what was under way when it opened puts no probe off", open, failed(11), delivery.Unhealthy, open},
		{"a refusal that was under way changes nothing", open, failed(10), delivery.Auth, open},
		{"a success that was under way closes it", open, delivery.Counters{LastSuccessAt: now}, delivery.Success, health.Breaker{}},
		{"a probe that succeeds closes it", halfOpen(3), delivery.Counters{LastSuccessAt: now}, delivery.Success, health.Breaker{}},
		{"the 1st failed probe waits 2 min", halfOpen(0), failed(11), delivery.Unhealthy, next(2*time.Minute, 1)},
		{"the 2nd 4 min", halfOpen(1), failed(12), delivery.Unhealthy, next(4*time.Minute, 2)},
		{"the 5th 32 min", halfOpen(4), failed(15), delivery.Unhealthy, next(32*time.Minute, 5)},
		{"the 6th an hour, not 64 min", halfOpen(5), failed(16), delivery.Unhealthy, next(time.Hour, 6)},
		{"the 7th an hour", halfOpen(6), failed(17), delivery.Unhealthy, next(time.Hour, 7)},
		{"the 10,000th an hour", halfOpen(9999), failed(10_009), delivery.Unhealthy, next(time.Hour, 10_000)},
		{"a probe that is throttled keeps the wait", halfOpen(3), failed(13), delivery.Throttled, next(8*time.Minute, 3)},
		{"a probe that is refused begins the waits anew", halfOpen(6), failed(16), delivery.Auth, next(time.Minute, 0)},
		{"so does one that is rejected for its own sake", halfOpen(6), failed(16), delivery.Neutral, next(time.Minute, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.from.After(tt.c, tt.class, now); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestOneProbeGoesAtATimeAndNotBeforeItsMoment(t *testing.T) {
	t.Parallel()
	open := health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: after(time.Hour), Probes: 6}
	tests := []struct {
		name string
		b    health.Breaker
		now  time.Time
		want bool
	}{
		{"a closed one has nothing to probe", health.Breaker{}, noon, false},
		{"just opened", open, noon, false},
		{"a moment before", open, after(time.Hour - time.Nanosecond), false},
		{"at the moment", open, after(time.Hour), true},
		{"long after", open, after(1000 * time.Hour), true},
		{"a probe is under way", halfOpen(0), after(2*time.Minute - time.Nanosecond), false},
		{"the probe is lost", halfOpen(0), after(2 * time.Minute), true},
		{"the clock was put back further than any wait", open, after(-time.Nanosecond), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.b.MayProbe(tt.now); got != tt.want {
				t.Errorf("may probe: %t, want %t", got, tt.want)
			}
			got, ok := tt.b.Probe(tt.now)
			want := tt.b
			if tt.want {
				want.State, want.NextProbeAt = health.HalfOpen, tt.now.Add(health.ProbeLost)
			}
			if ok != tt.want || got != want {
				t.Errorf("probe: %t %+v, want %t %+v", ok, got, tt.want, want)
			}
			if ok && got.MayProbe(tt.now) {
				t.Error("a second probe may go beside the first")
			}
		})
	}
}

func TestAProbeThatNeverWentIsGivenBack(t *testing.T) {
	t.Parallel()
	now := after(time.Minute)
	got := halfOpen(4).GiveBack(now)
	if want := (health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: now, Probes: 4}); got != want ||
		!got.MayProbe(now) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, b := range []health.Breaker{{}, {State: health.Open, OpenedAt: noon, NextProbeAt: after(time.Hour)}} {
		if b.GiveBack(now) != b {
			t.Errorf("%+v had no probe to give back", b)
		}
	}
}

func TestAnEndpointThatStaysDownIsProbedHourlyAtLast(t *testing.T) {
	t.Parallel()
	b, c, now := health.Breaker{}, delivery.Counters{}, noon
	fail := func() {
		r := delivery.Result{Status: 503}
		c = c.After(delivery.Unhealthy, r, now)
		b = b.After(c, delivery.Unhealthy, now)
	}
	for range 10 {
		fail()
	}
	for i, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		wait := b.NextProbeAt.Sub(now)
		t.Logf("probe %d after %s", i+1, wait)
		if wait != time.Duration(minutes)*time.Minute {
			t.Fatalf("probe %d waits %s, want %d min", i+1, wait, minutes)
		}
		now = b.NextProbeAt
		var ok bool
		if b, ok = b.Probe(now); !ok {
			t.Fatalf("probe %d may not go", i+1)
		}
		fail()
	}
}

// Whatever comes in whatever order, a breaker never keeps a lane from its next probe for more than an hour, never lets
// two probes go at once, and is closed by a success.
func TestNoOrderOfOutcomesLocksALane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, c, now := health.Breaker{}, delivery.Counters{}, noon
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				may := b.MayProbe(now)
				probing, ok := b.Probe(now)
				if ok != may || ok && probing.MayProbe(now) {
					t.Fatalf("probe %t, may %t: %+v", ok, may, probing)
				}
				b = probing
			case 1:
				b = b.GiveBack(now)
			default:
				r := delivery.Result{Status: rapid.SampledFrom([]int{200, 500, 500, 500, 401, 429, 422}).Draw(t, "status")}
				class := delivery.Classify(r, false)
				c = c.After(class, r, now)
				b = b.After(c, class, now)
				if class == delivery.Success && b != (health.Breaker{}) {
					t.Fatalf("a success left %+v", b)
				}
			}
			if (b.State == health.Closed) != (c.ConsecutiveFailures < health.FailuresToOpen) {
				t.Fatalf("%s after %d failures", b.State, c.ConsecutiveFailures)
			}
			if b.State != health.Closed && !b.MayProbe(now.Add(health.MaxProbeWait)) {
				t.Fatalf("no probe within an hour of %s: %+v", now, b)
			}
		}
	})
}

func TestBreakerStatesHaveTheirWords(t *testing.T) {
	t.Parallel()
	for s, want := range map[health.State]string{health.Closed: "closed", health.Open: "open", health.HalfOpen: "half_open", 7: "state_7", -1: "state_-1"} {
		if text, err := s.MarshalText(); s.String() != want || string(text) != want || err != nil {
			t.Errorf("got %s and %s, want %s", s, text, want)
		}
	}
}

func TestWhoAsksForARequestGetsAProbeAtOnceAndNoSecond(t *testing.T) {
	t.Parallel()
	open := health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: after(time.Hour), Probes: 7}
	if open.MayProbe(after(time.Minute)) || !open.Asked(after(time.Minute)).MayProbe(after(time.Minute)) {
		t.Error("an open breaker does not probe when somebody asks")
	}
	if b := halfOpen(3); b.Asked(after(time.Second)) != b {
		t.Error("a probe that is under way is not the only one")
	}
	if b := (health.Breaker{}); b.Asked(noon) != b {
		t.Error("a closed breaker changed")
	}
}

func TestAnOpenBreakerLooksHalfOpenOnceItsProbeIsDue(t *testing.T) {
	t.Parallel()
	open := health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: after(time.Minute)}
	for at, want := range map[time.Duration]health.State{
		time.Second: health.Open,
		time.Minute: health.HalfOpen,
		time.Hour:   health.HalfOpen,
	} {
		if got := open.At(after(at)); got != want {
			t.Errorf("after %v it is %s, want %s", at, got, want)
		}
	}
	if got := (health.Breaker{}).At(noon); got != health.Closed {
		t.Errorf("a closed breaker looks %s", got)
	}
}

func TestProbesOfEndpointsThatFailedTogetherAreSpread(t *testing.T) {
	t.Parallel()
	open := health.Breaker{State: health.Open, OpenedAt: noon, NextProbeAt: after(10 * time.Minute), Probes: 3}
	for _, tt := range []struct {
		b        health.Breaker
		fraction float64
		want     time.Time
	}{
		{open, 0, after(10 * time.Minute)},
		{open, 0.5, after(9 * time.Minute)},
		{open, 1, after(8 * time.Minute)},
		{halfOpen(1), 1, halfOpen(1).NextProbeAt},
		{health.Breaker{}, 1, time.Time{}},
		{health.Breaker{State: health.Open, NextProbeAt: noon}, 1, noon},
	} {
		if got := tt.b.Spread(tt.fraction, noon).NextProbeAt; !got.Equal(tt.want) {
			t.Errorf("%+v by %g: next probe at %s, want %s", tt.b, tt.fraction, got, tt.want)
		}
	}
}
