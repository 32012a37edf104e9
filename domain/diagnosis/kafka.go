package diagnosis

import (
	"fmt"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

// kafkaFailures is what is said where a topic could not be written to at all.
var kafkaFailures = map[health.Problem]struct{ title, detail, mend string }{
	health.ProblemDNS: {
		"The host name was not found", "The name of a bootstrap server, or of a broker that the cluster names, has no address, or its name server did not answer.",
		"Check the bootstrap servers, and the names in the brokers' advertised.listeners: they must be resolvable on the internet.",
	},
	health.ProblemConnect: {
		"No connection", "No connection to a bootstrap server, or to a broker that the cluster names, came about.",
		"Check that the brokers run, that a firewall lets connections in, and that advertised.listeners names host and port as they are seen from outside.",
	},
	health.ProblemTLS: {
		"No secure connection", "A broker was reached, but no TLS session came about: its certificate was not accepted, or its listener speaks no TLS.",
		"Check the certificate of the listener: in date, issued for the advertised host name, with its whole chain. Where the listener has none, give the port of the one that has.",
	},
	health.ProblemBlocked: {
		"Blocked address", "A bootstrap server, or a broker that the cluster advertises, has an address that deliveries may not go to.",
		"Let the brokers advertise public addresses to their clients outside (advertised.listeners), and give the port of that listener.",
	},
	health.ProblemReset: {
		"The connection broke", "A broker closed the connection before it acknowledged the record.",
		"Check whether the listener wants TLS or SASL, and look into the broker's log at the time of the attempt.",
	},
	health.ProblemProtocol: {
		"Not a Kafka broker", "What answered does not speak Kafka's protocol, or not in a way that is known here.",
		"Check what listens at the bootstrap servers' ports: a listener with TLS answers so to a client without.",
	},
	health.ProblemInternal: {
		"Not sent", "The record could not be rendered or signed on our side, so nothing was sent.",
		"Check the endpoint's format and secrets. If they are in order, tell the operator of this platform.",
	},
}

// kafkaAnswers is what is said of answers, by the HTTP statuses as which they count (delivery.OfKafka).
var kafkaAnswers = map[int]struct{ title, detail, mend string }{
	401: {"Not authenticated", "The brokers did not accept the endpoint's user name and password, or offer another SASL mechanism.", "Check mechanism, user name and password in the endpoint's connection."},
	403: {"Not permitted", "The brokers know the user, who may not write to the topic.", "Grant the user WRITE and DESCRIBE on the topic; on brokers older than 3.0 also IDEMPOTENT_WRITE on the cluster."},
	404: {"No such topic", "The cluster has no topic of this name, or hides it from this user.", "Create the topic, or correct its name in the endpoint. Sending never creates one."},
	413: {"Record too large", "The record is larger than the topic or its brokers take.", "Raise max.message.bytes of the topic, or message.max.bytes of the brokers; or emit smaller data."},
	422: {"Record refused", "The brokers did not accept this record. The answer names the reason.", "Where the topic is compacted, each event needs a key. Look at the answer below."},
	429: {"Throttled", "The brokers ask for less: a quota is used up.", "Raise the user's quota, or lower the endpoint's rate limit here."},
}

// ofKafka diagnoses an attempt to write to a topic.
func ofKafka(r delivery.Result, timeout time.Duration) Diagnosis {
	problem := health.ProblemOf(r)
	d := Diagnosis{Problem: problem}
	w, ok := kafkaFailures[problem]
	if r.Failure == delivery.FailNone {
		if w, ok = kafkaAnswers[r.Status]; !ok {
			w.title, w.detail = "The brokers failed", "A broker answered with an error of its own, which the attempt names."
			w.mend = "Look into the cluster's health: too few replicas in sync, or a partition without a leader, end so."
		}
	} else if !ok { // in time
		w.title, w.detail = "Timed out", "Not all replicas in sync acknowledged the record in time. It may be in the topic all the same; another attempt carries the same id."
		if timeout > 0 {
			w.detail = fmt.Sprintf("Not all replicas in sync acknowledged the record within the endpoint's %d seconds. It may be in the topic all the same; another attempt carries the same id.", int(timeout.Seconds()))
		}
		w.mend = "Look into the cluster's health and load, or raise the endpoint's time-out."
	}
	if problem == "" {
		return Diagnosis{Title: "Delivered", Detail: "All replicas in sync have the record."}
	}
	d.Title, d.Detail, d.Mend = w.title, w.detail, w.mend
	return d
}
