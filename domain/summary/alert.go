package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/words"
)

// Endpoint is what a summary is told of one endpoint.
type Endpoint struct {
	ID        id.UUID
	Name      string // what people call it
	Host      string // as pause.HostOf says it
	Kind      endpoint.Kind
	Status    endpoint.Status
	Condition condition.Condition
	Unserved  bool // no live worker serves it, whatever its condition is
	Asked     bool // it asked for a long wait, which is not over
	Drops     bool // events create no deliveries to it while it is not active

	Day, Hour health.Attempts     // of the last 24 hours, and of the last hour
	Record    health.Record       // of the last 24 hours
	Errors    []health.ErrorCount // of the failed attempts in Day, as far as they are known

	Mute health.Mute // of its alerts

	Disabled health.Reason // why Posthorn disabled it in the last 24 hours; empty: it did not
	Warned   bool          // a warning runs
	// DisableAt is when it will be disabled; zero without a warning, or where the warning has no date.
	DisableAt time.Time
}

// tried reports whether requests are sent to the endpoint, or would be if a worker were there.
func (e Endpoint) tried() bool {
	switch e.Condition.State {
	case condition.Active, condition.Unserved, condition.Failing, condition.AskedToWait:
		return true
	}
	return false
}

// muted reports whether its owner wants no alert of the endpoint. A mute from before the endpoint was disabled does not
// cover that.
func (e Endpoint) muted(now time.Time) bool {
	return e.Mute.Holds(now) && (e.Condition.State != condition.Disabled || !e.Mute.At.Before(e.Condition.Since))
}

// dropping reports whether events create no deliveries to the endpoint now.
func (e Endpoint) dropping() bool {
	switch e.Condition.State {
	case condition.Disabled, condition.Unverified, condition.Paused:
		return e.Drops
	}
	return false
}

// over reports whether what failed of an endpoint's attempts is no longer so.
func (e Endpoint) over(now time.Time) bool {
	return e.Condition.State != condition.Failing && !e.Record.Failed.IsZero() && e.Record.Over(now)
}

// Response is what most failed attempts ended with.
type Response struct {
	delivery.Result
	Count int64
}

// String is the response in a word: "422", "timeout"; empty where it is not known.
func (r Response) String() string {
	switch {
	case r.Failure != delivery.FailNone:
		return r.Failure.String()
	case r.Status > 0:
		return strconv.Itoa(r.Status)
	}
	return ""
}

// Alert is one endpoint that needs attention: what is wrong, in real counts, and what to do about it.
type Alert struct {
	Endpoint         id.UUID
	Name             string
	Severity         health.Severity
	Code             string // endpoint_disabled, warning_running, breaker_open, asked_to_wait or endpoint_failing
	Failed, Attempts int64  // of the last 24 hours
	Problem          health.Problem
	Response         Response // the most frequent one of that problem
	Detail           string   // a sentence that begins with the endpoint's name
	Action           string

	rank int // of the endpoint's condition
}

// AlertOf is the alert of an endpoint that is to be told of, whatever the tenant's other endpoints do.
func AlertOf(e Endpoint, now time.Time) Alert {
	a, _ := alertOf(e, true, now)
	return a
}

// alertOf is an endpoint's alert. degraded says that the tenant's success rate is too low; an endpoint that only fails
// now and then is told of only then.
func alertOf(e Endpoint, degraded bool, now time.Time) (Alert, bool) {
	rate := e.Day.Rate()
	a := Alert{
		Endpoint: e.ID,
		Name:     e.Name,
		Severity: health.Warned,
		Attempts: rate.Total,
		Failed:   rate.Failed(),
		rank:     e.Condition.State.Rank(),
	}
	a.Problem, _ = dominant(e.Errors, e.Day)
	if e.Disabled != "" {
		a.Problem = problemOf(e.Disabled, a.Problem)
	}
	a.Response = frequent(e.Errors, a.Problem)
	how, after := "", ""
	switch {
	case e.Condition.State == condition.Disabled:
		a.Code, how = "endpoint_disabled", " was disabled"
		if e.Disabled != "" {
			a.Severity = health.Critical
		}
		if e.dropping() {
			after = " New events create no deliveries to it."
		}
	case e.Warned && !e.DisableAt.IsZero():
		a.Code, how = "warning_running", " will be disabled on "+e.DisableAt.UTC().Format("2 January, 15:04")+" UTC unless a delivery succeeds"
	case e.Warned:
		a.Code, how = "warning_running", " will be disabled unless a delivery succeeds"
	case e.Condition.State == condition.Failing:
		a.Code, how = "breaker_open", " is failing every request, and its circuit breaker is open"
	case e.Asked:
		a.Code, how = "asked_to_wait", " asked for a long wait with Retry-After"
	case degraded && e.tried() && e.Record.Degraded(now):
		a.Code = "endpoint_failing"
	default:
		return a, false
	}
	a.Detail = e.Name + how + "." + after
	if counts := a.counts(); counts != "" {
		a.Detail = e.Name + how + ": " + counts + "." + after
	}
	if a.Action = a.Problem.Action(); e.Kind.Broker() && a.Response.Count > 0 {
		a.Action = diagnosis.Advice(e.Kind, a.Response.Result)
	}
	if a.Action == "" {
		a.Action = "Check the endpoint's last attempts: they show what its server responded."
	}
	return a, true
}

// problemOf maps a reason to disable to its problem: a single 410 can outweigh any number of other failures.
func problemOf(r health.Reason, counted health.Problem) health.Problem {
	switch {
	case r == health.Gone:
		return health.ProblemURL
	case r == health.TLS:
		return health.ProblemTLS
	case r == health.Auth && counted != health.ProblemURL:
		return health.ProblemAuth
	}
	return counted
}

// counts says what most attempts ended with: "83 of 273 attempts were rejected with 422".
func (a Alert) counts() string {
	if a.Failed == 0 {
		return ""
	}
	of := func(n int64) string {
		return fmt.Sprintf("%s of %s", words.Number(n), words.Count(a.Attempts, "attempt", "attempts"))
	}
	were := func(n int64) string {
		if n == 1 {
			return " was"
		}
		return " were"
	}
	r := a.Response
	switch {
	case r.Count == 0:
		return of(a.Failed) + " failed"
	case r.Failure != delivery.FailNone:
		return of(r.Count) + " failed with " + failureWords[r.Failure]
	case r.Status >= 400 && r.Status < 500:
		return of(r.Count) + were(r.Count) + " rejected with " + r.String()
	case r.Status >= 300 && r.Status < 400:
		return of(r.Count) + were(r.Count) + " redirected with " + r.String()
	}
	return of(r.Count) + " failed with " + r.String()
}

var failureWords = map[delivery.Failure]string{
	delivery.FailDNS:      "a DNS error",
	delivery.FailConnect:  "no connection",
	delivery.FailTLS:      "a TLS error",
	delivery.FailTimeout:  "a timeout",
	delivery.FailReset:    "a broken connection",
	delivery.FailBlocked:  "a blocked address",
	delivery.FailProtocol: "an invalid response",
	delivery.FailInternal: "an internal error",
	delivery.FailToken:    "no access token",
	delivery.FailProxy:    "a failed proxy of the platform",
}

// alerts are those of a tenant's endpoints, the worst first: by severity, then by condition, then by how many attempts
// failed.
func alerts(in []Endpoint, degraded bool, now time.Time) []Alert {
	var all []Alert
	for _, e := range in {
		if a, there := alertOf(e, degraded, now); there && !e.muted(now) {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b Alert) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(b.Failed, a.Failed),
			a.Endpoint.Compare(b.Endpoint),
		)
	})
	return all
}

// Recovery is an endpoint whose failures are over.
type Recovery struct {
	Endpoint         id.UUID
	Name             string
	At               time.Time // since when it is well
	Failed, Attempts int64     // of the last 24 hours
}

// Detail says what is over, with the name of the endpoint first. The time is told beside it.
func (r Recovery) Detail() string {
	return fmt.Sprintf(
		"%s recovered: %s of %s failed in the last 24 hours.",
		r.Name,
		words.Number(r.Failed),
		words.Count(r.Attempts, "attempt", "attempts"),
	)
}

// recoveries are the endpoints that failed too often in the last 24 hours and are well again, the latest first.
func recoveries(in []Endpoint, now time.Time) (out []Recovery) {
	for _, e := range in {
		if rate := e.Day.Rate(); e.Condition.State == condition.Active && !e.Warned && e.over(now) && rate.Under(health.WarningPercent) {
			r := Recovery{
				Endpoint: e.ID,
				Name:     e.Name,
				At:       e.Record.Since,
				Failed:   rate.Failed(),
				Attempts: rate.Total,
			}
			if r.At.Before(e.Record.Failed) {
				r.At = e.Record.Failed
			}
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Recovery) int { return b.At.Compare(a.At) })
	return out[:min(len(out), mostNamed)]
}
