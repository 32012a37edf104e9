package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"posthorn/domain/words"
)

// The thresholds of a summary's severity. A value at a threshold has not crossed it.
const (
	criticalPercent  = 90 // of the last hour's attempts succeeded
	criticalAttempts = 20 // in that hour, for the rate to mean something
	warningPercent   = 99 // of the last 24 hours' attempts succeeded
	// criticalDue is how long a delivery that is due may wait unless somebody says otherwise.
	criticalDue = 15 * time.Minute
)

// The classes of attempts in the roll-ups, as the schema numbers them.
const (
	ClassOK = iota
	ClassRedirect
	ClassClient
	ClassServer
	ClassNetwork
	ClassTimeout
	ClassBlocked
	classes
)

// Attempts counts attempts by the roll-ups' class.
type Attempts [classes]int64

// Rate is how many attempts succeeded.
func (a Attempts) Rate() Rate {
	r := Rate{Succeeded: max(a[ClassOK], 0)}
	for _, n := range a {
		r.Total += max(n, 0)
	}
	return r
}

// Rate is a success rate.
type Rate struct{ Succeeded, Total int64 }

// Known reports whether there is anything to go by.
func (r Rate) Known() bool { return r.Total > 0 }

// Share is the rate from 0 to 1; 0 when it is not known.
func (r Rate) Share() float64 {
	if !r.Known() {
		return 0
	}
	return float64(r.Succeeded) / float64(r.Total)
}

// String writes the rate in percent with one digit, rounded down so that what is below a threshold never reads as the
// threshold: "98.9%". A rate that is not known is a dash.
func (r Rate) String() string {
	if !r.Known() {
		return "-"
	}
	tenths := r.Succeeded * 1000 / r.Total
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}

// under reports whether less than so many percent succeeded.
func (r Rate) under(percent int64) bool { return r.Known() && r.Succeeded*100 < r.Total*percent }

// Severity is how a tenant's endpoints are. The zero value is OK.
type Severity int16

// The severities, in their order.
const (
	OK Severity = iota
	Warned
	Critical
)

var severityWords = [...]string{"ok", "warning", "critical"}

// String is the word for the severity in the API and on screens.
func (s Severity) String() string {
	if s < 0 || int(s) >= len(severityWords) {
		return fmt.Sprintf("severity_%d", int(s))
	}
	return severityWords[s]
}

// Inputs are the numbers of one tenant that its summary is made of.
type Inputs struct {
	ActiveEndpoints  int
	Day              Attempts // of the last 24 hours
	Hour             Attempts // of the last hour
	Retries          int64    // attempts of the last 24 hours that were not a delivery's first
	FailedDeliveries int64    // that failed for good in the last 24 hours
	Latency          Histogram
	// what failed in the last 24 hours, or a sample; empty where only the classes are known
	Errors       []ErrorCount
	Endpoints    []EndpointInput
	Disabled     int           // endpoints that Posthorn disabled in the last 24 hours
	Resumed      int           // those of them that are not disabled any more
	BreakersOpen int           // now, half open ones too
	AskedToWait  int           // endpoints that asked for a long wait, which is not over
	Warnings     int           // endpoints that have a warning running now
	OldestDue    time.Duration // how long the oldest delivery has been due that nothing holds; 0 when none is
	MayBeDue     time.Duration // how long one may be; 0 is criticalDue
}

// Summary is how a tenant's endpoints are, why, and what to do.
type Summary struct {
	Inputs
	Severity      Severity  // the worst of the findings
	Findings      []Finding // the worst first; none when all is well
	SuccessDay    Rate
	SuccessHour   Rate
	P50, P95      time.Duration // of the attempts in Latency; 0 when there were none
	Dominant      Problem       // what failed attempts have most often; none without failed attempts
	DominantCount int64
	// DominantEndpoint is the endpoint that has it most often; empty where the endpoints are not known.
	DominantEndpoint string
	Alerts           []Alert // an alert for each endpoint that needs somebody, the worst first, at most mostAlerts
	MoreAlerts       int     // endpoints that need somebody beside those
	Action           string  // what to do first; empty when all is well
	ActionEndpoint   string  // the endpoint that Action is about; empty: none in particular
}

// Finding is one thing that is not well.
type Finding struct {
	Severity Severity
	Code     string // stable, snake_case
	Detail   string // a sentence for people
	Endpoint string // the endpoint that is meant, or the worst of several; empty: none in particular
	action   string // what to do where no attempt failed
}

// Reason says why the severity is what it is.
func (s Summary) Reason() string {
	if len(s.Findings) == 0 {
		return "No problems detected."
	}
	return s.Findings[0].Detail
}

// Summarise makes the summary of a tenant by the thresholds above.
func Summarise(in Inputs) Summary {
	s := Summary{Inputs: in, SuccessDay: in.Day.Rate(), SuccessHour: in.Hour.Rate()}
	s.P50, _ = in.Latency.Quantile(0.50)
	s.P95, _ = in.Latency.Quantile(0.95)
	if s.Dominant, s.DominantCount = dominant(in.Errors, in.Day); s.Dominant == "" {
		s.Dominant, s.DominantCount = dominant(nil, in.Hour) // the two were not counted at the same moment
	}
	s.DominantEndpoint = dominantEndpoint(in.Endpoints, s.Dominant)
	degraded := s.SuccessDay.under(warningPercent) || s.SuccessHour.Total >= criticalAttempts &&
		s.SuccessHour.under(criticalPercent)
	s.Alerts = alerts(in.Endpoints, degraded)
	s.find()
	s.MoreAlerts = max(len(s.Alerts)-mostAlerts, 0)
	s.Alerts = s.Alerts[:len(s.Alerts)-s.MoreAlerts]
	if len(s.Findings) > 0 {
		s.Severity = s.Findings[0].Severity
		s.act()
	}
	return s
}

// act says what to do first: about the endpoint that the first finding names, where it names one.
func (s *Summary) act() {
	first := s.Findings[0]
	for _, a := range s.Alerts {
		if a.Endpoint == first.Endpoint {
			s.Action, s.ActionEndpoint = a.Action, a.Endpoint
			return
		}
	}
	if s.Action = s.Dominant.Action(); s.Action == "" || first.Code == "oldest_due" && len(s.Endpoints) > 0 {
		s.Action = first.action
	}
}

// worst is the endpoint of the worst alert with one of these codes, or of any without codes.
func (s *Summary) worst(codes ...string) string {
	for _, a := range s.Alerts {
		if len(codes) == 0 || slices.Contains(codes, a.Code) {
			return a.Endpoint
		}
	}
	return ""
}

// named adds to a sentence which endpoints are meant: at most three of them by name.
func (s *Summary) named(sentence string, codes ...string) string {
	var names []string
	for _, a := range s.Alerts {
		if slices.Contains(codes, a.Code) {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return sentence
	}
	if more := len(names) - 3; more > 0 {
		names = append(names[:3:3], words.Number(more)+" more")
	}
	return strings.TrimSuffix(sentence, ".") + ": " + strings.Join(names, ", ") + "."
}

// disabledSentence says how many endpoints were disabled, and how many of them are not any more.
func (s *Summary) disabledSentence() string {
	sentence := words.Count(s.Disabled, "endpoint was", "endpoints were") + " disabled in the last 24 hours."
	if s.Resumed > 0 {
		sentence = strings.TrimSuffix(sentence, ".") + ", and " + words.Count(s.Resumed, "was", "were") + " resumed since."
	}
	return s.named(sentence, "endpoint_disabled")
}

// find lists what is not well, the critical first.
func (s *Summary) find() {
	add := func(there bool, f Finding) {
		if there {
			s.Findings = append(s.Findings, f)
		}
	}
	add(s.Disabled > s.Resumed, Finding{
		Critical, "endpoint_disabled", s.disabledSentence(), s.worst("endpoint_disabled"),
		"Fix the cause named in the notice, then resume the endpoint and replay its failed deliveries.",
	})
	add(s.SuccessHour.Total >= criticalAttempts && s.SuccessHour.under(criticalPercent), Finding{
		Critical, "success_hour", rateSentence(s.SuccessHour, "hour"), s.worst(), "",
	})
	add(s.OldestDue > cmp.Or(s.MayBeDue, criticalDue), Finding{
		Critical, "oldest_due", fmt.Sprintf("A delivery has been overdue for %s minutes.", words.Number(int(s.OldestDue.Minutes()))), "",
		"Raise the rate_limit or max_in_flight of the endpoint with the longest backlog. If none is at its limit, contact the operator of this platform.",
	})
	add(s.SuccessDay.under(warningPercent), Finding{
		Warned, "success_day", rateSentence(s.SuccessDay, "24 hours"), s.worst(), "",
	})
	add(s.BreakersOpen > 0, Finding{
		Warned, "breaker_open",
		s.named(words.Count(s.BreakersOpen, "endpoint is failing every request. We're sending it one delivery at a time as a probe.", "endpoints are failing every request. We're sending each one delivery at a time as a probe."), "breaker_open"),
		s.worst("breaker_open", "warning_running"),
		"Check the endpoint's last attempts. The first success releases the backlog.",
	})
	add(s.AskedToWait > 0, Finding{
		Warned, "asked_to_wait",
		s.named(words.Count(s.AskedToWait, "endpoint asked for a long wait with Retry-After, so nothing is sent to it.", "endpoints asked for long waits with Retry-After, so nothing is sent to them."), "asked_to_wait"),
		s.worst("asked_to_wait"),
		"Check why the endpoint asks for it. If it takes deliveries again, resume it: that ends the wait.",
	})
	add(s.Warnings > 0, Finding{
		Warned, "warning_running",
		s.named(words.Count(s.Warnings, "endpoint is", "endpoints are")+" about to be disabled unless a delivery succeeds.", "warning_running"),
		s.worst("warning_running"),
		"Fix the endpoint and send it a test event. One success ends the countdown.",
	})
}

func rateSentence(r Rate, period string) string {
	return fmt.Sprintf("%s of delivery attempts succeeded in the last %s (%s of %s).", r, period, words.Number(r.Succeeded), words.Number(r.Total))
}
