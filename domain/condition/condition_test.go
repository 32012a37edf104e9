package condition_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(next time.Duration) health.Breaker {
	return health.Breaker{State: health.Open, OpenedAt: now.Add(-time.Hour), NextProbeAt: now.Add(next)}
}

// asked is a wait of which so much is left, asked for a minute ago.
func asked(left time.Duration) health.Asked {
	return health.AskFor(left+time.Minute, now.Add(-time.Minute))
}

func TestAnEndpointIsInOneCondition(t *testing.T) {
	t.Parallel()
	at, paused := now.Add(-2*time.Hour), now.Add(-time.Minute)
	seen := map[condition.State]bool{}
	for name, c := range map[string]struct {
		facts condition.Facts
		want  condition.Condition
	}{
		"active": {condition.Facts{Status: endpoint.Active, StatusAt: at, Held: 3}, condition.Condition{
			State: condition.Active,
			Since: at,
		}},
		"failing": {
			condition.Facts{
				Status:     endpoint.Active,
				StatusAt:   at,
				Breaker:    open(time.Minute),
				Last:       delivery.Result{Status: 503},
				Held:       3,
				DisableAt:  now.Add(time.Hour),
				DisableFor: health.Failures,
			},
			condition.Condition{
				State:       condition.Failing,
				Since:       now.Add(-time.Hour),
				Cause:       "server_error",
				NextProbeAt: now.Add(time.Minute),
				Held:        3,
				DisableAt:   now.Add(time.Hour),
				DisableFor:  health.Failures,
			},
		},
		"failing, a probe under way": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Breaker: open(-time.Second)},
			condition.Condition{State: condition.Failing, Since: now.Add(-time.Hour)},
		},
		"disabled wins over its breaker and over a pause": {
			condition.Facts{
				Status:      endpoint.Disabled,
				Reason:      "auth",
				StatusAt:    at,
				Breaker:     open(time.Minute),
				Scope:       pause.Host,
				HeldAtLeast: true,
				Held:        9,
			},
			condition.Condition{State: condition.Disabled, Since: at, Cause: "auth", Held: 9, HeldAtLeast: true},
		},
		"paused wins over the operator's pause": {
			condition.Facts{Status: endpoint.Paused, StatusAt: at, Scope: pause.Platform},
			condition.Condition{State: condition.Paused, Since: at},
		},
		"paused until a time": {
			condition.Facts{Status: endpoint.Paused, StatusAt: at, ResumeAt: now.Add(time.Hour)},
			condition.Condition{State: condition.Paused, Since: at, Until: now.Add(time.Hour)},
		},
		"unverified": {
			condition.Facts{Status: endpoint.Unverified, Reason: "url_changed", StatusAt: at},
			condition.Condition{State: condition.Unverified, Since: at, Cause: "url_changed"},
		},
		"paused by the operator wins over the breaker": {
			condition.Facts{
				Status:     endpoint.Active,
				StatusAt:   at,
				Scope:      pause.Tenant,
				ScopeSince: paused,
				Breaker:    open(time.Minute),
			},
			condition.Condition{State: condition.OnHold, Since: paused, Scope: pause.Tenant},
		},
		"asked to wait": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Asked: asked(30 * time.Minute), Held: 3},
			condition.Condition{
				State: condition.AskedToWait,
				Since: paused,
				Until: now.Add(30 * time.Minute),
				Held:  3,
			},
		},
		"asked to wait for long: one delivery looks before": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Asked: asked(5 * time.Hour)},
			condition.Condition{
				State:       condition.AskedToWait,
				Since:       paused,
				Until:       now.Add(5 * time.Hour),
				NextProbeAt: now.Add(59 * time.Minute),
			},
		},
		"no worker": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Unserved: true, Held: 3},
			condition.Condition{State: condition.Unserved, Held: 3},
		},
		"failing, and no worker": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Breaker: open(time.Minute), Unserved: true},
			condition.Condition{State: condition.Failing, Since: now.Add(-time.Hour), NextProbeAt: now.Add(time.Minute)},
		},
		"the wait is over": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Asked: asked(0)},
			condition.Condition{State: condition.Active, Since: at},
		},
		"failing wins over the wait, and its probe waits too": {
			condition.Facts{
				Status:   endpoint.Active,
				StatusAt: at,
				Breaker:  open(-time.Second),
				Asked:    asked(30 * time.Minute),
			},
			condition.Condition{
				State:       condition.Failing,
				Since:       now.Add(-time.Hour),
				NextProbeAt: now.Add(30 * time.Minute),
			},
		},
		"paused wins over the wait": {
			condition.Facts{Status: endpoint.Paused, StatusAt: at, Asked: asked(time.Hour)},
			condition.Condition{State: condition.Paused, Since: at},
		},
		"a listener whose program is away": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Listens: true, HeardAt: paused, Held: 3},
			condition.Condition{State: condition.Disconnected, Since: paused, Held: 3},
		},
		"a listener that gets nothing new, since its program is away": {
			condition.Facts{Status: endpoint.Paused, StatusAt: at, Listens: true, Drops: true},
			condition.Condition{State: condition.Disconnected, Drops: true},
		},
		"a listener whose program is there": {
			condition.Facts{Status: endpoint.Active, StatusAt: at, Listens: true, HeardAt: now.Add(-50 * time.Second)},
			condition.Condition{State: condition.Active, Since: at},
		},
		"suspended wins over all": {
			condition.Facts{Status: endpoint.Disabled, StatusAt: at, Scope: pause.Suspended, ScopeSince: paused},
			condition.Condition{State: condition.Suspended, Since: paused},
		},
	} {
		got := condition.Of(c.facts, now)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got.Sends() != (got.State == condition.Active) {
			t.Errorf("%s: sends %t", name, got.Sends())
		}
		seen[got.State] = true
	}
	for _, s := range condition.States() {
		if !seen[s] {
			t.Errorf("no case for %s", s)
		}
		c := condition.Condition{State: s, Scope: pause.Host}
		if c.Detail() == "" || s.Word() == "" || c.Title() == "" || s != condition.Active && c.Title() == "Active" {
			t.Errorf("%s has no words: %q, %q", s, c.Title(), c.Detail())
		}
	}
}

// An active endpoint that fails too often is called degraded, with its numbers. Every other state says more.
func TestAnActiveEndpointThatFailsTooOftenIsDegraded(t *testing.T) {
	t.Parallel()
	failing := health.Record{Day: health.Rate{Succeeded: 1, Total: 25}, Failed: now.Add(-time.Minute)}
	over := failing
	over.Since = now
	for _, c := range []struct {
		name  string
		facts condition.Facts
		want  condition.State
	}{
		{"fails", condition.Facts{Status: endpoint.Active, Record: failing}, condition.Degraded},
		{"is well again", condition.Facts{Status: endpoint.Active, Record: over}, condition.Active},
		{"had no attempts", condition.Facts{Status: endpoint.Active}, condition.Active},
		{"fails, and is paused", condition.Facts{Status: endpoint.Paused, Record: failing}, condition.Paused},
		{"fails, and no worker is there", condition.Facts{Status: endpoint.Active, Unserved: true, Record: failing}, condition.Unserved},
	} {
		got := condition.Of(c.facts, now)
		if got.Shown() != c.want || got.Degraded != (c.want == condition.Degraded) {
			t.Errorf("%s: %s", c.name, got.Shown())
		}
		if !got.Is(got.State) || !got.Is(got.Shown()) || got.Is(condition.Degraded) != got.Degraded {
			t.Errorf("%s: the filters do not find it", c.name)
		}
		if !got.Degraded {
			continue
		}
		if !got.Sends() || got.Title() != "Endpoint degraded" || got.Detail() != "Deliveries are sent, but 24 of 25 attempts failed in the last 24 hours." {
			t.Errorf("%q: %q", got.Title(), got.Detail())
		}
		if !slices.Equal(got.Actions(), []condition.Action{condition.Replay, condition.Recover}) {
			t.Errorf("it offers %v", got.Actions())
		}
	}
	for i, s := range condition.Shown() {
		if s.Word() == "" || s.Rank() != i {
			t.Errorf("%s has the word %q and rank %d", s, s.Word(), s.Rank())
		}
	}
}

// An endpoint that was resumed is verified first: until that ends, nobody is told to resume it once more.
func TestNobodyIsToldToResumeWhatIsBeingVerified(t *testing.T) {
	t.Parallel()
	for _, status := range endpoint.Statuses() {
		waits := condition.Of(condition.Facts{Status: status, Reason: "gone"}, now)
		verifies := condition.Of(condition.Facts{Status: status, Reason: "gone", Verifying: true}, now)
		if status == endpoint.Paused {
			continue // it needs no verification
		}
		if verifies.Can(condition.Resume) || waits.Can(condition.Resume) != (status == endpoint.Disabled) {
			t.Errorf("%s offers %v, and while it is verified %v", status, waits.Actions(), verifies.Actions())
		}
		if status == endpoint.Disabled && !strings.Contains(verifies.Detail(), "A verification is under way.") {
			t.Errorf("%s: %s", status, verifies.Detail())
		}
		if strings.Contains(verifies.Detail(), "resumed") || strings.Contains(waits.Detail(), "under way") {
			t.Errorf("%s: %s; waiting: %s", status, verifies.Detail(), waits.Detail())
		}
	}
}

func TestEveryCauseHasWords(t *testing.T) {
	t.Parallel()
	for _, p := range health.Problems() {
		if c := (condition.Condition{State: condition.Failing, Cause: string(p)}); c.CauseText() == "" {
			t.Errorf("problem %s has no words", p)
		}
	}
	for _, r := range health.Reasons() {
		if c := (condition.Condition{State: condition.Disabled, Cause: string(r)}); c.CauseText() == "" {
			t.Errorf("reason %s has no words", r)
		}
	}
}

var actions = []condition.Action{
	condition.Resume, condition.Verify, condition.ProbeNow, condition.SendNow, condition.Replay, condition.Recover,
}

func TestEveryActionIsOffered(t *testing.T) {
	t.Parallel()
	offered := map[condition.Action]bool{}
	for _, s := range condition.States() {
		for _, a := range (condition.Condition{State: s}).Actions() {
			offered[a] = true
		}
	}
	for _, a := range actions {
		if !offered[a] {
			t.Errorf("%s is offered nowhere", a)
		}
		if a.Label() == "" || a.Command("ep_x") == "" || a.Permission() == "" {
			t.Errorf("%s lacks a label, a command, or a permission", a)
		}
	}
	if len(offered) != len(actions) {
		t.Errorf("offered %v, known %v", offered, actions)
	}
}

// lane is one that sends; change makes it wait.
func lane(change func(*condition.Lane)) condition.Lane {
	l := condition.Lane{Condition: condition.Condition{State: condition.Active}, Served: true}
	if change != nil {
		change(&l)
	}
	return l
}

func is(s condition.State) func(*condition.Lane) {
	return func(l *condition.Lane) { l.Condition.State, l.Condition.Scope = s, pause.Host }
}

func TestWhyADeliveryWaits(t *testing.T) {
	t.Parallel()
	soon, later := now.Add(time.Minute), now.Add(time.Hour)
	head := id.UUID{1}
	failing := lane(func(l *condition.Lane) {
		l.Condition = condition.Condition{State: condition.Failing, NextProbeAt: soon}
	})
	seen := map[condition.Reason]bool{}
	for name, c := range map[string]struct {
		row  condition.Row
		lane condition.Lane
		want condition.Wait
		next time.Time
	}{
		"nothing keeps it": {condition.Row{}, lane(nil), condition.Wait{Reason: condition.Next}, time.Time{}},
		"retry": {
			condition.Row{State: condition.RowRetry, Due: later},
			lane(nil),
			condition.Wait{Reason: condition.Retry, Until: later},
			later,
		},
		"a test during a wait": {
			condition.Row{Asked: true},
			lane(func(l *condition.Lane) { l.Condition.State, l.NotBefore = condition.AskedToWait, later }),
			condition.Wait{Reason: condition.Next},
			time.Time{},
		},
		"refused, and due when the wait ends": {
			condition.Row{State: condition.RowRetry, Due: later},
			lane(func(l *condition.Lane) { l.Condition.State, l.NotBefore = condition.AskedToWait, later }),
			condition.Wait{Reason: condition.RetryAfter, Until: later},
			later,
		},
		"retry that is due": {
			condition.Row{State: condition.RowRetry, Due: now},
			lane(nil),
			condition.Wait{Reason: condition.Next},
			time.Time{},
		},
		"deferred": {
			condition.Row{State: condition.RowDeferred, Due: later},
			failing,
			condition.Wait{Reason: condition.Deferred, Until: later},
			later,
		},
		"retry behind an open breaker": {
			condition.Row{State: condition.RowRetry, Due: now.Add(-time.Hour)},
			failing,
			condition.Wait{Reason: condition.Breaker, Until: soon},
			time.Time{},
		},
		"first attempt behind a breaker": {condition.Row{}, failing, condition.Wait{Reason: condition.Breaker, Until: soon}, time.Time{}},
		"asked to be the next probe":     {condition.Row{Asked: true}, failing, condition.Wait{Reason: condition.Next}, time.Time{}},
		"order": {
			condition.Row{State: condition.RowBlocked, Behind: head},
			lane(nil),
			condition.Wait{Reason: condition.Order, Behind: head},
			time.Time{},
		},
		"order, behind a breaker": {
			condition.Row{State: condition.RowBlocked, Behind: head},
			failing,
			condition.Wait{Reason: condition.Breaker, Until: soon},
			time.Time{},
		},
		"the endpoint asked for a pause": {
			condition.Row{},
			lane(func(l *condition.Lane) { l.NotBefore = later }),
			condition.Wait{Reason: condition.RetryAfter, Until: later},
			later,
		},
		"a retry before the pause ends": {
			condition.Row{State: condition.RowRetry, Due: soon},
			lane(func(l *condition.Lane) { l.NotBefore = later }),
			condition.Wait{Reason: condition.RetryAfter, Until: later},
			later,
		},
		"a retry after the pause": {
			condition.Row{State: condition.RowRetry, Due: later},
			lane(func(l *condition.Lane) { l.NotBefore = soon }),
			condition.Wait{Reason: condition.Retry, Until: later},
			later,
		},
		"rate limit": {
			condition.Row{Ahead: 120},
			lane(func(l *condition.Lane) { l.LimitedBy, l.RateLimit = condition.ByRate, 2 }),
			condition.Wait{Reason: condition.RateLimit, Until: soon, About: true},
			time.Time{},
		},
		"a rate limit keeps no retry": {
			condition.Row{State: condition.RowRetry, Due: later},
			lane(func(l *condition.Lane) { l.LimitedBy, l.RateLimit = condition.ByRate, 2 }),
			condition.Wait{Reason: condition.Retry, Until: later},
			later,
		},
		"concurrency": {
			condition.Row{},
			lane(func(l *condition.Lane) { l.LimitedBy = condition.ByInFlight }),
			condition.Wait{Reason: condition.Concurrency},
			time.Time{},
		},
		"no worker": {
			condition.Row{State: condition.RowRetry, Due: later},
			lane(func(l *condition.Lane) { l.Served, l.Condition.State = false, condition.Unserved }),
			condition.Wait{Reason: condition.NoWorker},
			time.Time{},
		},
		"in flight, whatever holds its lane since": {
			condition.Row{State: condition.RowRetry, Due: now, Sent: now.Add(-time.Minute)},
			lane(is(condition.Paused)),
			condition.Wait{Reason: condition.InFlight, Since: now.Add(-time.Minute)},
			time.Time{},
		},
		"its request has ended, and the next is due later": {
			condition.Row{State: condition.RowRetry, Due: later, Sent: now.Add(-time.Minute)},
			lane(nil),
			condition.Wait{Reason: condition.Retry, Until: later},
			later,
		},
		"many ahead of it, and the limit is not noted yet": {
			condition.Row{Ahead: 120},
			lane(func(l *condition.Lane) { l.RateLimit = 2 }),
			condition.Wait{Reason: condition.RateLimit, Until: soon, About: true},
			time.Time{},
		},
		"more ahead of it than are counted": {
			condition.Row{Ahead: condition.AheadCounted},
			lane(func(l *condition.Lane) { l.LimitedBy, l.RateLimit = condition.ByRate, 2 }),
			condition.Wait{Reason: condition.RateLimit},
			time.Time{},
		},
		"a listener's": {condition.Row{}, condition.Lane{
			Condition: condition.Condition{State: condition.Active},
			Listens:   true,
		}, condition.Wait{Reason: condition.Listener}, time.Time{}},
		"the operator's pause": {
			condition.Row{State: condition.RowDeferred, Due: later},
			lane(is(condition.OnHold)),
			condition.Wait{Reason: condition.OperatorPause, Scope: pause.Host},
			time.Time{},
		},
		"suspended": {
			condition.Row{},
			lane(is(condition.Suspended)),
			condition.Wait{Reason: condition.TenantSuspended, Scope: pause.Suspended},
			time.Time{},
		},
		"paused": {
			condition.Row{State: condition.RowRetry, Due: later},
			lane(is(condition.Paused)),
			condition.Wait{Reason: condition.EndpointPaused},
			time.Time{},
		},
		"paused until a time": {
			condition.Row{},
			lane(func(l *condition.Lane) {
				l.Condition = condition.Condition{State: condition.Paused, Until: later}
			}),
			condition.Wait{Reason: condition.EndpointPaused, Until: later},
			time.Time{},
		},
		"unverified": {
			condition.Row{},
			lane(is(condition.Unverified)),
			condition.Wait{Reason: condition.EndpointUnverified},
			time.Time{},
		},
		"the transformation fails": {
			condition.Row{State: condition.RowRetry, Due: now.Add(delivery.UntilEdit)},
			lane(nil),
			condition.Wait{Reason: condition.Transformation},
			time.Time{},
		},
		"disabled, whether served or not": {
			condition.Row{},
			condition.Lane{Condition: condition.Condition{State: condition.Disabled}},
			condition.Wait{Reason: condition.EndpointDisabled},
			time.Time{},
		},
	} {
		got := condition.WaitOf(c.row, c.lane, now)
		if got != c.want || !got.NextAttempt().Equal(c.next) {
			t.Errorf("%s: %+v, next %s; want %+v, next %s", name, got, got.NextAttempt(), c.want, c.next)
		}
		seen[got.Reason] = true
	}
	for name, c := range map[string]struct {
		lane       condition.Lane
		ready, due bool
	}{
		"it sends":  {lane(nil), true, true},
		"no worker": {lane(func(l *condition.Lane) { l.Served, l.Condition.State = false, condition.Unserved }), true, true},
		"rate limit": {
			lane(func(l *condition.Lane) { l.LimitedBy, l.RateLimit = condition.ByRate, 2 }), true,
			false,
		},
		"concurrency":                    {lane(func(l *condition.Lane) { l.LimitedBy = condition.ByInFlight }), true, false},
		"the endpoint asked for a pause": {lane(func(l *condition.Lane) { l.NotBefore = later }), false, false},
		"failing":                        {failing, false, false},
		"failing, no worker": {
			lane(func(l *condition.Lane) { l.Condition.State, l.Served = condition.Failing, false }), false,
			false,
		},
		"paused": {lane(is(condition.Paused)), false, false},
	} {
		if got := c.lane.Ready(now); got != c.ready {
			t.Errorf("%s: ready %t", name, got)
		}
		if got := due(c.lane, now); got != c.due {
			t.Errorf("%s: due %t", name, got)
		}
	}
	for _, r := range condition.Reasons() {
		if !seen[r] {
			t.Errorf("no case for %s", r)
		}
		if w := (condition.Wait{Reason: r, Scope: pause.Host}); w.Detail() == "" || w.Title() == "" || r.Word() == "" {
			t.Errorf("%s has no words", r)
		}
	}
}

// due reports whether nothing but the platform keeps a lane's ready deliveries.
func due(l condition.Lane, now time.Time) bool {
	r := condition.WaitOf(condition.Row{}, l, now).Reason
	return l.Ready(now) && (r == condition.Next || r == condition.NoWorker)
}
