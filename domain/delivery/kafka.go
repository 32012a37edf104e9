package delivery

// kafkaStatuses maps the responses of Kafka's brokers to HTTP statuses, so that one table decides for all kinds of
// endpoints. Errors that are not listed are problems of the broker and count as 503.
var kafkaStatuses = map[string]int{
	// The writer is unknown, or has no permission.
	"SASL_AUTHENTICATION_FAILED":            401,
	"UNSUPPORTED_SASL_MECHANISM":            401,
	"ILLEGAL_SASL_STATE":                    401,
	"TOPIC_AUTHORIZATION_FAILED":            403,
	"CLUSTER_AUTHORIZATION_FAILED":          403,
	"TRANSACTIONAL_ID_AUTHORIZATION_FAILED": 403,

	// There is nothing to write to.
	"UNKNOWN_TOPIC_OR_PARTITION": 404,
	"UNKNOWN_TOPIC_ID":           404,
	"INVALID_TOPIC_EXCEPTION":    404,

	// This record is not taken.
	"MESSAGE_TOO_LARGE":              413,
	"RECORD_LIST_TOO_LARGE":          413,
	"INVALID_RECORD":                 422,
	"INVALID_TIMESTAMP":              422,
	"POLICY_VIOLATION":               422,
	"UNSUPPORTED_FOR_MESSAGE_FORMAT": 422,
	"UNSUPPORTED_COMPRESSION_TYPE":   422,
	"THROTTLING_QUOTA_EXCEEDED":      429,
}

// OfKafka maps a response of a Kafka broker to a result, by the name of its error; empty is an acknowledgment by all
// replicas in sync.
//
// A 401, 403 or 404 of an HTTP receiver can be about this request. A broker's is never about the record, so the
// delivery is retried whatever the endpoint's policy is. It still counts in their streak.
func OfKafka(name string) Result {
	status, known := kafkaStatuses[name]
	switch {
	case name == "":
		status = 200
	case !known:
		status = 503
	}
	return Result{Status: status, Again: status == 401 || status == 403 || status == 404}
}
