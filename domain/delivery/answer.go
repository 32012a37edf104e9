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
	}
	return "No response"
}
