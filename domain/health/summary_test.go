package health_test

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

// attempts of which so many succeeded, the others answered 5xx.
func attempts(ok, total int64) health.Attempts {
	return health.Attempts{health.ClassOK: ok, health.ClassServer: total - ok}
}

func TestSeverityChangesBeyondTheThresholdsOfTheDesign(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		in     health.Inputs
		want   health.Severity
		reason string
	}{
		{"a tenant that has nothing", health.Inputs{}, health.OK, "No problems detected."},
		{"all is well", health.Inputs{ActiveEndpoints: 3, Day: attempts(1000, 1000), Hour: attempts(50, 50)}, health.OK, "No problems detected."},
		{"failed deliveries alone degrade nothing", health.Inputs{FailedDeliveries: 5}, health.OK, "No problems detected."},

		{"an endpoint disabled", health.Inputs{Disabled: 1}, health.Critical, "1 endpoint was disabled in the last 24 hours."},
		{"endpoints disabled", health.Inputs{Disabled: 1200}, health.Critical, "1,200 endpoints were disabled in the last 24 hours."},

		{"90 % of 20 in the last hour", health.Inputs{Hour: attempts(18, 20)}, health.OK, "No problems detected."},
		{"under 90 % of 20", health.Inputs{Hour: attempts(17, 20)}, health.Critical, "85.0% of delivery attempts succeeded in the last hour (17 of 20)."},
		{"nothing of 19 is too few to tell", health.Inputs{Hour: attempts(0, 19)}, health.OK, "No problems detected."},
		{"just 90 %", health.Inputs{Hour: attempts(9000, 10_000)}, health.OK, "No problems detected."},
		{"just under 90 %", health.Inputs{Hour: attempts(8999, 10_000)}, health.Critical, "89.9% of delivery attempts succeeded in the last hour (8,999 of 10,000)."},

		{"due for 15 min", health.Inputs{OldestDue: 15 * time.Minute}, health.OK, "No problems detected."},
		{"due for longer", health.Inputs{OldestDue: 15*time.Minute + 1}, health.Critical, "A delivery has been overdue for 15 minutes."},

		{"99 % in 24 h", health.Inputs{Day: attempts(99, 100)}, health.OK, "No problems detected."},
		{"just under 99 %", health.Inputs{Day: attempts(9899, 10_000)}, health.Warned, "98.9% of delivery attempts succeeded in the last 24 hours (9,899 of 10,000)."},
		{"a single attempt that failed", health.Inputs{Day: attempts(0, 1)}, health.Warned, "0.0% of delivery attempts succeeded in the last 24 hours (0 of 1)."},
		{"a breaker", health.Inputs{BreakersOpen: 1}, health.Warned, "1 endpoint is failing every request. We're sending it one delivery at a time as a probe."},
		{"a warning running", health.Inputs{Warnings: 2}, health.Warned, "2 endpoints are about to be disabled unless a delivery succeeds."},

		{"the worst speaks", health.Inputs{BreakersOpen: 1, Day: attempts(1, 2), OldestDue: time.Hour}, health.Critical, "A delivery has been overdue for 60 minutes."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := health.Summarise(tt.in)
			if s.Severity != tt.want || s.Reason() != tt.reason {
				t.Errorf("got %s: %s\nwant %s: %s", s.Severity, s.Reason(), tt.want, tt.reason)
			}
			if (s.Action != "") != (s.Severity != health.OK) {
				t.Errorf("%s, and the action is %q", s.Severity, s.Action)
			}
		})
	}
}

func TestEverythingThatIsNotWellIsListedTheWorstFirst(t *testing.T) {
	t.Parallel()
	s := health.Summarise(health.Inputs{
		Disabled: 1, Hour: attempts(0, 20), OldestDue: time.Hour, Day: attempts(0, 20), BreakersOpen: 1, Warnings: 1,
	})
	var codes []string
	for i, f := range s.Findings {
		codes = append(codes, f.Code)
		if i > 0 && f.Severity > s.Findings[i-1].Severity {
			t.Errorf("%s comes after what is less bad", f.Code)
		}
	}
	want := "endpoint_disabled success_hour oldest_due success_day breaker_open warning_running"
	if got := strings.Join(codes, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheActionFollowsTheDominantError(t *testing.T) {
	t.Parallel()
	failure := func(f delivery.Failure, n int64) health.ErrorCount { return health.ErrorCount{Failure: f, Count: n} }
	status := func(s int, n int64) health.ErrorCount { return health.ErrorCount{Status: s, Count: n} }
	tests := []struct {
		name   string
		errors []health.ErrorCount
		day    health.Attempts
		want   health.Problem
		n      int64
		says   string
	}{
		{"dns", []health.ErrorCount{failure(delivery.FailDNS, 3)}, health.Attempts{}, health.ProblemDNS, 3, "host name"},
		{"tls", []health.ErrorCount{failure(delivery.FailTLS, 3)}, health.Attempts{}, health.ProblemTLS, 3, "certificate"},
		{"connect", []health.ErrorCount{failure(delivery.FailConnect, 3)}, health.Attempts{}, health.ProblemConnect, 3, "firewall"},
		{"time-out", []health.ErrorCount{failure(delivery.FailTimeout, 3)}, health.Attempts{}, health.ProblemTimeout, 3, "Respond first, process later"},
		{"time-out of the server", []health.ErrorCount{status(408, 3)}, health.Attempts{}, health.ProblemTimeout, 3, "Respond first"},
		{"reset", []health.ErrorCount{failure(delivery.FailReset, 3)}, health.Attempts{}, health.ProblemReset, 3, "load balancer"},
		{"blocked", []health.ErrorCount{failure(delivery.FailBlocked, 3)}, health.Attempts{}, health.ProblemBlocked, 3, "public address"},
		{"protocol", []health.ErrorCount{failure(delivery.FailProtocol, 3)}, health.Attempts{}, health.ProblemProtocol, 3, "aren't valid HTTP"},
		{"a status that is none", []health.ErrorCount{status(999, 3)}, health.Attempts{}, health.ProblemProtocol, 3, "aren't valid HTTP"},
		{"internal", []health.ErrorCount{failure(delivery.FailInternal, 3)}, health.Attempts{}, health.ProblemInternal, 3, "operator"},
		{"401", []health.ErrorCount{status(401, 3)}, health.Attempts{}, health.ProblemAuth, 3, "secret"},
		{"403", []health.ErrorCount{status(403, 3)}, health.Attempts{}, health.ProblemAuth, 3, "secret"},
		{"404", []health.ErrorCount{status(404, 3)}, health.Attempts{}, health.ProblemURL, 3, "URL"},
		{"410", []health.ErrorCount{status(410, 3)}, health.Attempts{}, health.ProblemURL, 3, "URL"},
		{"429", []health.ErrorCount{status(429, 3)}, health.Attempts{}, health.ProblemThrottled, 3, "rate_limit"},
		{"422", []health.ErrorCount{status(422, 3)}, health.Attempts{}, health.ProblemRejected, 3, "4xx"},
		{"500", []health.ErrorCount{status(500, 3)}, health.Attempts{}, health.ProblemServer, 3, "log"},
		{"599", []health.ErrorCount{status(599, 3)}, health.Attempts{}, health.ProblemServer, 3, "log"},
		{"302", []health.ErrorCount{status(302, 3)}, health.Attempts{}, health.ProblemRedirect, 3, "never followed"},

		{
			"the most frequent",
			[]health.ErrorCount{status(500, 3), status(429, 4), status(404, 2)},
			health.Attempts{},
			health.ProblemThrottled, 4, "rate_limit",
		},
		{
			"kinds of one problem add up",
			[]health.ErrorCount{status(500, 2), status(429, 3), status(503, 2)},
			health.Attempts{},
			health.ProblemServer,
			4, "log",
		},
		{
			"of equals what keeps everything out",
			[]health.ErrorCount{status(500, 3), failure(delivery.FailDNS, 3)},
			health.Attempts{},
			health.ProblemDNS, 3,
			"host name",
		},
		{"successes are no problem", []health.ErrorCount{status(204, 100), status(500, 1)}, health.Attempts{}, health.ProblemServer, 1, "log"},
		{
			"what has no result counts by its class",
			[]health.ErrorCount{failure(delivery.FailTLS, 1), status(500, 3)},
			attempts(0, 50), health.ProblemServer, 50,
			"log",
		},

		{"classes: 5xx", nil, attempts(0, 50), health.ProblemServer, 50, "log"},
		{"classes: 3xx", nil, health.Attempts{health.ClassRedirect: 2, health.ClassOK: 900}, health.ProblemRedirect, 2, "never followed"},
		{"classes: 4xx", nil, health.Attempts{health.ClassClient: 2}, health.ProblemRejected, 2, "4xx"},
		{"classes: network", nil, health.Attempts{health.ClassNetwork: 2}, health.ProblemNetwork, 2, "firewall"},
		{"classes: time-out", nil, health.Attempts{health.ClassTimeout: 2}, health.ProblemTimeout, 2, "Respond first"},
		{"classes: blocked", nil, health.Attempts{health.ClassBlocked: 2}, health.ProblemBlocked, 2, "public address"},

		{"no attempt failed", nil, attempts(50, 50), "", 0, "Check the endpoint's last attempts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := health.Summarise(health.Inputs{BreakersOpen: 1, Day: tt.day, Errors: tt.errors})
			if s.Dominant != tt.want || s.DominantCount != tt.n {
				t.Errorf("got %d of %q, want %d of %q", s.DominantCount, s.Dominant, tt.n, tt.want)
			}
			if !strings.Contains(s.Action, tt.says) {
				t.Errorf("%q says nothing of %q", s.Action, tt.says)
			}
		})
	}
}

func TestEveryProblemHasAnActionOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]health.Problem{}
	for _, p := range health.Problems() {
		action := p.Action()
		if other, twice := seen[action]; twice || !strings.HasSuffix(action, ".") {
			t.Errorf("%s: %q (also of %q)", p, action, other)
		}
		seen[action] = p
	}
	if len(seen) != 15 || health.Problem("").Action() != "" || health.Problem("whim").Action() != "" {
		t.Errorf("%d problems, or an action for none", len(seen))
	}
}

func TestRatesReadInPercentAndNeverBetterThanTheyAre(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]health.Attempts{
		"-": {}, "100.0%": attempts(7, 7), "0.0%": attempts(0, 7), "98.9%": attempts(989, 1000), "99.9%": attempts(999_999, 1_000_000),
		"66.6%": {2, 0, 1}, "14.2%": {1, 1, 1, 1, 1, 1, 1}, "50.0%": {1, -5, 0, 1},
	} {
		if got := a.Rate().String(); got != want {
			t.Errorf("%v: got %s, want %s", a, got, want)
		}
	}
	if got := attempts(3, 4).Rate().Share(); got != 0.75 {
		t.Errorf("got %v", got)
	}
	if (health.Attempts{}).Rate().Known() || (health.Rate{}).Share() != 0 {
		t.Error("nothing has a rate")
	}
}

func TestPercentilesAreInterpolatedWithinTheirSlot(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	tests := []struct {
		name     string
		h        health.Histogram
		p50, p95 time.Duration
	}{
		{"nothing", health.Histogram{}, 0, 0},
		{"under a millisecond", health.Histogram{0: 100}, ms / 2, 950 * time.Microsecond},
		{"one attempt", health.Histogram{6: 1}, 75 * ms, 97*ms + 500*time.Microsecond},
		{"even over a slot", health.Histogram{4: 100}, 15 * ms, 19*ms + 500*time.Microsecond},
		{"the rank on the border belongs to the lower slot", health.Histogram{3: 50, 5: 50}, 10 * ms, 20*ms + 27*ms},
		{"two slots", health.Histogram{0: 90, 9: 10}, 555555 * time.Nanosecond, 750 * ms},
		{"slow ones", health.Histogram{14: 4}, 25 * time.Second, 29*time.Second + 500*ms},
		{"without an upper bound", health.Histogram{15: 4}, 30 * time.Second, 30 * time.Second},
		{"mostly without an upper bound", health.Histogram{0: 1, 15: 99}, 30 * time.Second, 30 * time.Second},
		{"wrong counts count as none", health.Histogram{0: -7, 4: 100}, 15 * ms, 19*ms + 500*time.Microsecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := health.Summarise(health.Inputs{Latency: tt.h})
			if s.P50 != tt.p50 || s.P95 != tt.p95 {
				t.Errorf("got %s and %s, want %s and %s", s.P50, s.P95, tt.p50, tt.p95)
			}
		})
	}
	h := health.Histogram{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 0}
	var last time.Duration
	for q := -0.1; q <= 1.1; q += 0.01 {
		d, ok := h.Quantile(q)
		if !ok || d < last || d > 30*time.Second {
			t.Fatalf("at %.2f: %s after %s", q, d, last)
		}
		last = d
	}
	if last != 30*time.Second {
		t.Errorf("all ended within %s, want 30 s", last)
	}
}

func TestLatencyBoundsAreThoseOfTheRollUps(t *testing.T) {
	t.Parallel()
	for i, ms := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000} {
		if health.LatencyBounds[i] != time.Duration(ms)*time.Millisecond {
			t.Errorf("bound %d is %s", i, health.LatencyBounds[i])
		}
	}
}

func TestSeveritiesHaveTheirWords(t *testing.T) {
	t.Parallel()
	for s, want := range map[health.Severity]string{health.OK: "ok", health.Warned: "warning", health.Critical: "critical", 9: "severity_9", -1: "severity_-1"} {
		if s.String() != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}
