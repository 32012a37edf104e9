package diagnosis

import (
	"fmt"
	"net/http"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

// rejections are the answers of which more can be said than that they are a 4xx.
var rejections = map[int]struct{ title, detail, fix string }{
	400: {"Rejected as malformed", "The endpoint returned 400: it couldn't parse the request.", "Compare the request's body with what the receiver expects, and check the receiver's log."},
	401: {"Not authorized", "The endpoint returned 401: it didn't accept the request as authentic.", "Check that the receiver verifies the raw body with this endpoint's secret, and whether it also wants credentials, which the endpoint's authentication can send. The signature debugger shows which part fails."},
	403: {"Forbidden", "The endpoint returned 403: the receiver, or a firewall in front of it, rejected the request.", "Check the secret that the receiver verifies with, and whether a firewall or bot filter blocks our requests."},
	404: {"URL not found", "The endpoint returned 404: its server has no route for this path.", "Check the path in the endpoint's URL, and that the receiver's route accepts POST."},
	405: {"Method not allowed", "The endpoint returned 405: this path doesn't accept POST.", "Change the receiver's route to accept POST."},
	406: {"Not acceptable", "The endpoint returned 406: it can't produce a response in the requested format.", "Return any 2xx, with any content type."},
	409: {"Conflict", "The endpoint returned 409: it already has this event, or can't process it now.", "If 409 means \"already received\", turn on \"Treat 409 as delivered\" in the endpoint's settings."},
	410: {"Gone", "The endpoint returned 410: it no longer exists and wants no more events.", "If that was a mistake, fix the receiver, then resume the endpoint."},
	411: {"Length required", "The endpoint returned 411, although the request states its length.", "Check the proxy in front of the receiver."},
	413: {"Body too large", "The endpoint returned 413: the body is larger than it accepts.", "Raise the body limit of the receiver and of the proxy in front of it."},
	414: {"URL too long", "The endpoint returned 414: its URL is longer than its server accepts.", "Shorten the endpoint's URL."},
	415: {"Content type rejected", "The endpoint returned 415: it doesn't accept application/json.", "Change the receiver's route to accept application/json."},
	422: {"Rejected as invalid", "The endpoint returned 422: it parsed the request and rejected its content.", "Check the response below, and compare the event's data with what the receiver expects."},
	426: {"Upgrade required", "The endpoint returned 426: it requires another protocol.", "Enable HTTP/1.1 on the server."},
	451: {"Rejected for legal reasons", "The endpoint returned 451.", "Contact whoever runs the endpoint."},
}

// servers are the answers of which more can be said than that they are a 5xx.
var servers = map[int]struct{ detail, fix string }{
	500: {"The endpoint returned 500: its application failed on this request.", "Check the receiver's log at the time of the attempt."},
	501: {"The endpoint returned 501: its server doesn't support this request.", "Check that the receiver's route accepts POST."},
	502: {"The endpoint returned 502: its proxy got no valid response from the application.", "Check that the application behind the proxy is running, and its log at the time of the attempt."},
	503: {"The endpoint returned 503: it is overloaded or in maintenance.", "Wait until it is back. If the response has a Retry-After header, all the endpoint's deliveries wait that long."},
	504: {"The endpoint returned 504: its proxy timed out waiting for the application.", "Respond first, process later: store the event, return a 2xx immediately, and do the work afterward."},
	507: {"The endpoint returned 507: it has no storage left.", "Free up storage on the receiving server."},
	520: {"The endpoint returned 520: its proxy got a response that it couldn't read.", "Check the log of the application behind the proxy."},
	521: {"The endpoint returned 521: its proxy found the server down.", "Check that the server behind the proxy is running and accepts connections from the proxy."},
	522: {"The endpoint returned 522: its proxy couldn't connect to the server in time.", "Check that the server behind the proxy is running and accepts connections from the proxy."},
	524: {"The endpoint returned 524: its proxy timed out waiting for the server.", "Respond first, process later: store the event, return a 2xx immediately, and do the work afterward."},
	525: {"The endpoint returned 525: the TLS handshake between its proxy and the server failed.", "Check the certificate of the server behind the proxy."},
	526: {"The endpoint returned 526: its proxy rejected the server's certificate.", "Check the certificate of the server behind the proxy."},
}

// Advice says what happened to attempts with a result, and what to do about it; empty if they succeeded.
func Advice(kind endpoint.Kind, r delivery.Result) string {
	if !kind.Broker() {
		return health.ProblemOf(r).Action()
	}
	if d := ofBroker(kind, r, 0); d.Problem != "" {
		return d.Detail + " " + d.Fix
	}
	return ""
}

// Attempt diagnoses the result of one attempt to reach an endpoint of a kind, whatever became of its delivery. timeout
// is the endpoint's, 0 where it is not known. A 2xx is no problem. A filter in front of the receiver is named by what
// the response shows.
func Attempt(kind endpoint.Kind, r delivery.Result, timeout time.Duration, response Response) Diagnosis {
	return filtered(attempt(kind, r, timeout), kind, r, response)
}

func attempt(kind endpoint.Kind, r delivery.Result, timeout time.Duration) Diagnosis {
	if kind.Broker() {
		return ofBroker(kind, r, timeout)
	}
	problem := health.ProblemOf(r)
	w := problem.Words()
	d := Diagnosis{Problem: problem, Title: w.Title, Detail: w.Detail, Fix: w.Fix}
	switch problem {
	case "":
		return Diagnosis{Title: "Delivered", Detail: fmt.Sprintf("The endpoint returned %d.", r.Status)}
	case health.ProblemRedirect:
		d.Detail = fmt.Sprintf("The endpoint returned %d, a redirect. Redirects are never followed, because a signed request must not be forwarded.", r.Status)
	case health.ProblemTimeout:
		d.Detail = timedOut(d.Detail, r, timeout)
	case health.ProblemServer:
		d.Detail = fmt.Sprintf("The endpoint returned %s: a server error.", answer(r.Status))
		if w, ok := servers[r.Status]; ok {
			d.Detail, d.Fix = w.detail, w.fix
		}
	case health.ProblemAuth, health.ProblemURL, health.ProblemRejected:
		d.Title, d.Detail = "Rejected", fmt.Sprintf("The endpoint returned %s: it rejected the request.", answer(r.Status))
		d.Fix = "Check the response below, and the receiver's log at the time of the attempt."
		if w, ok := rejections[r.Status]; ok {
			d.Title, d.Detail, d.Fix = w.title, w.detail, w.fix
		}
	}
	return d
}

// timedOut says what timed out.
func timedOut(detail string, r delivery.Result, timeout time.Duration) string {
	switch {
	case r.Failure == delivery.FailNone:
		return "The endpoint returned 408: it timed out waiting for the request."
	case timeout > 0:
		return fmt.Sprintf("The endpoint accepted the request and didn't respond within its timeout of %d seconds.", int(timeout.Seconds()))
	}
	return detail
}

func answer(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("%d (%s)", status, text)
	}
	return fmt.Sprint(status)
}
