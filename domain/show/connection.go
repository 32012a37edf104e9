package show

import (
	"slices"
	"strings"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/endpoint"
)

// StepState is what became of a step of a connection test.
type StepState string

// The states.
const (
	StepOK      StepState = "ok"
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped" // the endpoint does not need it, or a step before it failed
)

// The steps, in their order.
const (
	StepDNS     = "dns"
	StepProxy   = "proxy"
	StepConnect = "connect"
	StepTLS     = "tls"
	StepToken   = "token"
	StepRequest = "request"
)

// stepLabels are the steps for people.
var stepLabels = map[string]string{
	StepDNS:     "DNS",
	StepProxy:   "Egress proxy",
	StepConnect: "Connection",
	StepTLS:     "TLS",
	StepToken:   "Access token",
	StepRequest: "Request",
}

// ConnectionStep is one step of a connection test.
type ConnectionStep struct {
	Name   string
	State  StepState
	Took   time.Duration // 0 for a step that was skipped
	Detail string        // a sentence; empty if there is nothing to say
}

// Label is the step for people.
func (s ConnectionStep) Label() string { return stepLabels[s.Name] }

// StepsOK reports whether no step failed.
func StepsOK(steps []ConnectionStep) bool {
	return !slices.ContainsFunc(steps, func(s ConnectionStep) bool { return s.State == StepFailed })
}

// Connected is what a test of a connection found.
type Connected struct {
	Dial     delivery.Result // of resolving, connecting and the handshake
	Phases   Phases          // of the same
	Encrypt  bool            // the URL is https
	Proxied  bool            // connections go through a proxy
	Proxy    time.Duration   // until the proxy was reached
	Resolves bool            // the proxy resolves names
	Literal  bool            // the URL has an address instead of a name
	Error    string          // of the dial; empty: it succeeded

	Tokens     bool          // requests need an access token
	TokenTook  time.Duration // 0: none was requested
	TokenError string

	Sent          bool // a request was sent, or failed on its way
	Response      delivery.Result
	Answer        diagnosis.Response // what the response says about who wrote it
	RequestTook   time.Duration
	ResponseError string
	Timeout       time.Duration
}

// NewConnectionSteps are the steps of a connection test, each with its time and what went wrong.
func NewConnectionSteps(c Connected) []ConnectionStep {
	failed := map[delivery.Failure]string{
		delivery.FailDNS:     StepDNS,
		delivery.FailBlocked: StepDNS,
		delivery.FailProxy:   StepProxy,
		delivery.FailConnect: StepConnect,
		delivery.FailTLS:     StepTLS,
	}[c.Dial.Failure]
	if c.Dial.Failure == delivery.FailBlocked && c.unresolved() {
		failed = StepConnect // there was no name to resolve
	}
	if failed == "" && c.Dial.Failure != delivery.FailNone {
		failed = StepConnect
	}
	steps := []ConnectionStep{
		{Name: StepDNS, State: StepOK, Took: c.Phases.DNS},
		{Name: StepProxy, State: StepOK, Took: c.Proxy},
		{Name: StepConnect, State: StepOK, Took: c.Phases.Connect},
		{Name: StepTLS, State: StepOK, Took: c.Phases.TLS},
		{Name: StepToken, State: StepOK, Took: c.TokenTook},
		{Name: StepRequest, State: StepOK, Took: c.RequestTook},
	}
	if !c.Proxied {
		steps = slices.Delete(steps, 1, 2)
	}
	over := false
	for i := range steps {
		s := &steps[i]
		switch {
		case over, c.skips(s.Name) && s.Name != failed:
			*s = ConnectionStep{Name: s.Name, State: StepSkipped}
		case s.Name == failed:
			s.State, s.Detail, over = StepFailed, sentence(c.Error), true
		case s.Name == StepToken && c.TokenError != "":
			s.State, s.Detail, over = StepFailed, sentence(c.TokenError), true
		case s.Name == StepRequest:
			*s = c.request(*s)
		}
	}
	return steps
}

// unresolved reports whether no name is resolved here.
func (c Connected) unresolved() bool { return c.Literal || c.Resolves }

// skips reports whether the endpoint does not need a step.
func (c Connected) skips(step string) bool {
	switch step {
	case StepDNS:
		return c.unresolved()
	case StepTLS:
		return !c.Encrypt
	case StepToken:
		return !c.Tokens
	}
	return false
}

// request is the last step. A response that is no 2xx is diagnosed as that of a delivery.
func (c Connected) request(s ConnectionStep) ConnectionStep {
	if !c.Sent {
		return ConnectionStep{Name: s.Name, State: StepSkipped}
	}
	d := diagnosis.Attempt(endpoint.HTTP, c.Response, c.Timeout, c.Answer)
	s.Detail = d.Detail
	if d.Problem != "" {
		s.State = StepFailed
		if c.Response.Failure != delivery.FailNone && c.ResponseError != "" {
			s.Detail = sentence(c.ResponseError)
		}
		s.Detail += " " + d.Fix
	}
	return s
}

// sentence is a cause as a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
