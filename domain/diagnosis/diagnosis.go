// Package diagnosis says in plain words what happened to a delivery, what to do about it, and what happens next by itself
// (DESIGN sections 6 and 12).
package diagnosis

import (
	"fmt"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/pause"
)

// Facts are what is known of a delivery.
type Facts struct {
	Kind           endpoint.Kind   // of the endpoint; empty: deleted, and not known
	Status         delivery.Status // as shown: held where its endpoint receives nothing
	Reason         delivery.Reason
	Attempts       int
	LastStatus     int // HTTP; 0 where the last attempt had no answer
	LastFailure    delivery.Failure
	Endpoint       endpoint.Status // empty: deleted
	AcceptConflict bool            // a 409 counts as delivered
	Timeout        time.Duration   // of the endpoint; 0: not known
	Scheduled      bool            // never tried, and not due before a time that its event names
	Paused         pause.Scope     // what an operator has paused of which it is a part; empty: nothing
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
	if f.Paused != "" && (f.Status == delivery.Pending || f.Status == delivery.Retrying) {
		return paused(f, d)
	}
	switch f.Status {
	case delivery.Delivered:
		d = delivered(f)
	case delivery.Pending:
		d = pending(f)
	case delivery.Retrying:
		d.Next = "It is tried again by the endpoint's schedule. Press retry now once the cause is mended, to go at once."
	case delivery.Held:
		d = held(f, d)
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

func pending(f Facts) Diagnosis {
	if f.Scheduled {
		return Diagnosis{Title: "Scheduled", Detail: "The event asked not to be delivered before a time that is still to come.", Next: "It is sent when it is due. Retry now sends it at once; cancel calls it off."}
	}
	return Diagnosis{
		Title: "Waiting for its turn", Detail: "It has not been sent yet: it waits for a free place at its endpoint.",
		Next: "It is sent as soon as the endpoint's limits, its order and its breaker allow it.",
	}
}

// paused is what waits for operators; what its last attempt came to stays named.
func paused(f Facts, last Diagnosis) Diagnosis {
	d := Diagnosis{
		Problem: last.Problem, Title: "Waiting: dispatch is paused by the operator", Detail: f.Paused.Sentence(),
		Next: "It keeps its place, and is sent when the operator lets dispatch go on. You need not do anything.",
	}
	if f.Paused == pause.Suspended {
		d.Title, d.Next = "Waiting: the tenant is suspended", "It keeps its place, and is sent when the operator resumes the tenant."
	}
	if last.Detail != "" {
		d.Detail += " Of its last attempt: " + last.Detail
	}
	return d
}

func held(f Facts, last Diagnosis) Diagnosis {
	d := Diagnosis{Title: "Held", Problem: last.Problem, Next: "It waits, and is sent when the endpoint receives again. Past the retention it fails as expired."}
	switch f.Endpoint {
	case endpoint.Unverified:
		d.Detail, d.Mend = "Its endpoint has not been verified yet, so that nothing is sent to it.", "Let the endpoint answer its verification."
	case endpoint.Paused:
		d.Detail, d.Mend = "Somebody paused its endpoint, so that nothing is sent to it.", "Resume the endpoint. What was held can be delivered or dropped then."
	case endpoint.Disabled:
		d.Detail, d.Mend = "Its endpoint was disabled after failing for long, so that nothing is sent to it.", "Mend the cause, which the endpoint's page names, and resume the endpoint."
	default:
		d.Detail = "Its endpoint receives nothing now."
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
