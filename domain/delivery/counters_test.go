package delivery_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/domain/delivery"
)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func TestCountersFollowTheClassesOfTheTable(t *testing.T) {
	t.Parallel()
	type step struct {
		minute int
		r      delivery.Result
	}
	status := func(minute, s int) step { return step{minute, delivery.Result{Status: s}} }
	fail := func(minute int, f delivery.Failure) step { return step{minute, delivery.Result{Failure: f}} }
	tests := []struct {
		name  string
		steps []step
		want  delivery.Counters
	}{
		{"nothing yet", nil, delivery.Counters{}},
		{
			"unhealthy outcomes add up from the first to the last",
			[]step{status(1, 500), fail(2, delivery.FailTimeout), status(3, 302), status(4, 408)},
			delivery.Counters{
				ConsecutiveFailures: 4,
				UnhealthySince:      at(1),
				FirstFailureAt:      at(1),
				LastFailureAt:       at(4),
			},
		},
		{
			"a success clears everything and is remembered",
			[]step{status(1, 500), status(2, 401), fail(3, delivery.FailTLS), status(4, 204)},
			delivery.Counters{LastSuccessAt: at(4)},
		},
		{
			"refusals count in their own streak",
			[]step{status(1, 401), status(2, 500), status(3, 403), status(4, 404)},
			delivery.Counters{
				AuthStreak:          3,
				AuthSince:           at(1),
				ConsecutiveFailures: 1,
				UnhealthySince:      at(2),
				FirstFailureAt:      at(1),
				LastFailureAt:       at(4),
			},
		},
		{
			"throttling and complaints about one delivery count nowhere and break nothing",
			[]step{
				status(1, 500), status(2, 429), status(3, 400), status(4, 409), status(5, 413), status(6, 422),
				status(7, 410), status(8, 500),
			},
			delivery.Counters{
				ConsecutiveFailures: 2,
				UnhealthySince:      at(1),
				FirstFailureAt:      at(1),
				LastFailureAt:       at(8),
			},
		},
		{
			"only TLS errors",
			[]step{fail(1, delivery.FailTLS), fail(2, delivery.FailTLS)},
			delivery.Counters{
				ConsecutiveFailures: 2,
				UnhealthySince:      at(1),
				TLSFailures:         2,
				TLSOnlySince:        at(1),
				FirstFailureAt:      at(1),
				LastFailureAt:       at(2),
			},
		},
		{
			"a TLS session that comes about ends the TLS streak, whatever the answer",
			[]step{fail(1, delivery.FailTLS), status(2, 429), fail(3, delivery.FailTLS)},
			delivery.Counters{
				ConsecutiveFailures: 2,
				UnhealthySince:      at(1),
				TLSFailures:         1,
				TLSOnlySince:        at(3),
				FirstFailureAt:      at(1),
				LastFailureAt:       at(3),
			},
		},
		{
			"our own failure is not the endpoint's",
			[]step{fail(1, delivery.FailTLS), fail(2, delivery.FailInternal), fail(3, delivery.FailToken), fail(4, delivery.FailProxy)},
			delivery.Counters{
				ConsecutiveFailures: 1,
				UnhealthySince:      at(1),
				TLSFailures:         1,
				TLSOnlySince:        at(1),
				FirstFailureAt:      at(1),
				LastFailureAt:       at(1),
			},
		},
		{
			"late results do not move times back or forward wrongly",
			[]step{status(5, 500), status(2, 500), status(4, 500)},
			delivery.Counters{
				ConsecutiveFailures: 3,
				UnhealthySince:      at(2),
				FirstFailureAt:      at(2),
				LastFailureAt:       at(5),
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c delivery.Counters
			for _, s := range tt.steps {
				c = c.After(delivery.Classify(s.r, false), s.r, at(s.minute))
			}
			if c != tt.want {
				t.Errorf("got  %+v\nwant %+v", c, tt.want)
			}
		})
	}
}

func TestASuccessClearsEveryCounterWhateverCameBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c delivery.Counters
		for i := range rapid.IntRange(0, 50).Draw(t, "outcomes") {
			r := delivery.Result{
				Failure: delivery.Failure(rapid.Int16Range(0, 8).Draw(t, "failure")),
				Status:  rapid.IntRange(100, 599).Draw(t, "status"),
			}
			c = c.After(delivery.Classify(r, false), r, at(i))
			if c.ConsecutiveFailures < c.TLSFailures || (c.ConsecutiveFailures == 0) != c.UnhealthySince.IsZero() ||
				(c.AuthStreak == 0) != c.AuthSince.IsZero() || (c.TLSFailures == 0) != c.TLSOnlySince.IsZero() ||
				c.LastFailureAt.Before(c.FirstFailureAt) {
				t.Fatalf("counters contradict each other: %+v", c)
			}
		}
		c = c.AfterExhausted().After(delivery.Success, delivery.Result{Status: 200}, at(100))
		if want := (delivery.Counters{LastSuccessAt: at(100)}); c != want {
			t.Fatalf("left after a success: %+v", c)
		}
	})
}
