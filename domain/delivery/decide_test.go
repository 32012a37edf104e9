package delivery_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/domain/delivery"
	"posthorn/domain/retry"
)

// expectation is the design's table written a second time, by status and in its own words, so that the exhaustive test
// does not compare the code with itself.
type expectation struct {
	want  string // delivered, retry, rejected, gone
	class delivery.Class
}

func expected(status int, acceptConflict, retryClientErrors bool) expectation {
	clientError := func(class delivery.Class) expectation {
		if retryClientErrors {
			return expectation{"retry", class}
		}
		return expectation{"rejected", class}
	}
	named := map[int]expectation{
		408: {"retry", delivery.Unhealthy},
		410: {"gone", delivery.Neutral},
		425: {"retry", delivery.Neutral},
		429: {"retry", delivery.Throttled},
		401: clientError(delivery.Auth),
		403: clientError(delivery.Auth),
		404: clientError(delivery.Auth),
	}
	if acceptConflict {
		named[409] = expectation{"delivered", delivery.Success}
	}
	if e, ok := named[status]; ok {
		return e
	}
	switch status / 100 {
	case 2:
		return expectation{"delivered", delivery.Success}
	case 4:
		return clientError(delivery.Neutral)
	}
	return expectation{"retry", delivery.Unhealthy}
}

func TestEveryStatusGetsTheDecisionOfTheTable(t *testing.T) {
	t.Parallel()
	schedule, _ := retry.Named("short")
	statuses := []int{-1, 0, 1, 99, 600, 601, 999, 65536}
	for status := 100; status < 600; status++ {
		statuses = append(statuses, status)
	}
	for _, acceptConflict := range []bool{false, true} {
		for _, retryClientErrors := range []bool{false, true} {
			p := delivery.Policy{
				Schedule:          schedule,
				AcceptConflict:    acceptConflict,
				RetryClientErrors: retryClientErrors,
			}
			for _, status := range statuses {
				want := expected(status, acceptConflict, retryClientErrors)
				for attempt := 1; attempt <= 5; attempt++ {
					got := delivery.Decide(p, attempt, delivery.Result{Status: status}, 0.5)
					if problem := differs(got, want, schedule, attempt); problem != "" {
						t.Errorf("%d at attempt %d with %+v: %s", status, attempt, p, problem)
					}
				}
			}
		}
	}
}

// A gateway responds with 404 while it has no backend: a delivery that meets that moment comes again.
func TestTheFirstRefusalOfADeliveryIsRetriedWhereRefusalsMustLast(t *testing.T) {
	t.Parallel()
	schedule, _ := retry.Named("short")
	p := delivery.Policy{Schedule: schedule, RetryRefusal: true}
	for status, class := range map[int]delivery.Class{
		401: delivery.Auth,
		403: delivery.Auth,
		404: delivery.Auth,
		400: delivery.Neutral,
		422: delivery.Neutral,
	} {
		for attempt := 1; attempt <= 4; attempt++ {
			want := delivery.Decision{Status: delivery.Failed, Reason: delivery.Rejected, Class: class}
			if class == delivery.Auth && attempt == 1 {
				want = delivery.Decision{Status: delivery.Retrying, RetryIn: schedule.Delays[0], Class: class}
			}
			if got := delivery.Decide(p, attempt, delivery.Result{Status: status}, 0.5); got != want {
				t.Errorf("%d at attempt %d: %+v, want %+v", status, attempt, got, want)
			}
		}
		got := delivery.Decide(delivery.Policy{RetryRefusal: true}, 1, delivery.Result{Status: status}, 0.5)
		if got.Status != delivery.Failed || got.Reason != delivery.Rejected {
			t.Errorf("%d without a schedule: %+v", status, got)
		}
	}
}

func differs(got delivery.Decision, want expectation, s retry.Schedule, attempt int) string {
	full := delivery.Decision{Class: want.class}
	switch want.want {
	case "delivered":
		full.Status = delivery.Delivered
	case "rejected":
		full.Status, full.Reason = delivery.Failed, delivery.Rejected
	case "gone":
		full.Status, full.Reason, full.Disable = delivery.Failed, delivery.Gone, "gone"
	case "retry":
		if attempt < s.Attempts() {
			full.Status, full.RetryIn = delivery.Retrying, s.Delays[attempt-1]
		} else {
			full.Status, full.Reason = delivery.Failed, delivery.Exhausted
		}
	}
	if got != full {
		return fmt.Sprintf("got %+v, want %+v", got, full)
	}
	return ""
}

func TestEveryFailureIsRetriedAndUnhealthyExceptOurOwn(t *testing.T) {
	t.Parallel()
	schedule, _ := retry.Named("quick")
	for _, accept := range []bool{false, true} {
		p := delivery.Policy{Schedule: schedule, AcceptConflict: accept}
		for f := delivery.FailDNS; f <= delivery.FailProtocol; f++ {
			// A status beside a failure is what was read before the failure: the answer was never whole.
			for _, status := range []int{0, 200, 409, 410, 400, 429} {
				r := delivery.Result{Failure: f, Status: status, RetryAfter: time.Hour}
				got := delivery.Decide(p, 1, r, 0.5)
				want := delivery.Decision{Status: delivery.Retrying, RetryIn: time.Second, Class: delivery.Unhealthy}
				if got != want {
					t.Errorf("%s with status %d: got %+v, want %+v", f, status, got, want)
				}
				got = delivery.Decide(p, 3, r, 0.5)
				want = delivery.Decision{Status: delivery.Failed, Reason: delivery.Exhausted, Class: delivery.Unhealthy}
				if got != want {
					t.Errorf("%s at the last attempt: got %+v, want %+v", f, got, want)
				}
			}
		}
		got := delivery.Decide(p, 1, delivery.Result{Failure: delivery.FailInternal, Status: 200}, 0.5)
		want := delivery.Decision{Status: delivery.Failed, Reason: delivery.Internal, Class: delivery.Neutral}
		if got != want {
			t.Errorf("internal: got %+v, want %+v", got, want)
		}
		if got := delivery.Decide(p, 1, delivery.Result{Failure: delivery.FailToken}, 0.5); got.Status != delivery.Retrying || got.Class != delivery.Neutral {
			t.Errorf("without a token: got %+v", got)
		}
	}
}

func TestRetryAfterHoldsTheWholeLaneOn429And503Alone(t *testing.T) {
	t.Parallel()
	schedule, _ := retry.Named("short") // 5 s, 30 s, 5 min
	tests := []struct {
		name     string
		status   int
		after    time.Duration
		attempt  int
		retryIn  time.Duration
		laneWait time.Duration
	}{
		{"longer than the schedule", 429, time.Minute, 1, 5 * time.Second, time.Minute},
		{"shorter than the schedule", 429, time.Minute, 3, 5 * time.Minute, time.Minute},
		{"unavailable", 503, time.Minute, 1, 5 * time.Second, time.Minute},
		{"none given", 503, 0, 1, 5 * time.Second, 0},
		{"capped", 429, 100 * time.Hour, 1, 5 * time.Second, 24 * time.Hour},
		{"negative", 429, -time.Hour, 1, 5 * time.Second, 0},
		{"last attempt", 429, time.Minute, 4, 0, time.Minute},
		{"another status", 500, time.Minute, 1, 5 * time.Second, 0},
		{"a redirect", 301, time.Minute, 1, 5 * time.Second, 0},
		{"a success", 200, time.Minute, 1, 0, 0},
		{"a rejection", 400, time.Minute, 1, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := delivery.Result{Status: tt.status, RetryAfter: tt.after}
			got := delivery.Decide(delivery.Policy{Schedule: schedule}, tt.attempt, r, 0.5)
			if got.RetryIn != tt.retryIn || got.LaneWait != tt.laneWait {
				t.Errorf("retry in %s and lane waits %s, want %s and %s", got.RetryIn, got.LaneWait, tt.retryIn, tt.laneWait)
			}
		})
	}
}

func TestADecisionIsAlwaysWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _ := retry.Named(rapid.SampledFrom(retry.Names()).Draw(t, "schedule"))
		p := delivery.Policy{
			Schedule:          s,
			AcceptConflict:    rapid.Bool().Draw(t, "accept"),
			RetryClientErrors: rapid.Bool().Draw(t, "retry"),
		}
		r := delivery.Result{
			Failure:    delivery.Failure(rapid.Int16Range(0, 10).Draw(t, "failure")),
			Status:     rapid.IntRange(-10, 1200).Draw(t, "status"),
			RetryAfter: time.Duration(rapid.Int64().Draw(t, "after")),
		}
		attempt := rapid.IntRange(1, 20).Draw(t, "attempt")
		d := delivery.Decide(p, attempt, r, rapid.Float64Range(0, 1).Draw(t, "random"))
		switch d.Status {
		case delivery.Delivered:
			if d.Reason != delivery.None || d.RetryIn != 0 || d.LaneWait != 0 || d.Class != delivery.Success {
				t.Fatalf("delivered: %+v", d)
			}
		case delivery.Retrying:
			if d.Reason != delivery.None || d.RetryIn < time.Second || (d.Hold > 0) != r.Failure.OfPlatform() || attempt >= s.Attempts() && !r.Failure.OfPlatform() {
				t.Fatalf("retrying: %+v", d)
			}
		case delivery.Failed:
			if d.Reason == delivery.None || d.RetryIn != 0 {
				t.Fatalf("failed: %+v", d)
			}
		default:
			t.Fatalf("an attempt can't end as %s", d.Status)
		}
		if d.LaneWait < 0 || d.LaneWait > delivery.MaxRetryAfter {
			t.Fatalf("lane waits %s", d.LaneWait)
		}
		if d.Class != delivery.Classify(r, p.AcceptConflict) {
			t.Fatal("the decision and the class disagree")
		}
	})
}

func TestEachStateAllowsItsActionsAndNoOther(t *testing.T) {
	t.Parallel()
	actions := map[string]func(delivery.Status) bool{
		"retry now": delivery.CanRetryNow,
		"cancel":    delivery.CanCancel,
		"replay":    delivery.CanReplay,
		"archive":   delivery.CanArchive,
	}
	allowed := map[delivery.Status][]string{
		delivery.Pending:     {"retry now", "cancel"},
		delivery.Retrying:    {"retry now", "cancel"},
		delivery.Held:        {"cancel"},
		delivery.Delivered:   {"replay", "archive"},
		delivery.Failed:      {"replay", "archive"},
		delivery.Canceled:    {"replay", "archive"},
		delivery.Expired:     {"replay", "archive"},
		delivery.Status(7):   nil,
		delivery.Status(-1):  nil,
		delivery.Status(999): nil,
	}
	for status, names := range allowed {
		for name, can := range actions {
			if want := slices.Contains(names, name); can(status) != want {
				t.Errorf("%s: %s = %v, want %v", status, name, !want, want)
			}
		}
	}
}

// Where a 410 disables nothing, it is retried as other 4xx are.
func TestAGoneIsRetriedWhereItIsAnOrdinaryClientError(t *testing.T) {
	t.Parallel()
	schedule, _ := retry.Named("short")
	d := delivery.Decide(delivery.Policy{Schedule: schedule, RetryClientErrors: true, RetryGone: true}, 1,
		delivery.Result{Status: 410}, 0.5)
	if d.Status != delivery.Retrying || d.RetryIn == 0 || d.Disable != "" {
		t.Errorf("got %+v", d)
	}
	for _, p := range []delivery.Policy{{Schedule: schedule}, {Schedule: schedule, RetryClientErrors: true}} {
		if d := delivery.Decide(p, 1, delivery.Result{Status: 410}, 0.5); d.Status != delivery.Failed ||
			d.Reason != delivery.Gone {
			t.Errorf("with %+v: %+v", p, d)
		}
	}
}

func TestAProbeUsesUpNoSchedule(t *testing.T) {
	t.Parallel()
	standard, _ := retry.Named(retry.Default)
	p := delivery.Policy{Schedule: standard}
	wait := 2 * time.Minute
	tests := []struct {
		name    string
		attempt int
		r       delivery.Result
		after   bool
		in      time.Duration
	}{
		{"a failure goes back until the next probe", 1, delivery.Result{Status: 500}, true, wait},
		{"the last attempt of the schedule too", 10, delivery.Result{Failure: delivery.FailConnect}, true, wait},
		{"what asks for a longer wait", 3, delivery.Result{Status: 503, RetryAfter: time.Hour}, true, wait},
		{"throttled", 3, delivery.Result{Status: 429}, true, wait},
		{"delivered", 3, delivery.Result{Status: 200}, false, 0},
		{"rejected", 3, delivery.Result{Status: 422}, false, 0},
		{"refused", 3, delivery.Result{Status: 404}, false, 0},
		{"refused, and held back", 3, delivery.Result{Status: 404}, true, wait},
		{"gone", 3, delivery.Result{Status: 410}, false, 0},
		{"never sent", 3, delivery.Result{Failure: delivery.FailInternal}, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := delivery.Decide(p, tt.attempt, tt.r, 0.5)
			got, after := d.AfterProbe(wait, tt.name == "refused, and held back")
			if after != tt.after || !after && got != d {
				t.Fatalf("got %+v, %v", got, after)
			}
			if after && (got.Status != delivery.Retrying || got.Reason != delivery.None || got.RetryIn != tt.in ||
				got.Class != d.Class || got.LaneWait != d.LaneWait) {
				t.Errorf("got %+v of %+v", got, d)
			}
		})
	}
}

// What the platform's own proxy keeps from an endpoint counts against nothing, uses up no schedule, and is tried again
// soon.
func TestAFailedProxyHoldsTheLaneAndCountsAgainstNothing(t *testing.T) {
	t.Parallel()
	last := retry.Schedule{}
	for _, random := range []float64{0, 0.5, 1} {
		d := delivery.Decide(delivery.Policy{Schedule: last}, 30, delivery.Result{Failure: delivery.FailProxy}, random)
		if d.Status != delivery.Retrying || d.Class != delivery.Neutral || d.Hold < 10*time.Second || d.Hold > 20*time.Second || d.RetryIn != d.Hold {
			t.Errorf("%+v", d)
		}
	}
}
