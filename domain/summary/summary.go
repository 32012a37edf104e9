// Package summary says how a tenant's webhooks do: what keeps deliveries from being sent, which endpoints need
// somebody, what is over, and what to do first. It reads the conditions of endpoints, as every other surface does.
package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/words"
)

// The thresholds of a summary's severity. A value at a threshold has not crossed it.
const (
	criticalPercent  = 90 // of the last hour's attempts succeeded
	criticalAttempts = 20 // in that hour, for the rate to mean something
	// criticalDue is how long a delivery that is due may wait unless somebody says otherwise.
	criticalDue = 15 * time.Minute
	// mostNamed is how many endpoints a summary names in each of its lists, the worst first.
	mostNamed = 5
	day       = 24 * time.Hour
)

// Facts are what a tenant's summary is made of.
type Facts struct {
	Now              time.Time
	SuspendedAt      time.Time       // when the operator suspended the tenant; zero: it is not suspended
	Endpoints        []Endpoint      // without listeners
	Day              health.Attempts // of the last 24 hours, those of deleted endpoints too
	Hour             health.Attempts // of the last hour
	Retries          int64           // attempts of the last 24 hours that were not a delivery's first
	FailedDeliveries int64           // that failed permanently in the last 24 hours
	Latency          health.Histogram
	Late             []LateConsumer // of feeds, the latest first
	// what failed in the last 24 hours, or a sample; empty where only the classes are known
	Errors    []health.ErrorCount
	OldestDue time.Duration // how long the oldest delivery has been due that nothing holds; 0 when none is
	MayBeDue  time.Duration // how long one may be; 0 is criticalDue
}

// LateConsumer is a consumer that does not acknowledge what was accepted.
type LateConsumer struct {
	Endpoint   id.UUID // the feed
	Name, Feed string  // as people call them
	Since      time.Time
}

// Summary is how a tenant's endpoints are, why, and what to do.
type Summary struct {
	Facts
	Severity        health.Severity // the worst of the findings
	Findings        []Finding       // the worst first
	SuccessDay      health.Rate
	SuccessHour     health.Rate
	P50, P95        time.Duration  // of the attempts in Latency; 0 when there were none
	ActiveEndpoints int            // whose condition is active
	BreakersOpen    int            // whose condition is failing
	Disabled        int            // endpoints that Posthorn disabled in the last 24 hours, resumed ones too
	Warnings        int            // endpoints that have a warning running now
	Muted           []Endpoint     // endpoints whose alerts are muted
	Dominant        health.Problem // what failed attempts of the last 24 hours had most often; none without failed attempts
	DominantCount   int64
	// DominantEndpoint is the endpoint that had it most often; zero where the endpoints are not known.
	DominantEndpoint id.UUID
	Alerts           []Alert    // an alert for each endpoint that needs somebody, the worst first, at most mostNamed
	MoreAlerts       int        // endpoints that need somebody beside those
	Recovered        []Recovery // endpoints whose failures are over, at most mostNamed
	Action           string     // what to do first; empty when all is well
	ActionEndpoint   id.UUID    // the endpoint that Action is about; zero: none in particular
}

// Finding is one thing that is not well, or that keeps deliveries as somebody wants it (health.OK).
type Finding struct {
	Severity health.Severity
	Code     string    // stable, snake_case
	Detail   string    // a sentence or two for people
	Endpoint id.UUID   // the endpoint that is meant, or the worst of several; zero: none in particular
	Stop     bool      // nothing is sent, and no alert of the endpoint says so
	action   string    // what to do where no alert of the endpoint says it
	since    time.Time // of a stop; zero: it goes on
}

// Reason says why the severity is what it is.
func (s Summary) Reason() string {
	if len(s.Findings) == 0 {
		return "No problems detected."
	}
	return s.Findings[0].Detail
}

// ConditionOf is the condition of an endpoint.
func (s Summary) ConditionOf(endpoint id.UUID) condition.Condition {
	for _, e := range s.Endpoints {
		if e.ID == endpoint {
			return e.Condition
		}
	}
	return condition.Condition{}
}

// Of makes the summary of a tenant.
func Of(f Facts) Summary {
	s := Summary{Facts: f, SuccessDay: f.Day.Rate(), SuccessHour: f.Hour.Rate()}
	s.P50, _ = f.Latency.Quantile(0.50)
	s.P95, _ = f.Latency.Quantile(0.95)
	if s.Dominant, s.DominantCount = dominant(f.Errors, f.Day); s.Dominant == "" {
		s.Dominant, s.DominantCount = dominant(nil, f.Hour) // the two were not counted at the same moment
	}
	s.DominantEndpoint = dominantEndpoint(f.Endpoints, s.Dominant)
	low, veryLow := s.rates()
	s.Alerts = alerts(f.Endpoints, low || veryLow, f.Now)
	s.Recovered = recoveries(f.Endpoints, f.Now)
	s.stops()
	s.failures(low, veryLow)
	slices.SortStableFunc(s.Findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	s.MoreAlerts = max(len(s.Alerts)-mostNamed, 0)
	s.Alerts = s.Alerts[:len(s.Alerts)-s.MoreAlerts]
	if len(s.Findings) > 0 {
		s.Severity = s.Findings[0].Severity
	}
	if s.Severity > health.OK {
		s.act()
	}
	return s
}

// rates counts endpoints, and reports whether too few attempts of 24 hours, and of the last hour, succeeded. Failures
// that are over, and those of endpoints that nothing is sent to, no longer count.
func (s *Summary) rates() (low, veryLow bool) {
	var lastDay, hour health.Attempts
	for _, e := range s.Endpoints {
		switch e.Condition.State {
		case condition.Active:
			s.ActiveEndpoints++
		case condition.Failing:
			s.BreakersOpen++
		}
		if e.muted(s.Now) {
			s.Muted = append(s.Muted, e)
		}
		if e.Disabled != "" {
			s.Disabled++
		}
		if e.Warned {
			s.Warnings++
		}
		if e.tried() && !e.over(s.Now) && !e.muted(s.Now) {
			lastDay.Add(e.Day)
			hour.Add(e.Hour)
		}
	}
	return lastDay.Rate().Under(health.WarningPercent), hour.Rate().Total >= criticalAttempts && hour.Rate().Under(criticalPercent)
}

// act says what to do first: about the endpoint that the first finding names, where it names one.
func (s *Summary) act() {
	first := s.Findings[0]
	s.Action = first.action
	for _, a := range s.Alerts {
		if a.Endpoint == first.Endpoint && !first.Stop {
			s.Action, s.ActionEndpoint = a.Action, a.Endpoint
			return
		}
	}
}

// worst is the endpoint of the worst alert with one of these codes, or of any without codes.
func (s *Summary) worst(codes ...string) id.UUID {
	for _, a := range s.Alerts {
		if len(codes) == 0 || slices.Contains(codes, a.Code) {
			return a.Endpoint
		}
	}
	return id.UUID{}
}

// failures finds what fails.
func (s *Summary) failures(low, veryLow bool) {
	if veryLow {
		s.add(health.Critical, "success_hour", rateSentence(s.SuccessHour, "hour"), s.worst(), checkAttempts)
	}
	if s.OldestDue > cmp.Or(s.MayBeDue, criticalDue) {
		s.add(
			health.Critical,
			"oldest_due",
			fmt.Sprintf("A delivery has been overdue for %s minutes.", words.Number(int(s.OldestDue.Minutes()))),
			id.UUID{},
			"Raise the rate_limit or max_in_flight of the endpoint with the longest backlog. If none is at its limit, contact the operator of this platform.",
		)
	}
	if low {
		s.add(health.Warned, "success_day", rateSentence(s.SuccessDay, "24 hours"), s.worst(), checkAttempts)
	}
	if es := s.where(func(e Endpoint) bool { return e.Condition.State == condition.Failing && !e.muted(s.Now) }); len(es) > 0 {
		s.add(health.Warned, "breaker_open", named(es, "endpoint is failing every request. We're sending it one delivery at a time as a probe", "endpoints are failing every request. We're sending each one delivery at a time as a probe"),
			s.worst("breaker_open", "warning_running"), checkAttempts+" The first success releases the backlog.")
	}
	if es := s.where(func(e Endpoint) bool { return e.Asked && !e.muted(s.Now) }); len(es) > 0 {
		s.add(health.Warned, "asked_to_wait", named(es, "endpoint asked for a long wait with Retry-After, so nothing is sent to it", "endpoints asked for long waits with Retry-After, so nothing is sent to them"),
			s.worst("asked_to_wait"), "Check why the endpoint asks for it. If it takes deliveries again, resume it: that ends the wait.")
	}
	if es := s.where(func(e Endpoint) bool { return e.Warned && !e.muted(s.Now) }); len(es) > 0 {
		s.add(health.Warned, "warning_running", named(es, "endpoint is about to be disabled unless a delivery succeeds", "endpoints are about to be disabled unless a delivery succeeds"),
			s.worst("warning_running"), "Fix the endpoint and send it a test event. One success ends the countdown.")
	}
	for _, c := range s.Late {
		s.add(
			health.Warned,
			"feed_late",
			fmt.Sprintf("The consumer %s of the feed %s has not acknowledged events for %s minutes.", c.Name, c.Feed, words.Number(int(s.Now.Sub(c.Since).Minutes()))),
			c.Endpoint,
			"Check that the consumer's program runs, and that it acknowledges what it has finished.",
		)
	}
}

const checkAttempts = "Check the endpoint's last attempts: they show what its server responded."

func (s *Summary) add(severity health.Severity, code, detail string, endpoint id.UUID, action string) {
	s.Findings = append(s.Findings, Finding{Severity: severity, Code: code, Detail: detail, Endpoint: endpoint, action: action})
}

// where lists endpoints, those with the worst alert first.
func (s *Summary) where(is func(Endpoint) bool) (out []Endpoint) {
	for _, e := range s.Endpoints {
		if is(e) {
			out = append(out, e)
		}
	}
	place := func(e Endpoint) int {
		i := slices.IndexFunc(s.Alerts, func(a Alert) bool { return a.Endpoint == e.ID })
		if i < 0 {
			return len(s.Alerts)
		}
		return i
	}
	slices.SortStableFunc(out, func(a, b Endpoint) int { return cmp.Compare(place(a), place(b)) })
	return out
}

// named is a sentence about endpoints, at most three of them by name.
func named(es []Endpoint, one, many string) string {
	return words.Count(len(es), one, many) + ": " + names(es) + "."
}

func names(es []Endpoint) string {
	var all []string
	for _, e := range es {
		all = append(all, e.Name)
	}
	if more := len(all) - 3; more > 0 {
		all = append(all[:3:3], words.Number(more)+" more")
	}
	return strings.Join(all, ", ")
}

func rateSentence(r health.Rate, period string) string {
	return fmt.Sprintf("%s of delivery attempts succeeded in the last %s (%s of %s).", r, period, words.Number(r.Succeeded), words.Number(r.Total))
}
