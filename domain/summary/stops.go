package summary

import (
	"cmp"
	"slices"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/pause"
	"posthorn/domain/words"
)

// stops finds what keeps deliveries from being sent at all: the operator, the platform, Posthorn's rules, the owner.
func (s *Summary) stops() {
	if !s.SuspendedAt.IsZero() {
		s.stop(health.Critical, "suspended", pause.Suspended.Sentence(), "Contact the operator of this platform.", nil)
		s.Findings[len(s.Findings)-1].since = s.SuspendedAt
		return // nothing else that keeps an endpoint matters before
	}
	if es := s.where(func(e Endpoint) bool { return e.Unserved && e.tried() }); len(es) > 0 {
		detail := named(es, "endpoint is served by no live worker, so nothing is sent to it", "endpoints are served by no live worker, so nothing is sent to them")
		s.stop(health.Critical, "no_worker", detail, "Contact the operator of this platform: no worker sends these deliveries.", es)
	}
	s.operatorPauses()
	s.disabled()
	if es := s.in(condition.Paused); len(es) > 0 {
		s.stop(health.OK, "endpoint_paused", named(es, "endpoint is paused", "endpoints are paused"), "", es)
	}
	if es := s.in(condition.Unverified); len(es) > 0 {
		s.stop(health.OK, "endpoint_unverified", named(es, "endpoint is not verified", "endpoints are not verified"), "", es)
	}
}

// operatorPauses finds the pauses of an operator, one for each scope, and of hosts one for each host.
func (s *Summary) operatorPauses() {
	type what struct {
		scope pause.Scope
		host  string
	}
	of := func(e Endpoint) what {
		if e.Condition.Scope == pause.Host {
			return what{pause.Host, e.Host}
		}
		return what{scope: e.Condition.Scope}
	}
	var order []what
	paused := map[what][]Endpoint{}
	for _, e := range s.in(condition.OnHold) {
		w := of(e)
		if paused[w] == nil {
			order = append(order, w)
		}
		paused[w] = append(paused[w], e)
	}
	for _, w := range order {
		es := paused[w]
		var detail string
		switch w.scope {
		case pause.Host:
			detail = "The operator paused deliveries to " + w.host + "."
		case pause.Endpoint:
			detail = "The operator paused deliveries to " + names(es) + "."
		default:
			detail = w.scope.Sentence()
		}
		s.stop(health.Warned, "paused_by_operator", detail, "Deliveries are sent when the operator ends the pause. No action is needed.", es)
	}
}

// disabled finds the endpoints that Posthorn disabled. For a day that is critical.
func (s *Summary) disabled() {
	es := slices.DeleteFunc(s.in(condition.Disabled), func(e Endpoint) bool { return e.muted(s.Now) })
	if len(es) == 0 {
		return
	}
	severity := health.Warned
	if slices.ContainsFunc(es, func(e Endpoint) bool { return e.Disabled != "" }) {
		severity = health.Critical
	}
	s.stop(severity, "endpoint_disabled", named(es, "endpoint is disabled", "endpoints are disabled"),
		"Fix the cause named in the notice, then resume the endpoint and replay its failed deliveries.", es)
	last := &s.Findings[len(s.Findings)-1]
	last.Endpoint, last.Stop = s.worst("endpoint_disabled"), false
}

// stop adds a finding about endpoints that nothing is sent to, with what waits for them and what is dropped.
func (s *Summary) stop(severity health.Severity, code, detail, action string, es []Endpoint) {
	held, atLeast, drop := 0, "", 0
	var since time.Time
	for _, e := range es {
		held += int(e.Condition.Held)
		if e.Condition.HeldAtLeast {
			atLeast = "At least "
		}
		if e.dropping() {
			drop++
		}
		if e.Condition.Since.After(since) {
			since = e.Condition.Since
		}
	}
	if held > 0 {
		detail += " " + atLeast + words.Count(held, "delivery waits.", "deliveries wait.")
	}
	switch {
	case drop == 1 && len(es) == 1:
		detail += " New events create no deliveries to it."
	case drop > 0:
		detail += " New events create no deliveries to " + words.Count(drop, "of them.", "of them.")
	}
	f := Finding{Severity: severity, Code: code, Detail: detail, Stop: true, action: action, since: since}
	if len(es) == 1 {
		f.Endpoint = es[0].ID
	}
	s.Findings = append(s.Findings, f)
}

// in lists the endpoints in a condition.
func (s *Summary) in(state condition.State) []Endpoint {
	es := s.where(func(e Endpoint) bool { return e.Condition.State == state })
	slices.SortStableFunc(es, func(a, b Endpoint) int { return cmp.Compare(b.Condition.Held, a.Condition.Held) })
	return es
}
