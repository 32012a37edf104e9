package diagnosis

import (
	"fmt"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

type said struct{ title, detail, fix string }

// brokerWords is what is said of attempts to write to a kind of broker.
type brokerWords struct {
	failures  map[health.Problem]said // where there was no response
	answers   map[int]said            // by the HTTP statuses as which responses count
	other     said                    // of any other response
	late      string                  // what did not happen in time
	place     string                  // what is written to
	checks    string                  // whose health is to be checked, as a possessive
	delivered string
}

var brokers = map[endpoint.Kind]brokerWords{endpoint.Kafka: kafkaWords, endpoint.RabbitMQ: rabbitMQWords, endpoint.SQS: sqsWords, endpoint.S3: s3Words}

// anyBroker is what is said of failures that no kind of broker has words for.
var anyBroker = map[health.Problem]said{
	health.ProblemToken: { // no endpoint of these kinds has one
		"No access token", "The authorization server gave no access token, so nothing was sent.",
		"Check the endpoint's authentication.",
	},
	health.ProblemProxy: { // requests of these kinds go through none
		"The platform's proxy failed", "The platform's proxy failed, so nothing was sent.",
		"Contact the operator of this platform.",
	},
	health.ProblemInternal: {
		"Not sent", "The message couldn't be rendered or signed, so nothing was sent.",
		"Check the endpoint's format and secrets. If they are correct, contact the operator of this platform.",
	},
}

// ofBroker diagnoses an attempt to write to a broker.
func ofBroker(kind endpoint.Kind, r delivery.Result, timeout time.Duration) Diagnosis {
	problem, words := health.ProblemOf(r), brokers[kind]
	if problem == "" {
		return Diagnosis{Title: "Delivered", Detail: words.delivered}
	}
	w, ok := words.failures[problem]
	if !ok {
		w, ok = anyBroker[problem]
	}
	if r.Failure == delivery.FailNone {
		if w, ok = words.answers[r.Status]; !ok {
			w = words.other
		}
	} else if !ok { // in time
		within := " in time"
		if timeout > 0 {
			within = fmt.Sprintf(" within the endpoint's timeout of %d seconds", int(timeout.Seconds()))
		}
		w.title = "Timed out"
		w.detail = words.late + within + ". It could be in the " + words.place + " anyway; the next attempt carries the same id."
		w.fix = "Check " + words.checks + " health and load, or raise the endpoint's timeout."
	}
	return Diagnosis{Problem: problem, Title: w.title, Detail: w.detail, Fix: w.fix}
}
