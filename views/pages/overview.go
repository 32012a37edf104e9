package pages

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/summary"
	"posthorn/views/charts"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// OverviewView is the overview of a tenant's webhooks.
type OverviewView struct {
	May       func(access.Action) bool
	Shell     layout.Shell
	Root      string // of the tenant's pages: /t/ten_...
	MayChange bool   // endpoints
	MayKeys   bool   // API keys
	MayAct    bool   // on deliveries
	Summary   summary.Summary
	Steps     FirstSteps
	Range     RangeView
	Volume    charts.Props
	Success   charts.Props
	Latency   charts.Props
	Failing   []FailingEndpoint

	DeadLetters int64 // now; counted up to 10,000

	Feed FeedView

	LastDigest time.Time // zero: never
}

// FirstSteps is the progress of a new tenant.
type FirstSteps struct {
	HasEndpoint, HasActive, HasEvent, HasDelivered bool
	FirstEndpoint                                  string // its page, if there is one
}

// Done reports whether all steps are done.
func (s FirstSteps) Done() bool { return s.HasDelivered }

func (s FirstSteps) state(done, next bool) components.StepState {
	switch {
	case done:
		return components.StepDone
	case next:
		return components.StepRunning
	}
	return components.StepWaiting
}

// FailingEndpoint is one of the endpoints with most failures.
type FailingEndpoint struct {
	Href, URL        string
	Failed, Attempts int64
}

// Share is the share of its failed attempts, from 0 to 1.
func (f FailingEndpoint) Share() float64 {
	if f.Attempts == 0 {
		return 0
	}
	return float64(f.Failed) / float64(f.Attempts)
}

// FeedView lists the newest deliveries; it refreshes itself.
type FeedView struct {
	Poll string // the address of the refresh
	One  bool   // all deliveries are of one endpoint, which is not named
	Root string
	Rows []show.Delivery
}

// rateTone is the tone of a success rate, by the thresholds of the health summary.
func rateTone(r health.Rate) components.Tone {
	switch {
	case !r.Known() || r.Share() >= 0.99:
		return components.Neutral
	case r.Share() >= 0.9:
		return components.Warning
	}
	return components.Bad
}

// rateNumber is the rate without its unit: "99.8", rounded down, or a dash.
func rateNumber(r health.Rate) string {
	if !r.Known() {
		return "–"
	}
	tenths := r.Succeeded * 1000 / r.Total
	if tenths == 1000 {
		return "100%"
	}
	return strconv.FormatInt(tenths/10, 10) + "." + strconv.FormatInt(tenths%10, 10) + "%"
}

func rateStat(label string, r health.Rate, period string) components.StatProps {
	return components.StatProps{
		Label: label,
		Value: rateNumber(r),
		Tone:  rateTone(r),
		Note:  "of " + components.Many(r.Total, "attempt", "attempts") + " in " + period,
	}
}

func latencyStat(p50, p95 time.Duration) components.StatProps {
	if p50 == 0 {
		return components.StatProps{Label: "Latency", Value: "–", Note: "No attempts in the last 24 h"}
	}
	return components.StatProps{Label: "Latency p50", Value: components.Duration(p50), Note: "p95 " + components.Duration(p95)}
}

// deadLetterStat is the number of dead letters, and how many deliveries failed lately.
func deadLetterStat(root string, letters, failed int64) components.StatProps {
	p := components.StatProps{
		Label: "Dead letters",
		Value: components.Count(letters),
		Note:  components.Count(failed) + " failed permanently, last 24 h",
		Href:  root + "/deliveries?status=dead_letter",
	}
	if letters >= 10_000 {
		p.Value += "+"
	}
	if letters > 0 {
		p.Tone = components.Bad
	}
	return p
}

// plain are the findings that are in no endpoint's alert.
func (v OverviewView) plain() []summary.Finding {
	return slices.DeleteFunc(slices.Clone(v.Summary.Findings), func(f summary.Finding) bool {
		return !f.Stop && slices.ContainsFunc(v.Summary.Alerts, func(a summary.Alert) bool { return a.Endpoint == f.Endpoint })
	})
}

// endpoint is the address of an endpoint's page.
func (v OverviewView) endpoint(of id.UUID) string {
	return v.Root + "/endpoints/" + id.Endpoint.Format(of)
}

// seeFailures is the address of an endpoint's failures.
func (v OverviewView) seeFailures(a summary.Alert) string {
	return v.Root + "/deliveries?status=all_failed&endpoint=" + id.Endpoint.Format(a.Endpoint)
}

// items are the reader's actions on the endpoint of an alert. An active endpoint that fails has dead letters to replay.
func (v OverviewView) items(a summary.Alert) []components.MenuItem {
	endpoint := id.Endpoint.Format(a.Endpoint)
	if is := v.Summary.ConditionOf(a.Endpoint); len(is.Actions()) > 0 {
		return conditionItems(is, v.Root, endpoint, v.May)
	}
	if !v.MayAct {
		return nil
	}
	return []components.MenuItem{{
		Label:  condition.Replay.Label(),
		Icon:   icons.Refresh,
		Action: v.Root + "/deliveries/bulk",
		Fields: replayDeadLetters(endpoint),
	}}
}

// after is a sentence's text after the endpoint's name.
func after(sentence, name string) string { return strings.TrimPrefix(sentence, name) }

// findingTone is the tone of a finding in an alert of its own.
func findingTone(s health.Severity) components.Tone {
	if s == health.OK {
		return components.Info
	}
	return components.SeverityTone(s)
}
