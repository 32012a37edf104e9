package delivery

import "strconv"

// AnswerText is an attempt's outcome in a word or two, for people: "200", or why there was no response: "DNS error".
func AnswerText(code int, failure Failure) string {
	if failure == FailNone && code > 0 {
		return strconv.Itoa(code)
	}
	switch failure {
	case FailDNS:
		return "DNS error"
	case FailConnect:
		return "No connection"
	case FailTLS:
		return "TLS error"
	case FailTimeout:
		return "Timed out"
	case FailReset:
		return "Connection reset"
	case FailBlocked:
		return "Blocked address"
	case FailProtocol:
		return "Invalid response"
	case FailInternal:
		return "Not sent"
	case FailToken:
		return "No access token"
	case FailProxy:
		return "Proxy failed"
	case FailTransformation, FailExpired, FailTooLarge:
		return "Not sent"
	}
	return "No response"
}

// LastAnswerText is the result of an attempt in a word or two, by its status and the word of its failure, as notices
// keep them. It is empty where there was none.
func LastAnswerText(status int, failure string) string {
	switch f, known := ParseFailure(failure); {
	case failure != "" && known:
		return AnswerText(0, f)
	case failure != "":
		return failure
	case status > 0:
		return "HTTP " + strconv.Itoa(status)
	}
	return ""
}
