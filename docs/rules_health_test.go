package docs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

// probes asks the breaker how long it waits.
func probes(t *testing.T) string {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := delivery.Counters{ConsecutiveFailures: health.FailuresToOpen, LastFailureAt: now}
	breaker := health.Breaker{}.After(failed, delivery.Unhealthy, now)
	var waits []string
	for range 8 {
		waits = append(waits, breaker.NextProbeAt.Sub(now).String())
		now = breaker.NextProbeAt
		var may bool
		if breaker, may = breaker.Probe(now); !may {
			t.Fatalf("no probe at %v", now)
		}
		breaker = breaker.After(failed, delivery.Unhealthy, now)
	}
	for i, w := range waits {
		d, _ := time.ParseDuration(w)
		waits[i] = lasting(d)
	}
	if waits[6] != waits[7] {
		t.Errorf("the waits do not end: %v", waits)
	}
	return fmt.Sprintf("| failures that open it | delays between probes |\n| --- | --- |\n| %d in a row | %s, then every %s |\n",
		health.FailuresToOpen, strings.Join(waits[:6], ", "), waits[7])
}

// policies shows each reason in the default policy's own words, and the settings that decide about it.
func policies() string {
	p := health.DefaultPolicy()
	sample := p
	sample.Exhausted = 100 // off by default: a number for the sentence
	ranges := map[string]health.Range{}
	for _, r := range health.Ranges() {
		ranges[r.Name] = r
	}
	defaults := map[string]int{
		"auth_failures":      p.AuthFailures,
		"auth_minutes":       p.AuthMinutes,
		"unhealthy_hours":    p.UnhealthyHours,
		"unhealthy_failures": p.UnhealthyFailures,
		"failures_over":      p.FailuresOver,
		"failures_hours":     p.FailuresHours,
		"tls_hours":          p.TLSHours,
		"exhausted":          p.Exhausted,
	}
	settings := map[health.Reason][]string{
		health.TLS:       {"tls_hours"},
		health.Auth:      {"auth_failures", "auth_minutes"},
		health.Unhealthy: {"unhealthy_hours", "unhealthy_failures"},
		health.Failures:  {"failures_over", "failures_hours"},
		health.Exhausted: {"exhausted"},
	}
	var b strings.Builder
	b.WriteString("| reason | by default | settings with defaults and ranges |\n| --- | --- | --- |\n")
	for _, reason := range health.Reasons() {
		says := []string{fmt.Sprintf("`gone` %v", p.Gone)}
		if reason != health.Gone {
			says = nil
		}
		words := p.Sentence(reason)
		for _, name := range settings[reason] {
			r := ranges[name]
			never := ""
			if r.Never {
				never = " or 0"
			}
			says = append(says, fmt.Sprintf("`%s` %d (%d to %d %s%s)", name, defaults[name], r.Low, r.High, r.Unit, never))
			if defaults[name] == 0 {
				words = "Never. With 100, for example: " + sample.Sentence(reason)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", reason, words, strings.Join(says, ", "))
	}
	return b.String()
}

// warnings finds when the default policy warns, by asking it every quarter of an hour of a streak that lasts.
func warnings() string {
	p := health.DefaultPolicy()
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	b.WriteString("| reason | first warning | second warning | disabled |\n| --- | --- | --- | --- |\n")
	for _, tt := range []struct {
		reason health.Reason
		c      delivery.Counters
	}{
		{health.TLS, delivery.Counters{
			TLSOnlySince:        t0,
			ConsecutiveFailures: 1,
			UnhealthySince:      t0,
			FirstFailureAt:      t0,
		}},
		{health.Unhealthy, delivery.Counters{
			ConsecutiveFailures: p.UnhealthyFailures,
			UnhealthySince:      t0,
			FirstFailureAt:      t0,
		}},
		{health.Failures, delivery.Counters{
			ConsecutiveFailures: p.FailuresOver + 1,
			UnhealthySince:      t0,
			FirstFailureAt:      t0,
		}},
		{health.Auth, delivery.Counters{AuthStreak: p.AuthFailures, AuthSince: t0, FirstFailureAt: t0}},
	} {
		at := map[string]string{string(health.HalfWay): "", string(health.LastDay): "none"}
		disabled := ""
		for after := time.Duration(0); disabled == ""; after += 15 * time.Minute {
			v := p.Evaluate(tt.c, t0.Add(after))
			if v.Disable && v.Reason == tt.reason {
				disabled = "after " + lasting(after)
			}
			for _, w := range v.Warn {
				if seen := at[string(w.Stage)]; w.Reason == tt.reason && (seen == "" || seen == "none") {
					at[string(w.Stage)] = "after " + lasting(after)
				}
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", tt.reason, at["half_way"], at["last_day"], disabled)
	}
	return b.String()
}

// held asks how long deliveries are held.
func held() string {
	var b strings.Builder
	b.WriteString("| endpoint | deliveries are held | notice |\n| --- | --- | --- |\n")
	const days = 90
	for _, s := range endpoint.Statuses() {
		if !health.Holds(s) {
			continue
		}
		hold := health.HoldFor(s, days)
		words := fmt.Sprintf("for %s", lasting(hold))
		if hold == days*24*time.Hour {
			words = "as long as the tenant keeps its events (`retention_days`, at most 90 by default)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s before, or halfway through if that is later |\n", s, words, lasting(hold-health.NoticeAfter(hold)))
	}
	return b.String()
}
