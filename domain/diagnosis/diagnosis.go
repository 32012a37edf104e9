// Package diagnosis says in plain words what happened to a delivery, what to do about it, and what happens next by itself.
package diagnosis

import (
	"fmt"
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
	LastStatus     int // HTTP; 0 where the last attempt had no answer
	LastFailure    delivery.Failure
	AcceptConflict bool            // a 409 counts as delivered
	Timeout        time.Duration   // of the endpoint; 0: not known
	Wait           *condition.Wait // why it waits; nil: it does not
}

// Diagnosis is what to tell about a delivery.
type Diagnosis struct {
	Problem health.Problem // empty: none
	Title   string         // what happened, in a few words
	Detail  string         // the same in a sentence or two
	Mend    string         // what a person can do; empty: nothing needs to be done
	Next    string         // what happens next by itself
}

// Of diagnoses a delivery.
func Of(f Facts) Diagnosis {
	var d Diagnosis
	if f.Attempts > 0 && f.Status != delivery.Delivered {
		d = attempt(f.Kind, delivery.Result{Failure: f.LastFailure, Status: f.LastStatus}, f.Timeout)
	}
	if f.Wait != nil && !f.Status.Terminal() {
		return waiting(*f.Wait, d)
	}
	switch f.Status {
	case delivery.Delivered:
		d = delivered(f)
	case delivery.Pending, delivery.Retrying, delivery.Held:
		// Its queue row has just gone, with its result or its endpoint.
		d.Title, d.Next = "Being processed", "Its outcome is shown within moments."
		if d.Detail == "" {
			d.Detail = "Its state is changing at this moment."
		}
	case delivery.Failed:
		d = failed(f, d)
	case delivery.Canceled:
		d = canceled(f, d)
	}
	return d
}

func delivered(f Facts) Diagnosis {
	d := Diagnosis{Title: "Delivered", Detail: fmt.Sprintf("The endpoint answered %d.", f.LastStatus), Next: "Nothing more happens. A replay sends the event again as a new delivery."}
	if f.Kind == endpoint.Kafka {
		d.Detail = ofKafka(delivery.Result{Status: 200}, 0).Detail
	}
	if f.LastStatus == 409 && f.AcceptConflict {
		d.Detail = "The endpoint answered 409: it had the event already, which counts as delivered here."
	}
	if f.Attempts > 1 {
		d.Detail += fmt.Sprintf(" It took %d attempts.", f.Attempts)
	}
	return d
}

// nexts are what happens next by itself to what waits, and what somebody can do to hasten it.
var nexts = map[condition.Reason]string{
	condition.Next:               "It is sent within moments.",
	condition.Retry:              "It is tried again by itself. Retry now sends it at once.",
	condition.Deferred:           "It is sent when it is due. Retry now sends it at once; cancel calls it off.",
	condition.Order:              "It is sent after the delivery before it has ended.",
	condition.RateLimit:          "It is sent by itself. A higher rate limit in the endpoint's settings sends it sooner.",
	condition.Concurrency:        "It is sent by itself. A higher limit of concurrent requests in the endpoint's settings sends it sooner.",
	condition.RetryAfter:         "It is sent by itself once the pause is over.",
	condition.Breaker:            "Waiting does not use up its retries. Retry now makes it the next probe, at once.",
	condition.NoWorker:           "It keeps its place, and is sent when a worker is back.",
	condition.OperatorPause:      "It keeps its place, and is sent when the operator ends the pause. You need not do anything.",
	condition.TenantSuspended:    "It keeps its place, and is sent when the operator resumes the tenant.",
	condition.EndpointPaused:     "It waits until the endpoint is resumed. Past the retention it fails as expired.",
	condition.EndpointUnverified: "It waits until the endpoint is verified. After 7 days it fails as expired.",
	condition.EndpointDisabled:   "It waits until the endpoint is resumed. Past the retention it fails as expired.",
	condition.Listener:           "It is sent when the program that listens connects.",
}

// mends are what a person does about a wait.
var mends = map[condition.Reason]string{
	condition.EndpointPaused:     "Resume the endpoint. You can then choose to deliver or drop what was held.",
	condition.EndpointUnverified: "Verify the endpoint.",
	condition.EndpointDisabled:   "Fix the cause, which the endpoint's page names, and resume the endpoint.",
	condition.Listener:           "Run posthorn listen.",
}

// waiting is what is told of a delivery that waits. What its last attempt came to stays named.
func waiting(w condition.Wait, last Diagnosis) Diagnosis {
	d := Diagnosis{Problem: last.Problem, Title: w.Title(), Detail: w.Detail(), Mend: mends[w.Reason], Next: nexts[w.Reason]}
	if w.Reason == condition.Retry && last.Title != "" {
		d.Title, d.Detail, d.Mend = last.Title, last.Detail, last.Mend
		return d
	}
	if w.Reason == condition.Breaker {
		d.Mend = last.Mend
	}
	if last.Detail != "" {
		d.Detail += " Its last attempt: " + last.Detail
	}
	return d
}

func failed(f Facts, d Diagnosis) Diagnosis {
	switch f.Reason {
	case delivery.Exhausted:
		d.Next = fmt.Sprintf("Nothing more happens: all %d attempts of the schedule were made. Mend the cause, then replay it.", f.Attempts)
	case delivery.Rejected:
		d.Next = "Nothing more happens: the endpoint is set to fail at once on such an answer. Mend the cause, then replay it."
	case delivery.Gone:
		d.Next = "Nothing more happens: a 410 says that the endpoint is gone for good, and disables it."
	case delivery.Expired:
		d = Diagnosis{
			Problem: d.Problem, Title: "Expired", Detail: "The event left the retention before it could be delivered.",
			Mend: "Emit the event again if it still matters.", Next: "Nothing more happens: there is nothing left to send.",
		}
	case delivery.EndpointDeleted:
		d = deleted(d)
	case delivery.Internal:
		d = attempt(f.Kind, delivery.Result{Failure: delivery.FailInternal}, 0)
		d.Next = "Nothing more happens. Mend the cause, then replay it."
	default:
		d.Next = "Nothing more happens. A replay sends the event again as a new delivery."
	}
	if d.Title == "" {
		d.Title, d.Detail = "Failed", "It was given up."
	}
	return d
}

func deleted(last Diagnosis) Diagnosis {
	return Diagnosis{
		Problem: last.Problem, Title: "Endpoint deleted", Detail: "Its endpoint was deleted while it waited.",
		Mend: "Create a new endpoint, and replay the event to it.", Next: "Nothing more happens.",
	}
}

func canceled(f Facts, last Diagnosis) Diagnosis {
	if f.Reason == delivery.EndpointDeleted {
		return deleted(last)
	}
	d := Diagnosis{Title: "Canceled", Detail: "Somebody called it off before it was delivered.", Next: "Nothing more happens. A replay sends the event as a new delivery."}
	if f.Attempts > 0 && last.Title != "" {
		d.Problem = last.Problem
		d.Detail = fmt.Sprintf("Somebody called it off after %s. Of the last one: %s", many(f.Attempts, "attempt"), last.Detail)
	}
	return d
}

func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
