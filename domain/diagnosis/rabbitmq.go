package diagnosis

import "posthorn/domain/health"

var rabbitMQWords = brokerWords{
	failures: map[health.Problem]said{
		health.ProblemDNS: {
			"The host name was not found", "The broker's host name has no address, or its name server didn't respond.",
			"Check the host name in the endpoint's URL: it must resolve on the internet.",
		},
		health.ProblemConnect: {
			"No connection", "The broker accepted no connection.",
			"Check that the broker is running, that its listener has the port of the endpoint's URL, and that the firewall accepts connections.",
		},
		health.ProblemTLS: {
			"No secure connection", "The TLS handshake with the broker failed: its certificate isn't valid, or its listener doesn't use TLS.",
			"Check that the certificate hasn't expired, is issued for the host name, and has its full chain. Use the port of a listener with TLS, usually 5671.",
		},
		health.ProblemBlocked: {
			"Blocked address", "The broker has an address that deliveries can't be sent to.",
			"Use a broker with a public address.",
		},
		health.ProblemReset: {
			"Connection closed early", "The broker closed the connection before it confirmed the message.",
			"Check whether the listener requires TLS, and check the broker's log at the time of the attempt.",
		},
		health.ProblemProtocol: {
			"Not a RabbitMQ broker", "The server doesn't use AMQP 0-9-1.",
			"Check what listens on the port. A TLS listener responds like this to a client without TLS: use amqps:// in the URL.",
		},
	},
	answers: map[int]said{
		401: {
			"Not authenticated", "The broker rejected the endpoint's user name and password.",
			"Check both in the endpoint's connection. The user guest can log in only from the broker's own machine.",
		},
		403: {
			"Not permitted", "The user has no permission to write to the exchange, or no access to the virtual host, or the virtual host doesn't exist.",
			"Check the virtual host, and grant the user write permission on the exchange (rabbitmqctl set_permissions).",
		},
		404: {
			"No such exchange", "The virtual host has no exchange of this name.",
			"Declare the exchange, or correct its name in the endpoint. Sending never declares one.",
		},
		413: {
			"Message too large", "The message is larger than the broker accepts.",
			"Raise max_message_size of the broker, or send smaller data.",
		},
		422: {
			"Unroutable", "The broker returned the message: no queue is bound to the exchange for its routing key.",
			"Bind a queue for the routing key that the response shows, or correct the endpoint's routing key. Without an exchange, the routing key is the name of a queue.",
		},
	},
	other: said{
		"Broker error", "The broker couldn't take the message. The attempt names its response.",
		"NACK: a queue is full and rejects messages. BLOCKED: the broker is low on memory or disk space. Otherwise check the broker's log.",
	},
	late:      "The broker didn't confirm the message",
	place:     "queue",
	checks:    "the broker's",
	delivered: "The broker has confirmed the message: the queues that it was routed to have it.",
}
