package delivery

import "maps"

// LoginRefused is the name for a login that a RabbitMQ broker rejects: brokers name it like a missing permission.
const LoginRefused = "LOGIN_REFUSED"

// rabbitMQStatuses maps the responses of RabbitMQ's brokers to HTTP statuses, so that one table decides for all kinds
// of endpoints. Responses that are not listed are problems of the broker and count as 503.
var rabbitMQStatuses = map[string]int{
	LoginRefused:          401,
	"ACCESS_REFUSED":      403,
	"NOT_ALLOWED":         403, // the virtual host does not exist, or the user has no access to it
	"NOT_FOUND":           404, // the exchange
	"CONTENT_TOO_LARGE":   413,
	"PRECONDITION_FAILED": 413, // of a message without other conditions, its size
	"NO_ROUTE":            422, // no queue is bound for the routing key
}

// RabbitMQStatuses are the responses of a RabbitMQ broker that don't count as 503, with their HTTP statuses.
func RabbitMQStatuses() map[string]int { return maps.Clone(rabbitMQStatuses) }

// OfRabbitMQ maps a response of a RabbitMQ broker to a result, by its name; empty is a confirmation.
//
// What a person can fix in the broker (user, exchange, binding) is retried whatever the endpoint's policy is.
func OfRabbitMQ(name string) Result {
	status, known := rabbitMQStatuses[name]
	switch {
	case name == "":
		status = 200
	case !known:
		status = 503
	}
	return Result{Status: status, Again: status == 401 || status == 403 || status == 404 || status == 422}
}
