package diagnosis

import "posthorn/domain/health"

var s3Words = brokerWords{
	failures: map[health.Problem]said{
		health.ProblemDNS: {
			"The host name was not found", "The host of the bucket has no address, or its name server didn't respond.",
			"Check the region and the endpoint URL. A compatible server usually needs path-style addresses.",
		},
		health.ProblemConnect: {
			"No connection", "The service accepted no connection.",
			"Check the endpoint URL, and the health of the service in the bucket's region.",
		},
		health.ProblemTLS: {
			"No secure connection", "The TLS handshake with the service failed.",
			"Check the endpoint URL. The certificate must be valid for the host: with path-style addresses that is the server's, otherwise the bucket's.",
		},
		health.ProblemBlocked: {
			"Blocked address", "The bucket's host has an address that deliveries can't be sent to.",
			"Use a public endpoint URL, and not that of a VPC endpoint.",
		},
		health.ProblemReset: {
			"Connection closed early", "The service closed the connection before it responded.",
			"Nothing, if it is rare: the delivery is retried.",
		},
		health.ProblemProtocol: {
			"Not S3", "The server doesn't use the protocol of S3.",
			"Check the endpoint URL. A server that is compatible with S3 responds with an ETag, or with an error in XML.",
		},
	},
	answers: map[int]said{
		401: {
			"Not authenticated", "S3 rejected the access key or the signature.",
			"Check the access key id, the secret access key, and the region in the endpoint's connection.",
		},
		403: {
			"Not permitted", "The access key has no permission to write to the bucket.",
			"Allow s3:PutObject on the bucket's objects, and for a bucket that is encrypted with a key of your own kms:GenerateDataKey on that key.",
		},
		404: {
			"No such bucket", "There is no such bucket in this region.",
			"Create the bucket, or correct its name and its region in the endpoint. Writing never creates one.",
		},
		413: {
			"Object too large", "The object is larger than the server accepts.",
			"Lower batch_max_bytes in the endpoint, or send smaller data.",
		},
		422: {
			"Object rejected", "S3 rejected this object. The response names the reason.",
			"Check the response below. The endpoint's custom headers and the signature can have 2 KB together.",
		},
		429: {
			"Slow down", "S3 throttles the bucket or the account.",
			"Use fewer and larger objects: raise batch_max_events and batch_max_wait_ms, or lower the endpoint's rate limit.",
		},
		500: {
			"Clocks differ", "The clocks of this platform and of the service differ by more than 15 minutes, so the service rejected the signature.",
			"Check the clock of the server, if it is yours. Otherwise contact the operator of this platform.",
		},
	},
	other: said{
		"Service error", "S3 returned a server error, which the attempt names.",
		"Check the health of S3 in the bucket's region.",
	},
	late:      "S3 didn't respond",
	place:     "bucket",
	checks:    "the service's",
	delivered: "The bucket has the object.",
}
