package diagnosis

import "posthorn/domain/health"

var sqsWords = brokerWords{
	failures: map[health.Problem]said{
		health.ProblemDNS: {
			"The host name was not found", "The host name of the queue's URL has no address, or its name server didn't respond.",
			"Check the region in the queue's URL.",
		},
		health.ProblemConnect: {
			"No connection", "The service accepted no connection.",
			"Check the queue's URL, and the health of the service in its region.",
		},
		health.ProblemTLS: {
			"No secure connection", "The TLS handshake with the service failed.",
			"Check the host name in the queue's URL.",
		},
		health.ProblemBlocked: {
			"Blocked address", "The queue's host has an address that deliveries can't be sent to.",
			"Use the public URL of the queue, and not that of a VPC endpoint.",
		},
		health.ProblemReset: {
			"Connection closed early", "The service closed the connection before it responded.",
			"Nothing, if it is rare: the delivery is retried.",
		},
		health.ProblemProtocol: {
			"Not SQS", "The server doesn't use the JSON protocol of SQS.",
			"Check the queue's URL. A server that is compatible with SQS needs this protocol.",
		},
	},
	answers: map[int]said{
		401: {
			"Not authenticated", "SQS rejected the access key or the signature.",
			"Check the access key id, the secret access key, and the region in the endpoint's connection.",
		},
		403: {
			"Not permitted", "The access key has no permission to send to the queue.",
			"Allow sqs:SendMessage on the queue, and for an encrypted queue kms:GenerateDataKey and kms:Decrypt on its key.",
		},
		404: {
			"No such queue", "There is no such queue in this region and account.",
			"Create the queue, or correct its URL in the endpoint. Sending never creates one.",
		},
		413: {
			"Message too large", "The message has more than 1 MiB, or more than the queue accepts.",
			"Raise the queue's maximum message size, or send smaller data.",
		},
		422: {
			"Message rejected", "SQS rejected this message. The response names the reason.",
			"Check the response below. A message can't have control characters.",
		},
		429: {
			"Throttled", "SQS throttles the queue or the account.",
			"Lower the endpoint's rate limit here. A FIFO queue without high throughput accepts 300 messages a second.",
		},
	},
	other: said{
		"Service error", "SQS returned a server error, which the attempt names.",
		"Check the health of SQS in the queue's region.",
	},
	late:      "SQS didn't respond",
	place:     "queue",
	checks:    "the service's",
	delivered: "The queue has the message.",
}
