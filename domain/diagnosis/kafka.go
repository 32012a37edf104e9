package diagnosis

import "posthorn/domain/health"

// kafkaFailures is what is said where a topic could not be written to at all.
var kafkaFailures = map[health.Problem]said{
	health.ProblemDNS: {
		"The host name was not found", "The host name of a bootstrap server, or of a broker that the cluster advertises, has no address, or its name server didn't respond.",
		"Check the bootstrap servers, and the host names in the brokers' advertised.listeners: they must resolve on the internet.",
	},
	health.ProblemConnect: {
		"No connection", "A bootstrap server, or a broker that the cluster advertises, accepted no connection.",
		"Check that the brokers are running, that the firewall accepts connections, and that advertised.listeners has the host and port that clients outside use.",
	},
	health.ProblemTLS: {
		"No secure connection", "The TLS handshake with a broker failed: its certificate isn't valid, or its listener doesn't use TLS.",
		"Check that the listener's certificate hasn't expired, is issued for the advertised host name, and has its full chain. If the listener has no TLS, use the port of one that has.",
	},
	health.ProblemBlocked: {
		"Blocked address", "A bootstrap server, or a broker that the cluster advertises, has an address that deliveries can't be sent to.",
		"Advertise public addresses to outside clients (advertised.listeners), and use the port of that listener.",
	},
	health.ProblemReset: {
		"Connection closed early", "A broker closed the connection before it acknowledged the record.",
		"Check whether the listener requires TLS or SASL, and check the broker's log at the time of the attempt.",
	},
	health.ProblemProtocol: {
		"Not a Kafka broker", "The server doesn't use Kafka's protocol, or uses a version that isn't supported.",
		"Check what listens on the bootstrap servers' ports. A TLS listener responds like this to a client without TLS.",
	},
}

// kafkaAnswers is what is said of answers, by the HTTP statuses as which they count (delivery.OfKafka).
var kafkaAnswers = map[int]said{
	401: {"Not authenticated", "The brokers rejected the endpoint's user name and password, or offer another SASL mechanism.", "Check mechanism, user name and password in the endpoint's connection."},
	403: {"Not permitted", "The user doesn't have permission to write to the topic.", "Grant the user WRITE and DESCRIBE on the topic; on brokers older than 3.0 also IDEMPOTENT_WRITE on the cluster."},
	404: {"No such topic", "The cluster has no topic of this name, or hides it from this user.", "Create the topic, or correct its name in the endpoint. Sending never creates one."},
	413: {"Record too large", "The record is larger than the topic or its brokers accept.", "Raise max.message.bytes of the topic or message.max.bytes of the brokers, or send smaller data."},
	422: {"Record rejected", "The brokers rejected this record. The response names the reason.", "Check the response below. In a compacted topic, each event needs a key."},
	429: {"Throttled", "The brokers throttle the user: its quota is used up.", "Raise the user's quota, or lower the endpoint's rate limit here."},
}

var kafkaWords = brokerWords{
	failures: kafkaFailures,
	answers:  kafkaAnswers,
	other: said{
		"Broker error", "A broker returned a server error, which the attempt names.",
		"Check the cluster's health: too few in-sync replicas, or a partition without a leader, cause this.",
	},
	late:      "Not all in-sync replicas acknowledged the record",
	place:     "topic",
	checks:    "the cluster's",
	delivered: "All in-sync replicas have the record.",
}
