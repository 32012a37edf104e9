package health

import "posthorn/domain/delivery"

// Problem groups what can go wrong with attempts by what a person does about it.
type Problem string

// The problems. The empty one is none.
const (
	ProblemDNS       Problem = "dns"
	ProblemTLS       Problem = "tls"
	ProblemConnect   Problem = "connect"
	ProblemTimeout   Problem = "timeout"
	ProblemAuth      Problem = "auth"         // 401, 403
	ProblemURL       Problem = "url"          // 404, 410
	ProblemThrottled Problem = "throttled"    // 429
	ProblemServer    Problem = "server_error" // 5xx
	ProblemBlocked   Problem = "blocked_address"
	ProblemRedirect  Problem = "redirect" // 3xx, never followed
	ProblemReset     Problem = "reset"
	ProblemProtocol  Problem = "protocol"
	ProblemRejected  Problem = "rejected" // any other 4xx
	ProblemNetwork   Problem = "network"  // dns, tls, connect, reset or protocol, where only the roll-up's class is known
	ProblemInternal  Problem = "internal" // Posthorn could not render or sign
)

// actions is in the order in which equally frequent problems are named: what keeps everything out comes first.
var actions = []struct {
	Problem Problem
	Action  string
}{
	{ProblemDNS, "The endpoint's host name has no address. Check the host name in its URL and its DNS records."},
	{ProblemTLS, "The TLS handshake with the endpoint fails. Check that its certificate hasn't expired, is issued for the host name, and is sent with its full chain, and that no client certificate is required. The attempts say why it fails."},
	{ProblemConnect, "The endpoint accepts no connections. Check that its server is running and that its firewall allows connections to the URL's port."},
	{ProblemBlocked, "The endpoint's host name resolves to an address that deliveries can't be sent to. Use a public address."},
	{ProblemAuth, "The endpoint returns 401 or 403. Check the secret that it verifies signatures with, and the authorization that it requires."},
	{ProblemURL, "The endpoint returns 404 or 410, so nothing receives events there. Check its URL."},
	{ProblemServer, "The endpoint is returning server errors (5xx). Check its logs around the time of a failed attempt."},
	{ProblemTimeout, "The endpoint times out. Respond first, process later: store the event, return a 2xx immediately, and do the work afterward."},
	{ProblemThrottled, "The endpoint returns 429 (too many requests). Raise its server's limit, or lower the endpoint's rate_limit here."},
	{ProblemRedirect, "The endpoint returns redirects (3xx), which are never followed. Change its URL to the redirect's target."},
	{ProblemReset, "Connections close before the response is complete. Check the proxy or load balancer in front of the endpoint's server."},
	{ProblemProtocol, "The endpoint's responses aren't valid HTTP, or their headers are too large. Check what listens at its URL."},
	{ProblemNetwork, "No request reaches the endpoint. Check its host name, TLS certificate, and firewall; the attempts say which of them fails."},
	{ProblemRejected, "The endpoint rejects requests (4xx). Check the responses in its failed deliveries."},
	{ProblemInternal, "Posthorn couldn't render or sign deliveries. Check the endpoint's format and secrets. If they are correct, contact the operator of this platform."},
}

// Problems lists the problems.
func Problems() []Problem {
	out := make([]Problem, len(actions))
	for i, a := range actions {
		out[i] = a.Problem
	}
	return out
}

// Action is the sentence that says what to do about a problem (docs/health.md); empty for none.
func (p Problem) Action() string {
	for _, a := range actions {
		if a.Problem == p {
			return a.Action
		}
	}
	return ""
}

// problemOfFailure is what an attempt without a response shows.
var problemOfFailure = map[delivery.Failure]Problem{
	delivery.FailDNS: ProblemDNS, delivery.FailConnect: ProblemConnect, delivery.FailTLS: ProblemTLS,
	delivery.FailTimeout: ProblemTimeout, delivery.FailReset: ProblemReset, delivery.FailBlocked: ProblemBlocked,
	delivery.FailProtocol: ProblemProtocol, delivery.FailInternal: ProblemInternal,
}

// ProblemOf says which problem the result of a failed attempt shows. What it calls no problem is a 2xx.
func ProblemOf(r delivery.Result) Problem {
	if p, ok := problemOfFailure[r.Failure]; ok {
		return p
	}
	switch s := r.Status; {
	case s >= 200 && s < 300:
		return ""
	case s >= 300 && s < 400:
		return ProblemRedirect
	case s == 401, s == 403:
		return ProblemAuth
	case s == 404, s == 410:
		return ProblemURL
	case s == 408:
		return ProblemTimeout
	case s == 429:
		return ProblemThrottled
	case s >= 400 && s < 500:
		return ProblemRejected
	case s >= 500 && s < 600:
		return ProblemServer
	}
	return ProblemProtocol
}

// ErrorCount is how many failed attempts had a result.
type ErrorCount struct {
	Failure delivery.Failure
	Status  int // HTTP; 0 when there was no answer
	Count   int64
}

// classOf is the roll-ups' class of a failed result.
func classOf(r delivery.Result) int {
	switch r.Failure {
	case delivery.FailNone:
	case delivery.FailTimeout:
		return ClassTimeout
	case delivery.FailBlocked:
		return ClassBlocked
	default:
		return ClassNetwork
	}
	switch s := r.Status; {
	case s >= 300 && s < 400:
		return ClassRedirect
	case s >= 400 && s < 500:
		return ClassClient
	}
	return ClassServer
}

// problems counts failed attempts by problem. The results say what exactly failed; attempts whose result is not known
// count by their class, so that all that failed is counted once.
func problems(errors []ErrorCount, a Attempts) map[Problem]int64 {
	counts, rest := map[Problem]int64{}, a
	for _, e := range errors {
		r := delivery.Result{Failure: e.Failure, Status: e.Status}
		if p := ProblemOf(r); p != "" {
			counts[p] += max(e.Count, 0)
			rest[classOf(r)] -= max(e.Count, 0)
		}
	}
	for class, p := range map[int]Problem{
		ClassRedirect: ProblemRedirect, ClassClient: ProblemRejected, ClassServer: ProblemServer,
		ClassNetwork: ProblemNetwork, ClassTimeout: ProblemTimeout, ClassBlocked: ProblemBlocked,
	} {
		counts[p] += max(rest[class], 0)
	}
	return counts
}

// dominant is the most frequent problem and its count.
func dominant(errors []ErrorCount, a Attempts) (most Problem, n int64) {
	counts := problems(errors, a)
	for _, p := range Problems() {
		if counts[p] > n {
			most, n = p, counts[p]
		}
	}
	return most, n
}
