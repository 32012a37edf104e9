package summary_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/domain/summary"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// attempts of which so many succeeded, the others answered 5xx.
func attempts(ok, total int64) health.Attempts {
	return health.Attempts{health.ClassOK: ok, health.ClassServer: total - ok}
}

// in is an endpoint in a condition, with attempts that failed a minute ago, if any did.
func in(name string, state condition.State, day health.Attempts) summary.Endpoint {
	e := summary.Endpoint{
		ID:        id.UUID([]byte((name + "................")[:16])),
		Name:      name,
		Condition: condition.Condition{State: state},
		Day:       day,
		Hour:      day,
		Record:    health.Record{Day: day.Rate()},
	}
	if r := day.Rate(); r.Succeeded < r.Total {
		e.Record.Failed = noon.Add(-time.Minute)
	}
	return e
}

func failing(name string, day health.Attempts) summary.Endpoint {
	return in(name, condition.Failing, day)
}

// of are the facts of a tenant with these endpoints, and no other attempts than theirs.
func of(endpoints ...summary.Endpoint) summary.Facts {
	f := summary.Facts{Now: noon, Endpoints: endpoints}
	for _, e := range endpoints {
		f.Day.Add(e.Day)
		f.Hour.Add(e.Hour)
	}
	return f
}

func with(f summary.Facts, change func(*summary.Facts)) summary.Facts {
	change(&f)
	return f
}

func TestSeverityChangesBeyondTheThresholdsOfTheDesign(t *testing.T) {
	t.Parallel()
	active := func(day health.Attempts) summary.Endpoint { return in("ep", condition.Active, day) }
	lastHour := func(hour health.Attempts) summary.Facts {
		e := active(health.Attempts{})
		e.Hour = hour
		return with(of(e), func(f *summary.Facts) { f.Hour = hour })
	}
	disabled := in("ep", condition.Disabled, health.Attempts{})
	long := disabled
	disabled.Disabled = health.Gone
	warned := active(health.Attempts{})
	warned.Warned = true
	due := func(d time.Duration) summary.Facts { return summary.Facts{Now: noon, OldestDue: d} }
	tests := []struct {
		name   string
		in     summary.Facts
		want   health.Severity
		reason string
	}{
		{"a tenant that has nothing", of(), health.OK, "No problems detected."},
		{"all is well", of(active(attempts(1000, 1000))), health.OK, "No problems detected."},
		{"failed deliveries alone degrade nothing", summary.Facts{FailedDeliveries: 5}, health.OK, "No problems detected."},

		{"an endpoint disabled", of(disabled), health.Critical, "1 endpoint is disabled: ep."},
		{"an endpoint disabled long ago", of(long), health.Warned, "1 endpoint is disabled: ep."},

		{"90 % of 20 in the last hour", lastHour(attempts(18, 20)), health.OK, "No problems detected."},
		{"under 90 % of 20", lastHour(attempts(17, 20)), health.Critical, "85.0% of delivery attempts succeeded in the last hour (17 of 20)."},
		{"nothing of 19 is too few to tell", lastHour(attempts(0, 19)), health.OK, "No problems detected."},
		{"just 90 %", lastHour(attempts(9000, 10_000)), health.OK, "No problems detected."},
		{"just under 90 %", lastHour(attempts(8999, 10_000)), health.Critical, "89.9% of delivery attempts succeeded in the last hour (8,999 of 10,000)."},

		{"due for 15 min", due(15 * time.Minute), health.OK, "No problems detected."},
		{"due for longer", due(15*time.Minute + 1), health.Critical, "A delivery has been overdue for 15 minutes."},

		{"99 % in 24 h", of(in("ep", condition.Paused, attempts(0, 1)), active(attempts(99, 100))), health.OK, "1 endpoint is paused: ep."},
		{"just under 99 %", with(of(active(attempts(9899, 10_000))), noHour), health.Warned, "98.9% of delivery attempts succeeded in the last 24 hours (9,899 of 10,000)."},
		{"a single attempt that failed", of(active(attempts(0, 1))), health.Warned, "0.0% of delivery attempts succeeded in the last 24 hours (0 of 1)."},
		{"a breaker", of(failing("ep", health.Attempts{})), health.Warned, "1 endpoint is failing every request. We're sending it one delivery at a time as a probe: ep."},
		{"a warning running", of(warned, warned), health.Warned, "2 endpoints are about to be disabled unless a delivery succeeds: ep, ep."},

		{
			"the worst speaks", with(of(failing("ep", attempts(1, 2))), func(f *summary.Facts) { f.OldestDue = time.Hour }),
			health.Critical, "A delivery has been overdue for 60 minutes.",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := summary.Of(tt.in)
			if s.Severity != tt.want || s.Reason() != tt.reason {
				t.Errorf("got %s: %s\nwant %s: %s", s.Severity, s.Reason(), tt.want, tt.reason)
			}
			if (s.Action != "") != (s.Severity != health.OK) {
				t.Errorf("%s, and the action is %q", s.Severity, s.Action)
			}
		})
	}
}

func noHour(f *summary.Facts) { f.Endpoints[0].Hour = health.Attempts{} }

func TestEverythingThatIsNotWellIsListedTheWorstFirst(t *testing.T) {
	t.Parallel()
	disabled := in("off", condition.Disabled, health.Attempts{})
	disabled.Disabled = health.Gone
	warned := failing("ep", attempts(0, 20))
	warned.Warned = true
	s := summary.Of(with(of(disabled, warned), func(f *summary.Facts) { f.OldestDue = time.Hour }))
	want := "endpoint_disabled success_hour oldest_due success_day breaker_open warning_running"
	if got := codes(s); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// codes are the codes of the findings, which are ordered by severity.
func codes(s summary.Summary) string {
	var all []string
	for _, f := range s.Findings {
		all = append(all, f.Code)
	}
	return strings.Join(all, " ")
}

// Whatever keeps deliveries from being sent is a finding that says who keeps them, and how many wait.
func TestEveryStopIsAFinding(t *testing.T) {
	t.Parallel()
	stopped := func(state condition.State, scope pause.Scope) summary.Endpoint {
		e := in("Shop", state, health.Attempts{})
		e.Host, e.Condition.Scope, e.Condition.Held = "shop.example:8443", scope, 12
		return e
	}
	unserved := stopped(condition.Unserved, "")
	unserved.Unserved = true
	dropping := stopped(condition.Paused, "")
	dropping.Drops, dropping.Condition.Held = true, 0
	gone := stopped(condition.Disabled, "")
	gone.Disabled, gone.Drops = health.Gone, true
	for name, tt := range map[string]struct {
		in       summary.Facts
		severity health.Severity
		code     string
		detail   string
	}{
		"suspended": {
			with(of(stopped(condition.Suspended, pause.Suspended)), func(f *summary.Facts) { f.SuspendedAt = noon }), health.Critical, "suspended",
			"The operator of this platform suspended this tenant. Nothing is sent, and nothing is lost.",
		},
		"suspended, without endpoints": {
			summary.Facts{SuspendedAt: noon},
			health.Critical, "suspended",
			"The operator of this platform suspended this tenant. Nothing is sent, and nothing is lost.",
		},
		"no worker": {
			of(unserved), health.Critical, "no_worker",
			"1 endpoint is served by no live worker, so nothing is sent to it: Shop. 12 deliveries wait.",
		},
		"everything paused": {
			of(stopped(condition.OnHold, pause.Platform)), health.Warned, "paused_by_operator",
			"The operator of this platform paused all deliveries. 12 deliveries wait.",
		},
		"the tenant paused": {
			of(stopped(condition.OnHold, pause.Tenant)), health.Warned, "paused_by_operator",
			"The operator of this platform paused this tenant's deliveries. 12 deliveries wait.",
		},
		"the host paused": {
			of(stopped(condition.OnHold, pause.Host), stopped(condition.OnHold, pause.Host)), health.Warned, "paused_by_operator",
			"The operator paused deliveries to shop.example:8443. 24 deliveries wait.",
		},
		"the endpoint paused": {
			of(stopped(condition.OnHold, pause.Endpoint)), health.Warned, "paused_by_operator",
			"The operator paused deliveries to Shop. 12 deliveries wait.",
		},
		"disabled, and drops": {
			of(gone), health.Critical, "endpoint_disabled",
			"1 endpoint is disabled: Shop. 12 deliveries wait. New events create no deliveries to it.",
		},
		"paused by its owner": {of(stopped(condition.Paused, "")), health.OK, "endpoint_paused", "1 endpoint is paused: Shop. 12 deliveries wait."},
		"paused by its owner, and drops": {
			of(dropping), health.OK, "endpoint_paused",
			"1 endpoint is paused: Shop. New events create no deliveries to it.",
		},
		"not verified": {of(stopped(condition.Unverified, "")), health.OK, "endpoint_unverified", "1 endpoint is not verified: Shop. 12 deliveries wait."},
	} {
		s := summary.Of(tt.in)
		if len(s.Findings) != 1 || s.Severity != tt.severity || s.Findings[0].Code != tt.code || s.Reason() != tt.detail {
			t.Errorf("%s: %s, %+v", name, s.Severity, s.Findings)
		}
		if s.ActiveEndpoints != 0 {
			t.Errorf("%s: %d endpoints are active", name, s.ActiveEndpoints)
		}
	}
}

// What is over is told as over: it is no alert, no reason, and nothing to do.
func TestWhatIsOverIsNoProblem(t *testing.T) {
	t.Parallel()
	was := in("Was", condition.Active, attempts(10, 40))
	was.Record.Since = noon.Add(-30 * time.Second)
	s := summary.Of(of(was))
	if s.Severity != health.OK || s.Action != "" || len(s.Alerts) != 0 || len(s.Recovered) != 1 {
		t.Fatalf("%s: %q, %+v, %+v", s.Severity, s.Action, s.Alerts, s.Recovered)
	}
	if r := s.Recovered[0]; r.Detail() != "Was recovered: 30 of 40 attempts failed in the last 24 hours." || !r.At.Equal(was.Record.Since) {
		t.Errorf("%s at %s", r.Detail(), r.At)
	}
	// An endpoint that fails now comes before, and is what to do first.
	s = summary.Of(of(was, failing("Is", health.Attempts{health.ClassTimeout: 1})))
	if len(s.Alerts) != 1 || s.Alerts[0].Name != "Is" || s.Action != health.ProblemTimeout.Action() || len(s.Recovered) != 1 {
		t.Errorf("%+v, %q, %+v", s.Alerts, s.Action, s.Recovered)
	}
}

// Alerts are in the order of severities and conditions, whatever failed how often.
func TestAlertsOfWhatIsWorseComeFirst(t *testing.T) {
	t.Parallel()
	off := in("off", condition.Disabled, attempts(0, 1))
	off.Disabled = health.Gone
	s := summary.Of(of(in("some", condition.Active, attempts(0, 90)), failing("down", attempts(0, 12)), off, in("more", condition.Active, attempts(0, 100))))
	var got []string
	for _, a := range s.Alerts {
		got = append(got, a.Name)
	}
	if want := []string{"off", "down", "more", "some"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What to do about a topic is said in Kafka's words, and never in those of a web server.
func TestTheActionFitsTheKindOfTheEndpoint(t *testing.T) {
	t.Parallel()
	for class, r := range map[int]delivery.Result{
		health.ClassNetwork: {Failure: delivery.FailConnect},
		health.ClassTimeout: {Failure: delivery.FailTimeout},
		health.ClassClient:  {Status: 403},
		health.ClassServer:  {Status: 503},
	} {
		day := health.Attempts{}
		day[class] = 12
		e := failing("topic", day)
		e.Errors = []health.ErrorCount{{Failure: r.Failure, Status: r.Status, Count: 12}}
		web := summary.AlertOf(e, noon).Action
		e.Kind = endpoint.Kafka
		topic := summary.AlertOf(e, noon)
		if topic.Action != diagnosis.Advice(endpoint.Kafka, r) || topic.Action == web || web != diagnosis.Advice(endpoint.HTTP, r) {
			t.Errorf("%v: of a topic %q, of a URL %q", r, topic.Action, web)
		}
		if s := summary.Of(of(e)); s.Action != topic.Action {
			t.Errorf("%v: first comes %q", r, s.Action)
		}
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
		{"protocol", []health.ErrorCount{failure(delivery.FailProtocol, 3)}, health.Attempts{}, health.ProblemProtocol, 3, "isn't valid HTTP"},
		{"a status that is none", []health.ErrorCount{status(999, 3)}, health.Attempts{}, health.ProblemProtocol, 3, "isn't valid HTTP"},
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
			e := failing("ep", tt.day)
			e.Errors = tt.errors
			s := summary.Of(summary.Facts{Now: noon, Day: tt.day, Errors: tt.errors, Endpoints: []summary.Endpoint{e}})
			if s.Dominant != tt.want || s.DominantCount != tt.n {
				t.Errorf("got %d of %q, want %d of %q", s.DominantCount, s.Dominant, tt.n, tt.want)
			}
			if !strings.Contains(s.Action, tt.says) {
				t.Errorf("%q says nothing of %q", s.Action, tt.says)
			}
		})
	}
}

func TestMutedEndpointsRaiseNoAlert(t *testing.T) {
	t.Parallel()
	bad := attempts(0, 100)
	mute := health.Mute{At: noon.Add(-time.Hour)}
	changed := func(e summary.Endpoint, change func(*summary.Endpoint)) summary.Endpoint {
		change(&e)
		return e
	}
	ended := func(e summary.Endpoint) summary.Endpoint {
		return changed(e, func(e *summary.Endpoint) { e.Mute.Until = noon })
	}
	for name, e := range map[string]summary.Endpoint{
		"failing":  failing("ep", bad),
		"degraded": in("ep", condition.Active, bad),
		"warned":   changed(failing("ep", bad), func(e *summary.Endpoint) { e.Warned, e.DisableAt = true, noon.Add(time.Hour) }),
		"asked":    changed(in("ep", condition.AskedToWait, bad), func(e *summary.Endpoint) { e.Asked = true }),
		"disabled, then muted": changed(in("ep", condition.Disabled, bad), func(e *summary.Endpoint) {
			e.Disabled, e.Condition.Since = health.Unhealthy, noon.Add(-2*time.Hour)
		}),
	} {
		loud := summary.Of(of(e))
		if len(loud.Alerts) != 1 || loud.Severity == health.OK {
			t.Errorf("%s: %+v", name, loud.Alerts)
		}
		e.Mute = mute
		quiet := summary.Of(of(e))
		if len(quiet.Alerts) != 0 || quiet.Severity != health.OK || len(quiet.Muted) != 1 {
			t.Errorf("%s, muted: severity %v, %+v", name, quiet.Severity, quiet.Findings)
		}
		if again := summary.Of(of(ended(e))); len(again.Alerts) != 1 || len(again.Muted) != 0 {
			t.Errorf("%s, after the mute: %+v", name, again.Alerts)
		}
	}
	off := in("ep", condition.Disabled, bad)
	off.Mute, off.Disabled, off.Condition.Since = mute, health.Unhealthy, noon.Add(-time.Minute)
	if s := summary.Of(of(off)); len(s.Alerts) != 1 || s.Severity != health.Critical {
		t.Errorf("a mute hides that the endpoint was disabled later: %+v", s.Findings)
	}
}
