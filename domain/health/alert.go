package health

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/words"
)

// EndpointInput is what a summary is told of one endpoint: how it is, and what its attempts of the last 24 hours ended
// with.
type EndpointInput struct {
	ID, Name string // ep_..., and what people call it
	Day      Attempts
	Errors   []ErrorCount // of the failed attempts in Day, as far as they are known
	Disabled Reason       // why Posthorn disabled it in the last 24 hours; empty: it did not
	Resumed  bool         // it was disabled in the last 24 hours and is not disabled any more
	Breaker  bool         // its circuit breaker is open, or half open
	Asked    bool         // it asked for a long wait, which is not over
	Warned   bool         // a warning runs
	// DisableAt is when it will be disabled; zero without a warning, or where the warning has no date.
	DisableAt time.Time
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

// dominantError is the problem that most failed attempts of an endpoint had, by the real counts, and the most frequent
// response.
func dominantError(errors []ErrorCount, day Attempts) (Problem, Response) {
	p, _ := dominant(errors, day)
	return p, frequent(errors, p)
}

// frequent is the most frequent response among those that show a problem.
func frequent(errors []ErrorCount, p Problem) (most Response) {
	for _, e := range errors {
		r := delivery.Result{Failure: e.Failure, Status: e.Status}
		if ProblemOf(r) == p && (e.Count > most.Count || e.Count == most.Count && e.Status < most.Status) {
			most = Response{Result: r, Count: e.Count}
		}
	}
	return most
}

// Alert is one endpoint that needs attention: what is wrong, in real counts, and what to do about it.
type Alert struct {
	Endpoint, Name   string
	Severity         Severity
	Code             string // endpoint_disabled, warning_running, breaker_open, asked_to_wait or endpoint_failing
	Failed, Attempts int64  // of the last 24 hours
	Problem          Problem
	Response         Response // the most frequent one of that problem
	Detail           string   // a sentence that begins with the endpoint's name
	Action           string
}

// AlertOf is the alert of an endpoint that is to be told of, whatever the tenant's other endpoints do.
func AlertOf(e EndpointInput) Alert {
	a, _ := alertOf(e, true)
	return a
}

// mostAlerts is how many endpoints a summary names, the worst first.
const mostAlerts = 5

// alertOf is an endpoint's alert. degraded says that the tenant's success rate is too low; an endpoint that only fails
// now and then is told of only then.
func alertOf(e EndpointInput, degraded bool) (Alert, bool) {
	rate := e.Day.Rate()
	a := Alert{
		Endpoint: e.ID, Name: e.Name, Severity: Warned, Attempts: rate.Total, Failed: rate.Total - rate.Succeeded,
	}
	a.Problem, a.Response = dominantError(e.Errors, e.Day)
	disabled := e.Disabled != "" && !e.Resumed
	if disabled {
		if p := problemOf(e.Disabled, a.Problem); p != a.Problem {
			a.Problem, a.Response = p, frequent(e.Errors, p)
		}
	}
	how := ""
	switch {
	case disabled:
		a.Severity, a.Code, how = Critical, "endpoint_disabled", " was disabled"
	case e.Warned && !e.DisableAt.IsZero():
		a.Code, how = "warning_running", " will be disabled on "+e.DisableAt.UTC().Format("2 January, 15:04")+" UTC unless a delivery succeeds"
	case e.Warned:
		a.Code, how = "warning_running", " will be disabled unless a delivery succeeds"
	case e.Breaker:
		a.Code, how = "breaker_open", " is failing every request, and its circuit breaker is open"
	case e.Asked:
		a.Code, how = "asked_to_wait", " asked for a long wait with Retry-After"
	case degraded && rate.under(warningPercent):
		a.Code = "endpoint_failing"
	default:
		return a, false
	}
	a.Detail = e.Name + how + "."
	if counts := a.counts(); counts != "" {
		a.Detail = e.Name + how + ": " + counts + "."
	}
	if a.Action = a.Problem.Action(); a.Action == "" {
		a.Action = "Check the endpoint's last attempts: they show what its server responded."
	}
	return a, true
}

// problemOf maps a reason to disable to its problem: a single 410 can outweigh any number of other failures.
func problemOf(r Reason, counted Problem) Problem {
	switch {
	case r == Gone:
		return ProblemURL
	case r == TLS:
		return ProblemTLS
	case r == Auth && counted != ProblemURL:
		return ProblemAuth
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
	delivery.FailDNS: "a DNS error", delivery.FailConnect: "no connection", delivery.FailTLS: "a TLS error", delivery.FailTimeout: "a timeout",
	delivery.FailReset: "a broken connection", delivery.FailBlocked: "a blocked address", delivery.FailProtocol: "an invalid response",
	delivery.FailInternal: "an internal error",
}

// alerts are those of a tenant's endpoints, the worst first: by severity, then by how many attempts failed.
func alerts(in []EndpointInput, degraded bool) []Alert {
	var all []Alert
	for _, e := range in {
		if a, there := alertOf(e, degraded); there {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Failed, a.Failed),
			cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return all
}

// dominantEndpoint is the endpoint that has most of a problem.
func dominantEndpoint(in []EndpointInput, p Problem) (ID string) {
	var most int64
	for _, e := range in {
		if n := problems(e.Errors, e.Day)[p]; n > most {
			ID, most = e.ID, n
		}
	}
	return ID
}
