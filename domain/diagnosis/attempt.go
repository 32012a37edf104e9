package diagnosis

import (
	"fmt"
	"net/http"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

// words are what is said of each problem of an attempt.
var words = map[health.Problem]struct{ title, detail, mend string }{
	health.ProblemDNS: {
		"The host name was not found", "The name in the endpoint's URL has no address, or its name server did not answer.",
		"Check the spelling of the host name and its DNS records. If you have just changed them, give them some minutes.",
	},
	health.ProblemConnect: {
		"No connection", "Nothing accepted a connection at the endpoint's host and port.",
		"Check that the server runs, that it listens on the URL's port, and that its firewall lets connections in from the internet.",
	},
	health.ProblemTLS: {
		"No secure connection", "The server's TLS certificate or handshake was not accepted. The attempt says why.",
		"Check that the certificate is in date, issued for this host name, sent with its whole chain, and that TLS 1.2 or newer is on.",
	},
	health.ProblemReset: {
		"The connection broke", "The connection was closed before the answer was whole.",
		"Look at the proxy or load balancer before the server, and whether the program behind it crashed at this time.",
	},
	health.ProblemBlocked: {
		"Blocked address", "The host name leads to an address that deliveries may not go to, such as one of a private network.",
		"Give the endpoint a public address. To receive on your own machine, use a tunnel or the inbox.",
	},
	health.ProblemProtocol: {
		"Not an HTTP answer", "What came back could not be read as HTTP/1.1, or its headers were over 64 KiB.",
		"Check what listens at the endpoint's URL and port.",
	},
	health.ProblemInternal: {
		"Not sent", "Posthorn could not render or sign the request, so that nothing was sent.",
		"Check the endpoint's format and secrets. If they are in order, tell the operator of this platform.",
	},
	health.ProblemThrottled: {
		"Too many requests", "The endpoint answered 429: it takes no more for now. The whole endpoint waits as long as it asks for.",
		"Raise the limit of the receiving server, or lower the endpoint's rate limit here.",
	},
	health.ProblemRedirect: {
		"Redirected", "The endpoint answered with a redirect. Redirects are never followed, since a signed request must not be passed on.",
		"Set the endpoint's URL to where it finally answers; often that is https instead of http, or with a slash at its end.",
	},
}

// rejections are the answers of which more can be said than that they are a 4xx.
var rejections = map[int]struct{ title, detail, mend string }{
	400: {"Rejected as malformed", "The endpoint answered 400: it could not make sense of the request.", "Compare the request's body with what the receiver expects, and look into the receiver's log."},
	401: {"Not authorised", "The endpoint answered 401: it did not accept the request as coming from us.", "Check that the receiver verifies with this endpoint's secret and over the raw body, and whether it asks for a header that is not set here. The signature debugger shows which part fails."},
	403: {"Forbidden", "The endpoint answered 403: it, or a firewall before it, refused the request.", "Check the secret with which the receiver verifies, and whether a firewall or bot filter blocks our requests."},
	404: {"Nothing at this URL", "The endpoint answered 404: its server has nothing at this path.", "Check the endpoint's URL, its path above all, and that the receiver's route takes POST."},
	405: {"Method not allowed", "The endpoint answered 405: its path does not take POST.", "Let the receiver's route take POST."},
	406: {"Not acceptable", "The endpoint answered 406: it wants to answer in another form than is asked for.", "Answer any 2xx, whatever the content type."},
	409: {"Conflict", "The endpoint answered 409: it says that it had this event already, or that it can't take it now.", "If a 409 means \"I had it already\", let it count as delivered in the endpoint's settings."},
	410: {"Gone", "The endpoint answered 410: it is gone for good and wants nothing more.", "If that was a mistake, mend the receiver, then resume the endpoint."},
	411: {"Length required", "The endpoint answered 411, although the request says its length.", "Look at the proxy before the receiver."},
	413: {"Body too large", "The endpoint answered 413: the body is larger than it takes.", "Raise the body limit of the receiver and of the proxy before it."},
	414: {"URL too long", "The endpoint answered 414: its URL is longer than its server takes.", "Shorten the endpoint's URL."},
	415: {"Content type refused", "The endpoint answered 415: it does not take application/json.", "Let the receiver's route take application/json."},
	422: {"Rejected as invalid", "The endpoint answered 422: it read the request and did not accept its content.", "Look at the answer below, and compare the event's data with what the receiver expects."},
	426: {"Upgrade required", "The endpoint answered 426: it wants another protocol.", "Let the server take HTTP/1.1."},
	451: {"Refused for legal reasons", "The endpoint answered 451.", "Ask those who run the endpoint."},
}

// servers are the answers of which more can be said than that they are a 5xx.
var servers = map[int]struct{ detail, mend string }{
	500: {"The endpoint answered 500: the program behind it failed on this request.", "Look into the receiver's log at the time of the attempt."},
	501: {"The endpoint answered 501: its server does not know what to do with the request.", "Check that the receiver's route takes POST."},
	502: {"The endpoint answered 502: the proxy before it had no good answer from the program behind.", "Check that the program behind the proxy runs, and its log at the time of the attempt."},
	503: {"The endpoint answered 503: it is overloaded, or in maintenance.", "Wait until it is back. Where it says so with Retry-After, the whole endpoint waits that long."},
	504: {"The endpoint answered 504: the proxy before it waited in vain for the program behind.", "Answer first and work later: store the event, answer with a 2xx at once, and do the work afterwards."},
	507: {"The endpoint answered 507: it has no room left.", "Make room on the receiving server."},
	520: {"The endpoint answered 520: the proxy before it got an answer that it could not read.", "Look into the log of the program behind the proxy."},
	521: {"The endpoint answered 521: the proxy before it found the server down.", "Check that the server behind the proxy runs and lets the proxy in."},
	522: {"The endpoint answered 522: the proxy before it got no connection to the server in time.", "Check that the server behind the proxy runs and lets the proxy in."},
	524: {"The endpoint answered 524: the proxy before it waited in vain for the server.", "Answer first and work later: store the event, answer with a 2xx at once, and do the work afterwards."},
	525: {"The endpoint answered 525: the proxy before it had no TLS session with the server.", "Check the certificate of the server behind the proxy."},
	526: {"The endpoint answered 526: the proxy before it did not accept the server's certificate.", "Check the certificate of the server behind the proxy."},
}

// Attempt diagnoses the result of one attempt to reach an endpoint of a kind, whatever became of its delivery. timeout is the endpoint's, 0 where it is
// not known. A 2xx is no problem.
func Attempt(kind endpoint.Kind, r delivery.Result, timeout time.Duration) Diagnosis {
	return attempt(kind, r, timeout)
}

func attempt(kind endpoint.Kind, r delivery.Result, timeout time.Duration) Diagnosis {
	if kind == endpoint.Kafka {
		return ofKafka(r, timeout)
	}
	problem := health.ProblemOf(r)
	d := Diagnosis{Problem: problem}
	if w, ok := words[problem]; ok {
		d.Title, d.Detail, d.Mend = w.title, w.detail, w.mend
		if problem == health.ProblemRedirect {
			d.Detail = fmt.Sprintf("The endpoint answered %d, a redirect. Redirects are never followed, since a signed request must not be passed on.", r.Status)
		}
		return d
	}
	if problem == "" {
		return Diagnosis{Title: "Delivered", Detail: fmt.Sprintf("The endpoint answered %d.", r.Status)}
	}
	if problem == health.ProblemTimeout {
		return timedOut(d, r, timeout)
	}
	if problem == health.ProblemServer {
		d.Title = "The server failed"
		d.Detail, d.Mend = fmt.Sprintf("The endpoint answered %s: an error of its own.", answer(r.Status)), servers[500].mend
		if w, ok := servers[r.Status]; ok {
			d.Detail, d.Mend = w.detail, w.mend
		}
		return d
	}
	d.Title, d.Detail = "Rejected", fmt.Sprintf("The endpoint answered %s: it rejects the request.", answer(r.Status))
	d.Mend = "Look at the answer below, and into the receiver's log at the time of the attempt."
	if w, ok := rejections[r.Status]; ok {
		d.Title, d.Detail, d.Mend = w.title, w.detail, w.mend
	}
	return d
}

func timedOut(d Diagnosis, r delivery.Result, timeout time.Duration) Diagnosis {
	d.Title, d.Detail = "Timed out", "The endpoint took the request and gave no whole answer in time."
	switch {
	case r.Failure == delivery.FailNone:
		d.Detail = "The endpoint answered 408: it waited in vain for the whole request."
	case timeout > 0:
		d.Detail = fmt.Sprintf("The endpoint took the request and gave no whole answer within its %d seconds.", int(timeout.Seconds()))
	}
	d.Mend = "Answer first and work later: store the event, answer with a 2xx at once, and do the work afterwards."
	return d
}

func answer(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("%d (%s)", status, text)
	}
	return fmt.Sprint(status)
}
