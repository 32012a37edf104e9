// Package diagnosis says in plain words what happened to a delivery, what to do about it, and what happens next by
// itself.
package diagnosis

import (
	"fmt"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

// Facts are what is known of a delivery.
type Facts struct {
	Kind           endpoint.Kind   // of the endpoint; empty: deleted, and not known
	Status         delivery.Status // as shown: held where its endpoint receives nothing
	Reason         delivery.Reason
	Attempts       int
	Last           delivery.Result // of the last attempt
	Response       Response        // of the last attempt, where it was read
	AcceptConflict bool            // a 409 counts as delivered
	Timeout        time.Duration   // of the endpoint; 0: not known
	Wait           condition.Wait  // why it waits; empty: it does not
	Expires        bool            // it is sent until a time, and not after it
}

// Diagnosis is what to tell about a delivery.
type Diagnosis struct {
	Problem health.Problem // empty: none
	Title   string         // what happened, in a few words
	Detail  string         // the same in a sentence or two
	Fix     string         // what a person can do; empty: nothing needs to be done
	Next    string         // what happens next by itself
}

// Of diagnoses a delivery.
func Of(f Facts) Diagnosis {
	var d Diagnosis
	if f.Attempts > 0 && f.Status != delivery.Delivered {
		d = Attempt(f.Kind, f.Last, f.Timeout, f.Response)
	}
	if f.Wait.Reason != "" && !f.Status.Terminal() {
		d = waiting(f.Wait, d)
		if f.Expires {
			d.Next = strings.TrimSpace(d.Next + " It is not sent after its expiry.")
		}
		return d
	}
	switch f.Status {
	case delivery.Delivered:
		d = delivered(f)
	case delivery.Pending, delivery.Retrying, delivery.Held:
		// Its queue row has just gone, with its result or its endpoint.
		d.Title, d.Next = "Being processed", "The outcome appears here in a moment."
		if d.Detail == "" {
			d.Detail = "Its status is changing right now."
		}
	case delivery.Failed:
		d = failed(f, d)
	case delivery.Canceled, delivery.Expired:
		d = canceled(f, d)
	}
	return d
}

func delivered(f Facts) Diagnosis {
	d := Diagnosis{Title: "Delivered", Detail: fmt.Sprintf("The endpoint returned %d.", f.Last.Status), Next: "No further attempts. A replay sends the event again as a new delivery."}
	if f.Kind.Broker() {
		d.Detail = ofBroker(f.Kind, delivery.Result{Status: 200}, 0).Detail
	}
	if f.Last.Status == 409 && f.AcceptConflict {
		d.Detail = "The endpoint returned 409: it already has the event. This endpoint treats 409 as delivered."
	}
	if f.Attempts > 1 {
		d.Detail += fmt.Sprintf(" It needed %d attempts.", f.Attempts)
	}
	return d
}

// nexts are what happens next by itself to what waits, and what somebody can do to hasten it.
var nexts = map[condition.Reason]string{
	condition.InFlight:           "The outcome appears here when the response arrives, or at the endpoint's timeout.",
	condition.Next:               "It is sent in a moment.",
	condition.Retry:              "It is retried automatically. Retry now sends it immediately.",
	condition.Deferred:           "It is sent when it is due. Retry now sends it immediately; Cancel stops it.",
	condition.Order:              "It is sent once the earlier delivery is finished.",
	condition.RateLimit:          "It is sent automatically. A higher rate limit in the endpoint's settings sends it sooner.",
	condition.Concurrency:        "It is sent automatically. A higher limit of concurrent requests in the endpoint's settings sends it sooner.",
	condition.RetryAfter:         "It is sent automatically once the wait is over. Retry now sends it immediately.",
	condition.Breaker:            "Waiting doesn't use up its retries. Retry now sends it immediately as the next probe.",
	condition.NoWorker:           "It keeps its place, and is sent when a worker is back.",
	condition.OperatorPause:      "It keeps its place, and is sent when the operator ends the pause. No action is needed.",
	condition.TenantSuspended:    "It keeps its place, and is sent when the operator resumes the tenant.",
	condition.EndpointPaused:     "It waits until the endpoint is resumed. After the retention period it fails.",
	condition.EndpointUnverified: "It waits until the endpoint is verified. After 7 days it fails.",
	condition.EndpointDisabled:   "It waits until the endpoint is resumed. After the retention period it fails.",
	condition.Listener:           "It is sent when posthorn listen connects.",
	condition.Transformation:     "It is sent as soon as an edited transformation works for it. After the retention period it fails.",
}

// fixes are what a person does about a wait.
var fixes = map[condition.Reason]string{
	condition.EndpointPaused:     "Resume the endpoint. You can then choose to deliver or drop what was held.",
	condition.EndpointUnverified: "Verify the endpoint.",
	condition.EndpointDisabled:   "Fix the cause shown on the endpoint's page, then resume the endpoint.",
	condition.Listener:           "Run posthorn listen.",
	condition.Transformation:     "Edit the endpoint's transformation.",
}

// waiting is what is told of a delivery that waits. What its last attempt came to stays named.
func waiting(w condition.Wait, last Diagnosis) Diagnosis {
	d := Diagnosis{
		Problem: last.Problem,
		Title:   w.Title(),
		Detail:  w.Detail(),
		Fix:     fixes[w.Reason],
		Next:    nexts[w.Reason],
	}
	if w.Reason == condition.Retry && last.Title != "" {
		d.Title, d.Detail, d.Fix = last.Title, last.Detail, last.Fix
		return d
	}
	if w.Reason == condition.Breaker {
		d.Fix = last.Fix
	}
	if last.Detail != "" {
		d.Detail += " Last attempt: " + last.Detail
	}
	return d
}

func failed(f Facts, d Diagnosis) Diagnosis {
	switch f.Reason {
	case delivery.Exhausted:
		made := "the only attempt of the schedule was made"
		if f.Attempts > 1 {
			made = fmt.Sprintf("all %d attempts of the schedule were made", f.Attempts)
		}
		d.Next = "No more retries: " + made + ". Fix the cause, then replay."
	case delivery.Rejected:
		d.Next = "No more retries: this endpoint doesn't retry 4xx responses. Fix the cause, then replay."
	case delivery.Gone:
		d.Next = "No more retries: a 410 means that the endpoint wants no more events, so the endpoint is disabled."
	case delivery.RetentionEnded:
		d = Diagnosis{
			Problem: d.Problem,
			Title:   "Retention ended",
			Detail:  "The event's retention period ended before it could be delivered.",
			Fix:     "Emit the event again if it is still relevant.",
			Next:    "No further attempts: there is nothing left to send.",
		}
	case delivery.EndpointDeleted:
		d = deleted(d)
	case delivery.PayloadTooLarge:
		d = Diagnosis{
			Title:  "Payload too large",
			Detail: "The event's data is in object storage, and this endpoint doesn't accept a link to it.",
			Fix:    "Set the endpoint's large payloads to link, then replay.",
			Next:   "Nothing was sent. A replay sends the event again as a new delivery.",
		}
	case delivery.Internal:
		d = attempt(f.Kind, delivery.Result{Failure: delivery.FailInternal}, 0)
		d.Next = "No more retries. Fix the cause, then replay."
	default:
		d.Next = "No further attempts. A replay sends the event again as a new delivery."
	}
	if d.Title == "" {
		d.Title, d.Detail = "Failed", "It failed permanently."
	}
	return d
}

func deleted(last Diagnosis) Diagnosis {
	return Diagnosis{
		Problem: last.Problem,
		Title:   "Endpoint deleted",
		Detail:  "Its endpoint was deleted while it was waiting.",
		Fix:     "Create a new endpoint, and replay the event to it.",
		Next:    "No further attempts.",
	}
}

func canceled(f Facts, last Diagnosis) Diagnosis {
	if f.Reason == delivery.EndpointDeleted {
		return deleted(last)
	}
	d := Diagnosis{Title: "Canceled", Detail: "It was canceled before it was delivered.", Next: "No further attempts. A replay sends the event as a new delivery."}
	ended := "was canceled"
	if f.Status == delivery.Expired {
		d.Title, d.Detail, ended = "Expired", "It was not delivered before it expired.", "expired"
		d.Next = "No further attempts. A replay sends the event as a new delivery, which doesn't expire."
	}
	if f.Attempts > 0 && last.Title != "" {
		d.Problem = last.Problem
		d.Detail = fmt.Sprintf("It %s after %s. Last attempt: %s", ended, many(f.Attempts, "attempt"), last.Detail)
	}
	return d
}

func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
