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
	{ProblemDNS, "Check the host name in the endpoint's URL and its DNS records: no address was found for it."},
	{ProblemTLS, "Check the TLS certificate of the endpoint's server: it must be in date, issued for the host name, and sent with its whole chain."},
	{ProblemConnect, "Check that the endpoint's server is running and that its firewall lets connections in on the URL's port: none came about."},
	{ProblemBlocked, "Give the endpoint a public address: its host name leads to one that deliveries may not go to."},
	{ProblemAuth, "Check the secret with which the endpoint verifies signatures, and the authorisation that it asks for: it answers 401 or 403."},
	{ProblemURL, "Check the endpoint's URL: its server answers 404 or 410, so nothing receives events there."},
	{ProblemServer, "Look into the log of the endpoint's server at the time of an attempt: it answers with errors of its own (5xx)."},
	{ProblemTimeout, "Answer first and work later: store the event, answer with a 2xx at once, and do the work afterwards."},
	{ProblemThrottled, "Raise the limit of the endpoint's server, or lower the endpoint's rate_limit here: it answers 429 (too many requests)."},
	{ProblemRedirect, "Give the endpoint the URL that finally answers: redirects (3xx) are never followed."},
	{ProblemReset, "Check the proxy or load balancer before the endpoint's server: connections break before the answer is whole."},
	{ProblemProtocol, "Check what listens at the endpoint's URL: its answers are not HTTP, or their headers are too large."},
	{ProblemNetwork, "Check the host name, the TLS certificate and the firewall of the endpoint's server: no request came through. The attempts say which it is."},
	{ProblemRejected, "Look at the answers in the failed deliveries: the endpoint's server rejects what it is sent (4xx)."},
	{ProblemInternal, "Check the endpoint's format and secrets: Posthorn could not render or sign deliveries. If they are in order, tell the operator of this platform."},
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

// ProblemOf says which problem the result of a failed attempt shows. What it calls no problem is a 2xx.
func ProblemOf(r delivery.Result) Problem {
	switch r.Failure {
	case delivery.FailDNS:
		return ProblemDNS
	case delivery.FailConnect:
		return ProblemConnect
	case delivery.FailTLS:
		return ProblemTLS
	case delivery.FailTimeout:
		return ProblemTimeout
	case delivery.FailReset:
		return ProblemReset
	case delivery.FailBlocked:
		return ProblemBlocked
	case delivery.FailProtocol:
		return ProblemProtocol
	case delivery.FailInternal:
		return ProblemInternal
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

// problems counts failed attempts by problem. The results say what exactly failed; attempts whose result is not known count by
// their class, so that all that failed is counted once.
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
