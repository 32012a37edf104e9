package health_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

const hour = time.Hour

// down are the counters of an endpoint that failed n times from noon on, without a success before.
func down(n int) delivery.Counters {
	return delivery.Counters{ConsecutiveFailures: n, UnhealthySince: noon, FirstFailureAt: noon, LastFailureAt: noon}
}

func refused(n int) delivery.Counters {
	return delivery.Counters{AuthStreak: n, AuthSince: noon, FirstFailureAt: noon, LastFailureAt: noon}
}

func noTLS(n int) delivery.Counters {
	c := down(n)
	c.TLSFailures, c.TLSOnlySince = n, noon
	return c
}

func exhausted(n int) delivery.Counters { return delivery.Counters{Exhausted: n, LastSuccessAt: noon} }

func only(f func(*health.Policy)) health.Policy {
	p := health.Policy{UnhealthyFailures: 10, FailuresHours: 12}
	f(&p)
	return p
}

func TestManyFailuresDisableAtOnceWhereNoHoursAreAsked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := health.Policy{UnhealthyFailures: 10, FailuresOver: 100}
	c := delivery.Counters{
		ConsecutiveFailures: 100,
		UnhealthySince:      now.Add(-time.Minute),
		FirstFailureAt:      now.Add(-time.Minute),
	}
	if v := p.Evaluate(c, now); v.Disable {
		t.Errorf("100 failures: %+v", v)
	}
	c.ConsecutiveFailures++
	if v := p.Evaluate(c, now); !v.Disable || v.Reason != health.Failures || !v.DisableAt.Equal(now) {
		t.Errorf("101 failures: %+v", v)
	}
	if got := p.Sentence(health.Failures); strings.Contains(got, "0 hours") || strings.Contains(got, "over at least") {
		t.Error(got)
	}
}

func TestEveryPolicyDisablesAtItsBoundaryAndNotBefore(t *testing.T) {
	t.Parallel()
	def := health.DefaultPolicy()
	five := only(func(p *health.Policy) { p.Exhausted = 5 })
	one := only(func(p *health.Policy) { p.AuthFailures = 1 })
	short := only(func(p *health.Policy) { p.UnhealthyHours, p.UnhealthyFailures = 1, 1 })
	at := func(d time.Duration) time.Time { return after(d) }
	tests := []struct {
		name   string
		p      health.Policy
		c      delivery.Counters
		now    time.Time
		reason health.Reason // empty: stays
		since  time.Time     // DisableAt of one that is disabled
	}{
		{"a new endpoint", def, delivery.Counters{}, noon, "", time.Time{}},
		{"a well one", def, delivery.Counters{LastSuccessAt: noon}, at(10_000 * hour), "", time.Time{}},

		{"9 refusals", def, refused(9), noon, "", time.Time{}},
		{"9 refusals, long ago", def, refused(9), at(10_000 * hour), "", time.Time{}},
		{"one refusal where one is enough", one, refused(1), noon, health.Auth, noon},
		{"refusals where they never disable", only(func(*health.Policy) {}), refused(100_000), noon, "", time.Time{}},

		{"10 failures, a moment before 5 days", def, down(10), at(120*hour - 1), "", time.Time{}},
		{"10 failures for 5 days", def, down(10), at(120 * hour), health.Unhealthy, at(120 * hour)},
		{"9 failures for 5 days", def, down(9), at(120 * hour), "", time.Time{}},
		{"9 failures for a year", def, down(9), at(8760 * hour), "", time.Time{}},
		{"found a day late", def, down(10), at(144 * hour), health.Unhealthy, at(120 * hour)},
		{"a shorter policy", short, down(1), at(hour), health.Unhealthy, at(hour)},
		{"a moment before it", short, down(1), at(hour - 1), "", time.Time{}},
		{"failures where they never disable", only(func(*health.Policy) {}), down(100_000), at(10_000 * hour), "", time.Time{}},

		{"100 failures over 12 h are not more than 100", def, down(100), at(12 * hour), "", time.Time{}},
		{"101 failures over 12 h", def, down(101), at(12 * hour), health.Failures, at(12 * hour)},
		{"101 failures, a moment before 12 h", def, down(101), at(12*hour - 1), "", time.Time{}},
		{"100,000 failures within an hour", def, down(100_000), at(hour), "", time.Time{}},

		{"TLS errors, a moment before 24 h", def, noTLS(3), at(24*hour - 1), "", time.Time{}},
		{"TLS errors for 24 h", def, noTLS(3), at(24 * hour), health.TLS, at(24 * hour)},
		{"the counters of a lane's new owner, which lack the number", def, func() delivery.Counters {
			c := noTLS(3)
			c.TLSFailures = 0
			return c
		}(), at(24 * hour), health.TLS, at(24 * hour)},
		{"other failures for 24 h", def, down(3), at(24 * hour), "", time.Time{}},

		{"9 refusals for long", def, refused(9), at(hour), "", time.Time{}},
		{"10 refusals in a second", def, refused(10), at(time.Second), "", time.Time{}},
		{"10 refusals in half an hour less a moment", def, refused(10), at(hour/2 - 1), "", time.Time{}},
		{"10 refusals in half an hour", def, refused(10), at(hour / 2), health.Auth, at(hour / 2)},
		{"refusals after hours of other failures", def, func() delivery.Counters {
			c := down(20)
			c.AuthStreak, c.AuthSince = 10, at(3*hour)
			return c
		}(), at(3*hour + hour/4), "", time.Time{}},
		{"where the count alone decides", only(func(p *health.Policy) { p.AuthFailures = 10 }), refused(10), noon, health.Auth, noon},

		{"exhausted deliveries are no reason by default", def, exhausted(100_000), noon, "", time.Time{}},
		{"4 exhausted of 5", five, exhausted(4), at(hour), "", time.Time{}},
		{"5 exhausted of 5", five, exhausted(5), at(hour), health.Exhausted, at(hour)},

		{"TLS names the cause before the hours do", def, noTLS(101), at(24 * hour), health.TLS, at(24 * hour)},
		{"a refusal names the cause before the days do", def, func() delivery.Counters {
			c := down(500)
			c.AuthStreak = 10
			return c
		}(), at(500 * hour), health.Auth, at(hour / 2)},
		{"a clock that was put back disables nobody", def, noTLS(500), at(-500 * hour), "", time.Time{}},
		{"a count without its beginning disables nobody", def, delivery.Counters{ConsecutiveFailures: 500}, noon, "", time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := tt.p.Evaluate(tt.c, tt.now)
			if v.Disable != (tt.reason != "") {
				t.Fatalf("got %+v, want disabled for %q", v, tt.reason)
			}
			if v.Disable && (v.Reason != tt.reason || !v.DisableAt.Equal(tt.since) || v.Warn != nil) {
				t.Errorf("got %+v, want %s at %s", v, tt.reason, tt.since)
			}
			if !v.Disable && !v.DisableAt.IsZero() && !v.DisableAt.After(tt.now) {
				t.Errorf("counts down to %s, which is over", v.DisableAt)
			}
		})
	}
}

func TestA410DisablesAtOnceUnlessTheTenantSaysOtherwise(t *testing.T) {
	t.Parallel()
	gone := delivery.Decide(delivery.Policy{}, 1, delivery.Result{Status: 410}, 0)
	other := delivery.Decide(delivery.Policy{}, 1, delivery.Result{Status: 404}, 0)
	lenient := health.DefaultPolicy()
	lenient.Gone = false
	for _, tt := range []struct {
		name string
		p    health.Policy
		d    delivery.Decision
		want health.Verdict
	}{
		{"410", health.DefaultPolicy(), gone, health.Verdict{Disable: true, Reason: health.Gone, DisableAt: noon}},
		{"410 where it does not disable", lenient, gone, health.Verdict{}},
		{"404", health.DefaultPolicy(), other, health.Verdict{}},
	} {
		if got := tt.p.EvaluateDecision(tt.d, noon); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestTheCountdownRunsToTheSoonestDate(t *testing.T) {
	t.Parallel()
	def := health.DefaultPolicy()
	for _, tt := range []struct {
		name   string
		c      delivery.Counters
		reason health.Reason
		at     time.Time
	}{
		{"no date while failures are missing", down(9), "", time.Time{}},
		{"5 days from the first failure", down(10), health.Unhealthy, after(120 * hour)},
		{"12 hours once there are more than 100", down(101), health.Failures, after(12 * hour)},
		{"24 hours with TLS", noTLS(10), health.TLS, after(24 * hour)},
		{"12 hours with TLS and more than 100", noTLS(101), health.Failures, after(12 * hour)},
		{"counting refusals has no date", refused(9), "", time.Time{}},
	} {
		if v := def.Evaluate(tt.c, after(time.Minute)); v.Disable || v.Reason != tt.reason ||
			!v.DisableAt.Equal(tt.at) {
			t.Errorf("%s: got %+v, want %s at %s", tt.name, v, tt.reason, tt.at)
		}
	}
}

func TestWarningsComeHalfWayAndADayBefore(t *testing.T) {
	t.Parallel()
	def := health.DefaultPolicy()
	days := func(n int) health.Policy {
		return only(func(p *health.Policy) { p.UnhealthyHours = n * 24 })
	}
	unhealthy := func(stage health.Stage, total time.Duration) health.Warning {
		return health.Warning{Reason: health.Unhealthy, Stage: stage, Since: noon, DisableAt: after(total)}
	}
	tests := []struct {
		name string
		p    health.Policy
		c    delivery.Counters
		now  time.Time
		want []health.Warning
	}{
		{"a moment before half-way", def, down(10), after(60*hour - 1), nil},
		{"half-way", def, down(10), after(60 * hour), []health.Warning{unhealthy(health.HalfWay, 120*hour)}},
		{"a moment before the last day", def, down(10), after(96*hour - 1), []health.Warning{unhealthy(health.HalfWay, 120*hour)}},
		{"the last day", def, down(10), after(96 * hour), []health.Warning{unhealthy(health.LastDay, 120*hour)}},
		{"the last moment", def, down(10), after(120*hour - 1), []health.Warning{unhealthy(health.LastDay, 120*hour)}},

		{"two days: half-way is the day before, once", days(2), down(10), after(24 * hour), []health.Warning{unhealthy(health.HalfWay, 48*hour)}},
		{"two days: and stays it", days(2), down(10), after(48*hour - 1), []health.Warning{unhealthy(health.HalfWay, 48*hour)}},
		{"three days: half-way", days(3), down(10), after(36 * hour), []health.Warning{unhealthy(health.HalfWay, 72*hour)}},
		{"three days: the last day", days(3), down(10), after(48 * hour), []health.Warning{unhealthy(health.LastDay, 72*hour)}},

		{"TLS before half-way", def, noTLS(1), after(12*hour - 1), nil},
		{"TLS half-way, and no day before that", def, noTLS(1), after(12 * hour), []health.Warning{
			{Reason: health.TLS, Stage: health.HalfWay, Since: noon, DisableAt: after(24 * hour)},
		}},
		{"101 failures before half-way", def, down(101), after(6*hour - 1), nil},
		{"101 failures half-way", def, down(101), after(6 * hour), []health.Warning{
			{Reason: health.Failures, Stage: health.HalfWay, Since: noon, DisableAt: after(12 * hour)},
		}},

		{"half of the failures, before half of the time", def, down(50), after(6 * hour), nil},
		{"half of the failures and of the time", def, down(51), after(6 * hour), []health.Warning{
			{Reason: health.Failures, Stage: health.Approaching, Since: noon, Left: 50},
		}},
		{"one failure missing for long", def, down(100), after(59 * hour), []health.Warning{
			{Reason: health.Failures, Stage: health.Approaching, Since: noon, Left: 1},
		}},
		{"4 of 10 failures for years", days(5), down(4), after(10_000 * hour), nil},
		{"5 of 10 failures", days(5), down(5), after(60 * hour), []health.Warning{
			{Reason: health.Unhealthy, Stage: health.Approaching, Since: noon, Left: 5},
		}},

		{"4 of 10 refusals", def, refused(4), after(hour), nil},
		{"5 of 10 refusals", def, refused(5), after(hour), []health.Warning{
			{Reason: health.Auth, Stage: health.Approaching, Since: noon, Left: 5},
		}},
		{"10 refusals in a quarter of an hour", def, refused(10), after(hour / 4), []health.Warning{
			{Reason: health.Auth, Stage: health.HalfWay, Since: noon, DisableAt: after(hour / 2)},
		}},
		{"2 of 5 exhausted", only(func(p *health.Policy) { p.Exhausted = 5 }), exhausted(2), noon, nil},
		{"3 of 5 exhausted", only(func(p *health.Policy) { p.Exhausted = 5 }), exhausted(3), noon, []health.Warning{
			{Reason: health.Exhausted, Stage: health.Approaching, Since: noon, Left: 2},
		}},
		{"where one is enough there is nothing to warn of", only(func(p *health.Policy) { p.AuthFailures = 1 }), refused(0), noon, nil},

		{"several at once: the soonest date first, the undated last", def, func() delivery.Counters {
			c := noTLS(60)
			c.AuthStreak = 7
			c.UnhealthySince = after(-60 * hour)
			return c
		}(), after(13 * hour), []health.Warning{
			{Reason: health.TLS, Stage: health.HalfWay, Since: noon, DisableAt: after(24 * hour)},
			{Reason: health.Unhealthy, Stage: health.HalfWay, Since: after(-60 * hour), DisableAt: after(60 * hour)},
			{Reason: health.Auth, Stage: health.Approaching, Since: noon, Left: 3},
			{Reason: health.Failures, Stage: health.Approaching, Since: after(-60 * hour), Left: 41},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := tt.p.Evaluate(tt.c, tt.now)
			if v.Disable || !reflect.DeepEqual(v.Warn, tt.want) {
				t.Errorf("got  %+v\nwant %+v", v.Warn, tt.want)
			}
		})
	}
}

func TestAWarningIsNeverRepeatedForTheSameStreak(t *testing.T) {
	t.Parallel()
	warn := func(stage health.Stage, since time.Duration) health.Warning {
		w := health.Warning{Reason: health.Unhealthy, Stage: stage, Since: after(since)}
		if stage != health.Approaching {
			w.DisableAt = after(since + 120*hour)
		}
		return w
	}
	told := func(stage health.Stage, since, at time.Duration) health.SentWarning {
		return health.SentWarning{Reason: health.Unhealthy, Stage: stage, Since: after(since), At: after(at)}
	}
	tests := []struct {
		name string
		due  health.Warning
		sent []health.SentWarning
		now  time.Time
		send bool
	}{
		{"the first", warn(health.HalfWay, 0), nil, after(60 * hour), true},
		{"the same again", warn(health.HalfWay, 0), []health.SentWarning{told(health.HalfWay, 0, 60*hour)}, after(61 * hour), false},
		{"a later stage", warn(health.LastDay, 0), []health.SentWarning{told(health.HalfWay, 0, 60*hour)}, after(96 * hour), true},
		{"a later stage again", warn(health.LastDay, 0), []health.SentWarning{
			told(health.HalfWay, 0, 60*hour),
			told(health.LastDay, 0, 96*hour),
		}, after(97 * hour), false},
		{"an earlier stage after a later, when the clock was put back", warn(health.HalfWay, 0), []health.SentWarning{told(health.LastDay, 0, 96*hour)}, after(61 * hour), false},
		{"a date after a warning without one", warn(health.HalfWay, 0), []health.SentWarning{told(health.Approaching, 0, 60*hour)}, after(70 * hour), true},
		{
			"one without a date after one with it", warn(health.Approaching, 0),
			[]health.SentWarning{told(health.HalfWay, 0, 60*hour)},
			after(70 * hour),
			false,
		},
		{
			"a late result moved the beginning back", warn(health.HalfWay, -time.Minute),
			[]health.SentWarning{told(health.HalfWay, 0, 60*hour)},
			after(61 * hour),
			false,
		},
		{
			"a new streak", warn(health.HalfWay, 70*hour),
			[]health.SentWarning{told(health.HalfWay, 0, 60*hour)},
			after(130 * hour),
			true,
		},
		{
			"a new streak that began the moment after", warn(health.HalfWay, 60*hour+1),
			[]health.SentWarning{told(health.HalfWay, 0, 60*hour)},
			after(121 * hour),
			true,
		},
		{"sent by a clock that is behind", warn(health.HalfWay, 0), []health.SentWarning{told(health.HalfWay, 0, -hour)}, after(61 * hour), false},
		{"another policy's", warn(health.HalfWay, 0), []health.SentWarning{{
			Reason: health.TLS,
			Stage:  health.HalfWay,
			Since:  noon,
			At:     after(hour),
		}}, after(61 * hour), true},
		{"a moment before its date", warn(health.LastDay, 0), nil, after(120*hour - 1), true},
		{"its date is over", warn(health.LastDay, 0), nil, after(120 * hour), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := health.Verdict{Warn: []health.Warning{tt.due}}
			got := health.Warnings(v, tt.sent, tt.now)
			if tt.send != (len(got) == 1) || tt.send && got[0] != tt.due {
				t.Errorf("got %+v, want %t", got, tt.send)
			}
			v.Disable = true
			if got := health.Warnings(v, nil, noon); got != nil {
				t.Errorf("warns of what is done: %+v", got)
			}
		})
	}
}

// An endpoint goes down permanently, is probed every hour and looked at every ten minutes: each warning comes once,
// each on its date, and then the end that they named.
func TestAnEndpointThatDiesIsWarnedOfAndDisabledOnTheDateItWasTold(t *testing.T) {
	t.Parallel()
	p := health.DefaultPolicy()
	p.FailuresOver = 0
	c := delivery.Counters{LastSuccessAt: noon.Add(-hour)}
	var sent []health.SentWarning
	var came []time.Duration
	var promised time.Time
	for now := noon; ; now = now.Add(10 * time.Minute) {
		if now.Sub(noon)%hour == 0 {
			c = c.After(delivery.Unhealthy, delivery.Result{Status: 502}, now)
		}
		v := p.Evaluate(c, now)
		if v.Disable {
			if v.Reason != health.Unhealthy || !now.Equal(promised) {
				t.Fatalf("disabled at %s for %s, was told %s", now, v.Reason, promised)
			}
			break
		}
		for _, w := range health.Warnings(v, sent, now) {
			sent = append(sent, health.SentWarning{Reason: w.Reason, Stage: w.Stage, Since: w.Since, At: now})
			came, promised = append(came, now.Sub(noon)), w.DisableAt
		}
		if now.After(after(130 * hour)) {
			t.Fatal("never disabled")
		}
	}
	if want := []time.Duration{60 * hour, 96 * hour}; !reflect.DeepEqual(came, want) {
		t.Errorf("warned after %v, want %v", came, want)
	}
}
