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
	ProblemToken     Problem = "token"    // the authorization server gave no access token
	ProblemProxy     Problem = "proxy"    // the platform's own proxy failed
)

// Words are what is said of a problem to people.
type Words struct {
	Cause  string // to follow "because": "it returns 401 or 403"
	Title  string // what happened to an attempt, in a few words
	Detail string // the same in a sentence
	Fix    string // what a person does about it
}

// problems are in the order in which equally frequent problems are named: what keeps everything out comes first.
var problems = []struct {
	Problem
	Words
}{
	{ProblemDNS, Words{
		"its host name was not found",
		"The host name was not found",
		"The host name in the endpoint's URL has no address, or its name server didn't respond.",
		"Check the spelling of the host name and its DNS records. If you just changed them, wait a few minutes.",
	}},
	{ProblemTLS, Words{
		"no TLS connection to it succeeds",
		"No secure connection",
		"The TLS handshake failed, or the server's certificate isn't valid. The attempt says why.",
		"Check that the certificate hasn't expired, is issued for this host name, and is sent with its full chain, that TLS 1.2 or newer is enabled, and, if it asks for a client certificate, that the endpoint has one that it accepts.",
	}},
	{ProblemConnect, Words{
		"its server accepts no connection",
		"No connection",
		"Nothing accepted a connection at the endpoint's host and port.",
		"Check that the server is running, listens on the URL's port, and that its firewall accepts connections from the internet.",
	}},
	{ProblemBlocked, Words{
		"its host name resolves to a blocked address",
		"Blocked address",
		"The host name resolves to an address that deliveries can't be sent to, such as one in a private network.",
		"Use a public address. To receive on your own machine, use posthorn listen, a tunnel, or a test inbox.",
	}},
	{ProblemAuth, Words{
		"it returns 401 or 403",
		"Not authorized",
		"The endpoint returned 401 or 403.",
		"Check the secret that it verifies signatures with, and the authorization that it requires.",
	}},
	{ProblemURL, Words{
		"it returns 404 or 410",
		"URL not found",
		"The endpoint returned 404 or 410: nothing receives events at this URL.",
		"Check the endpoint's URL.",
	}},
	{ProblemServer, Words{
		"it returns server errors (5xx)",
		"Server error",
		"The endpoint returned server errors (5xx).",
		"Check the receiver's log at the time of the attempt.",
	}},
	{ProblemTimeout, Words{
		"it does not respond in time",
		"Timed out",
		"The endpoint accepted the request and didn't respond in time.",
		"Respond first, process later: store the event, return a 2xx immediately, and do the work afterward.",
	}},
	{ProblemThrottled, Words{
		"it returns 429 (too many requests)",
		"Too many requests",
		"The endpoint returned 429: it accepts no more requests for now. All its deliveries wait for as long as it asks.",
		"Raise the receiving server's limit, or lower the endpoint's rate limit (rate_limit) here.",
	}},
	{ProblemRedirect, Words{
		"it returns redirects (3xx)",
		"Redirected",
		"The endpoint returned a redirect. Redirects are never followed, because a signed request must not be forwarded.",
		"Change the endpoint's URL to the redirect's target. Often only https or a trailing slash is missing.",
	}},
	{ProblemReset, Words{
		"connections to it close early",
		"Connection closed early",
		"The connection was closed before the response was complete.",
		"Check the proxy or load balancer in front of the server, and whether the application crashed at this time.",
	}},
	{ProblemProtocol, Words{
		"its responses aren't valid HTTP",
		"Not an HTTP response",
		"The response isn't valid HTTP/1.1, or its headers are larger than 64 KiB. The attempt says what is wrong.",
		"Check what listens at the endpoint's URL and port, and the headers that it sends.",
	}},
	{ProblemNetwork, Words{
		"no request reaches it",
		"Not reached",
		"No request reached the endpoint.",
		"Check its host name, TLS certificate, and firewall; the attempts say which of them fails.",
	}},
	{ProblemRejected, Words{
		"it rejects requests (4xx)",
		"Rejected",
		"The endpoint rejected requests (4xx).",
		"Check the responses in its failed deliveries.",
	}},
	{ProblemToken, Words{
		"its authorization server gives no access token",
		"No access token",
		"The token endpoint of the endpoint's authentication gave no access token, so nothing was sent. The attempt says why.",
		"Check the token URL, the client id, and the client's secret or key in the endpoint's authentication, and which scopes and audience the client is allowed.",
	}},
	{ProblemProxy, Words{
		"the platform's proxy fails",
		"The platform's proxy failed",
		"Requests leave this platform through a proxy, which failed, so nothing was sent. The attempt says why.",
		"Nothing is wrong with the endpoint. The delivery is sent again soon and uses up no attempt of its schedule. The platform's operators are told.",
	}},
	{ProblemInternal, Words{
		"requests to it can't be rendered or signed",
		"Not sent",
		"The request couldn't be rendered or signed, so nothing was sent.",
		"Check the endpoint's format and secrets. If they are correct, contact the operator of this platform.",
	}},
}

// Problems lists the problems.
func Problems() []Problem {
	out := make([]Problem, len(problems))
	for i, w := range problems {
		out[i] = w.Problem
	}
	return out
}

// Words are what is said of the problem; empty for none.
func (p Problem) Words() Words {
	for _, w := range problems {
		if w.Problem == p {
			return w.Words
		}
	}
	return Words{}
}

// Action says what happened and what to do about it; empty for no problem.
func (p Problem) Action() string {
	if w := p.Words(); w.Fix != "" {
		return w.Detail + " " + w.Fix
	}
	return ""
}

// problemOfFailure is what an attempt without a response shows.
var problemOfFailure = map[delivery.Failure]Problem{
	delivery.FailDNS:      ProblemDNS,
	delivery.FailConnect:  ProblemConnect,
	delivery.FailTLS:      ProblemTLS,
	delivery.FailTimeout:  ProblemTimeout,
	delivery.FailReset:    ProblemReset,
	delivery.FailBlocked:  ProblemBlocked,
	delivery.FailProtocol: ProblemProtocol,
	delivery.FailInternal: ProblemInternal,
	delivery.FailToken:    ProblemToken,
	delivery.FailProxy:    ProblemProxy,
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

// Result is what the attempts ended with.
func (e ErrorCount) Result() delivery.Result {
	return delivery.Result{Failure: e.Failure, Status: e.Status}
}
