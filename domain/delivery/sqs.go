package delivery

import "maps"

// TooLargeForSQS is the name for a message that is larger than any queue of SQS accepts: it is not sent.
const TooLargeForSQS = "MessageTooLarge"

// sqsStatuses maps the errors of SQS to HTTP statuses, so that one table decides for all kinds of endpoints. Errors
// that are not listed are problems of the service and count as 503.
var sqsStatuses = map[string]int{
	"InvalidClientTokenId":        401,
	"UnrecognizedClient":          401,
	"SignatureDoesNotMatch":       401,
	"InvalidSignature":            401,
	"IncompleteSignature":         401,
	"MissingAuthenticationToken":  401,
	"ExpiredToken":                401,
	"RequestExpired":              401,
	"NotAuthorized":               403,
	"AccessDenied":                403,
	"OptInRequired":               403,
	"InvalidSecurity":             403,
	"KmsAccessDenied":             403,
	"KmsDisabled":                 403,
	"KmsInvalidState":             403,
	"KmsNotFound":                 403,
	"QueueDoesNotExist":           404,
	"InvalidAddress":              404,
	TooLargeForSQS:                413,
	"InvalidMessageContents":      422,
	"InvalidParameterValue":       422,
	"InvalidParameterCombination": 422,
	"MissingParameter":            422,
	"UnsupportedOperation":        422,
	"RequestThrottled":            429,
	"Throttling":                  429,
	"KmsThrottled":                429,
	"OverLimit":                   429,
}

// SQSStatuses are the errors of SQS that don't count as 503, with their HTTP statuses.
func SQSStatuses() map[string]int { return maps.Clone(sqsStatuses) }

// OfSQS maps an error of SQS to a result, by its name; empty is a message that the queue has.
func OfSQS(name string) Result {
	status, known := sqsStatuses[name]
	switch {
	case name == "":
		status = 200
	case !known:
		status = 503
	}
	return Result{Status: status, Again: status == 401 || status == 403 || status == 404}
}
