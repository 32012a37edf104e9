// Code generated from domain/signature/check.go. DO NOT EDIT.

package signature

import (
	"strings"
	"time"

	"posthorn/client/internal/fault"
)

// Check is one of the things that make a signature good, in the order in which Verify looks.
type Check string

// The checks.
const (
	CheckSecret    Check = "secret"    // the secret has the format's shape
	CheckHeaders   Check = "headers"   // those that the format needs are there
	CheckID        Check = "id"        // the message's id
	CheckTimestamp Check = "timestamp" // is a time, and near the receiver's clock
	CheckScheme    Check = "scheme"    // the signature has the format's shape
	CheckSignature Check = "signature" // matches the body
)

// Finding is what came of one check.
type Finding struct {
	Check  Check
	State  State
	Detail string // why it failed, with what to do; empty otherwise
}

// State is what a check came to.
type State string

// The states. What comes after a failed check is not looked at, but for an old timestamp, after which the signature
// still is.
const (
	Passed  State = "passed"
	Broken  State = "failed"
	Skipped State = "skipped"
)

var checkOf = map[string]Check{
	CodeSecretRefused:      CheckSecret,
	CodeHeaderMissing:      CheckHeaders,
	CodeIDMalformed:        CheckID,
	CodeTimestampMalformed: CheckTimestamp,
	CodeTimestampTooOld:    CheckTimestamp,
	CodeTimestampTooNew:    CheckTimestamp,
	CodeSchemeUnknown:      CheckScheme,
	CodeMismatch:           CheckSignature,
}

// checks are those that a format has, in order.
func (w Wire) checks() []Check {
	f := w.Format
	all := []Check{CheckSecret, CheckHeaders}
	if f == Templated {
		if w.Shape != nil && w.Shape.Signature != nil && strings.Contains(w.Shape.Signature.Content+
			w.Shape.Signature.Value, "{ts}") {
			all = append(all, CheckTimestamp)
		}
		return append(all, CheckScheme, CheckSignature)
	}
	if f == Standard {
		all = append(all, CheckID)
	}
	if f != BodyHex {
		all = append(all, CheckTimestamp)
	}
	return append(all, CheckScheme, CheckSignature)
}

// Debug says of each part of a signed request whether it is right, by the rules of Verify. A timestamp that is merely
// far from now does not end the checks: the signature is checked for an old request too. good is that of Verify itself.
func (w Wire) Debug(
	header func(name string) string,
	body []byte,
	secret string,
	now time.Time,
	tolerance time.Duration,
) (findings []Finding, good bool) {
	verify := func(tolerance time.Duration) *fault.Error {
		return fault.As(w.Verify(header, body, []string{secret}, now, tolerance))
	}
	failed := map[Check]string{}
	first := verify(tolerance)
	last := first
	if first != nil {
		failed[checkOf[first.Code]] = first.Detail
		if first.Code == CodeTimestampTooOld || first.Code == CodeTimestampTooNew {
			if last = verify(-1); last != nil {
				failed[checkOf[last.Code]] = last.Detail
			}
		}
	}
	state := Passed
	for _, c := range w.checks() {
		detail, bad := failed[c]
		switch {
		case bad:
			findings = append(findings, Finding{Check: c, State: Broken, Detail: detail})
		default:
			findings = append(findings, Finding{Check: c, State: state})
		}
		if last != nil && checkOf[last.Code] == c {
			state = Skipped
		}
	}
	return findings, first == nil
}
