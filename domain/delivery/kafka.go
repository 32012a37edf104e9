package delivery

import (
	"maps"
	"slices"
)

// kafkaStatuses are the HTTP statuses as which the answers of Kafka's brokers count, so that one table decides about all kinds of
// endpoints. What is not named here is trouble of the broker's own and counts as 503.
var kafkaStatuses = map[string]int{
	// Who writes is not known, or may not.
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

// OfKafka is the result that an answer of a Kafka broker counts as, by the name of its error; empty is an acknowledgement by all
// replicas in sync.
//
// An HTTP receiver that answers 401, 403 or 404 may be speaking of this request; a broker never speaks of the record with
// these, so that the delivery is tried again whatever the endpoint's policy is. It still counts in their streak.
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

// KafkaErrors are the names of errors that have a status of their own.
func KafkaErrors() []string { return slices.Sorted(maps.Keys(kafkaStatuses)) }
