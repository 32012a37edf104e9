package mail

import "time"

// Delays are the waits after the first, second, ... try that the provider did not take. With the longest jitter they
// end within 24 hours, since a provider remembers an idempotency key so long (Resend's documentation, "Idempotency
// Keys").
func Delays() []time.Duration {
	return []time.Duration{
		10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 6 * time.Hour,
	}
}

// jitter is by which fraction a delay can be longer or shorter, so that mails that failed together do not return
// together.
const jitter = 0.15

// The bounds of a provider's Retry-After.
const (
	leastPause = time.Second
	mostPause  = time.Hour
)

// Next is how long to wait after so many tries (at least 1); false when that was the last. random is from 0 to 1.
func Next(tries int, random float64) (time.Duration, bool) {
	delays := Delays()
	if tries > len(delays) {
		return 0, false
	}
	d := delays[max(tries, 1)-1]
	return d + time.Duration((2*random-1)*jitter*float64(d)), true
}

// Pause is how long nothing is sent after a provider throttled us: its Retry-After within bounds, or a second without
// one. Such a response uses up no try.
func Pause(retryAfter time.Duration) time.Duration {
	return min(max(retryAfter, leastPause), mostPause)
}

// Verdict is what a provider's refusal means.
type Verdict int

// The verdicts.
const (
	Retry     Verdict = iota // it can accept the mail later
	Throttled                // nothing is to be sent for a while; the mail uses up no try
	Refused                  // it never will take this mail
	Taken                    // it accepted a mail for this purpose before
)

// Classify says what a response of the provider's API means. name is the error's own, if it has one. Source: Resend's
// documentation, "Errors" and "Idempotency Keys".
func Classify(status int, name string) Verdict {
	switch {
	case status == 429:
		return Throttled
	// An earlier try got through, and the mail came out differently since (a newer version of its template): the
	// purpose is served.
	case status == 409 && name == "invalid_idempotent_request":
		return Taken
	// Under way just now; or our key is wrong, which an operator can fix while the mails wait.
	case status == 408, status == 409, status == 425, status == 401,
		status == 403 && (name == "invalid_api_key" || name == "restricted_api_key" || name == "suspended_api_key"):
		return Retry
	case status >= 400 && status < 500:
		return Refused
	}
	return Retry
}

// ClassifySMTP says what a mail server's reply code means (RFC 5321, section 4.2.1). Codes of authentication (RFC 4954)
// are about our configuration, which an operator can fix while the mails wait.
func ClassifySMTP(code int) Verdict {
	switch {
	case code == 530, code == 534, code == 535, code == 538:
		return Retry
	case code >= 500 && code < 600:
		return Refused
	}
	return Retry
}
