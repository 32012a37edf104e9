// Code generated from domain/signature/verify.go. DO NOT EDIT.

package signature

import (
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"posthorn/client/internal/fault"
)

// DefaultTolerance is how far a timestamp can be from the receiver's clock, either way (Standard Webhooks' and Stripe's
// own libraries use the same).
const DefaultTolerance = 5 * time.Minute

// The codes of Verify's errors, in the order of its checks.
const (
	CodeFormatUnknown      = "format_unknown"
	CodeSecretRefused      = "secret_refused"
	CodeHeaderMissing      = "header_missing"
	CodeIDMalformed        = "id_malformed"
	CodeTimestampMalformed = "timestamp_malformed"
	CodeTimestampTooOld    = "timestamp_too_old"
	CodeTimestampTooNew    = "timestamp_too_new"
	CodeSchemeUnknown      = "signature_scheme_unknown"
	CodeMismatch           = "signature_mismatch"
)

// Verify checks a request as a receiver should: with the body's exact bytes, any of the secrets, and a clock. header
// looks a name up whatever its case, such as http.Header.Get. A tolerance under 0 leaves the timestamp's age unchecked.
// For Standard a secret can be whsec_, whpk_ or whsk_. The error is a *fault.Error with one of the codes above; its
// field is the header concerned. Signatures are compared in constant time. BodyHex signs no timestamp, so it checks
// none.
func (w Wire) Verify(header func(name string) string, body []byte, secrets []string, now time.Time, tolerance time.Duration) error {
	f := w.Format
	if f == Templated && (w.Shape == nil || w.Shape.Signature == nil) {
		return fault.InvalidField("wire.signature", "wire_template_missing", "The format template needs a signature: its value and what is signed.")
	}
	keys, err := w.verifiers(secrets)
	if err != nil {
		return err
	}
	n := w.names()
	if f == Templated {
		return w.verifyTemplate(n, header, body, keys, now, tolerance)
	}
	signature := header(n.signature)
	if signature == "" {
		return missing(n.signature)
	}
	var id, stamp string
	stampHeader := n.timestamp
	switch f {
	case BodyHex:
	case TV1:
		stampHeader = n.signature
		stamp = field(signature, "t=")
		if stamp == "" {
			return fault.InvalidField(n.signature, CodeTimestampMalformed, "The signature has no t=<unix seconds>. The expected form is t=...,v1=...")
		}
	default:
		if stamp = header(n.timestamp); stamp == "" {
			return missing(n.timestamp)
		}
	}
	if f == Standard {
		if id = header(n.id); id == "" {
			return missing(n.id)
		}
		// The specification forbids dots: with one, two different messages could have the same signed content.
		if strings.Contains(id, ".") {
			return fault.InvalidField(n.id, CodeIDMalformed, "The message id contains a period, which the specification forbids.")
		}
	}
	if f != BodyHex {
		if err := checkAge(stampHeader, stamp, now, tolerance); err != nil {
			return err
		}
	}
	return match(n.signature, signature, keys, content{f, id, stamp, body})
}

func missing(name string) error {
	return fault.InvalidField(
		name,
		CodeHeaderMissing,
		fmt.Sprintf("The request has no %s header. Check whether a proxy removed it, and whether the format is correct.", name),
	)
}

// verifiers parses the secrets; whpk_ can verify but not sign, so ParseKey does not know it.
func (w Wire) verifiers(secrets []string) ([]Key, error) {
	f := w.Format
	if len(secrets) == 0 {
		return nil, refuseSecret("Add at least one secret to verify with.")
	}
	keys := make([]Key, 0, len(secrets))
	for _, s := range secrets {
		if f == Standard && strings.HasPrefix(s, publicPrefix) {
			raw, err := decodeBase64(s[len(publicPrefix):])
			if err != nil || len(raw) != ed25519.PublicKeySize {
				return nil, refuseSecret("The part after whpk_ isn't the base64 of a 32-byte ed25519 public key. Paste the complete key.")
			}
			keys = append(keys, Key{public: raw})
			continue
		}
		k, err := w.ParseKey(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// field finds the value of the first key=value item of a comma-separated list.
func field(list, key string) string {
	for item := range strings.SplitSeq(list, ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(item), key); ok {
			return value
		}
	}
	return ""
}

func checkAge(name, stamp string, now time.Time, tolerance time.Duration) error {
	// 12 digits reach the year 33658; more could overflow the subtraction below.
	malformed := len(stamp) > 12
	for i := range len(stamp) {
		malformed = malformed || stamp[i] < '0' || stamp[i] > '9'
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if malformed || err != nil {
		return fault.InvalidField(name, CodeTimestampMalformed, "The timestamp isn't a whole number of seconds since 1970.")
	}
	if tolerance < 0 {
		return nil
	}
	age, most := now.Unix()-seconds, int64(tolerance/time.Second)
	if age > most {
		return fault.InvalidField(name, CodeTimestampTooOld, fmt.Sprintf(
			"The request was signed %d seconds ago, more than the allowed %d. It could be a replayed copy, or the receiver's clock is ahead.", age, most))
	}
	if -age > most {
		return fault.InvalidField(name, CodeTimestampTooNew, fmt.Sprintf(
			"The request was signed %d seconds in the future, more than the allowed %d. The receiver's clock is behind.", -age, most))
	}
	return nil
}

// content is what a signature of a format covers.
type content struct {
	format    Format
	id, stamp string
	body      []byte
}

// match tries every signature of a known scheme against every key.
func match(name, header string, keys []Key, c content) error {
	f := c.format
	known := false
	var room [256]byte
	for item := range strings.SplitSeq(header, string(separator(f))) {
		if f != Standard {
			item = strings.TrimSpace(item)
		}
		if !knownScheme(f, item) {
			continue
		}
		known = true
		for _, k := range keys {
			if k.verifies(room[:0], item, c) {
				return nil
			}
		}
	}
	if !known {
		return fault.InvalidField(
			name,
			CodeSchemeUnknown,
			fmt.Sprintf("No signature in this header has the form of the %s format, such as %s.", f, shapes[f]),
		)
	}
	return mismatch(name)
}

func mismatch(name string) error {
	return fault.InvalidField(
		name,
		CodeMismatch,
		"No signature matches. Check that this is the endpoint's secret, and that the body is the exact bytes received, before any JSON parsing or re-encoding.",
	)
}

var shapes = map[Format]string{
	Standard: "v1,<base64>",
	XWebhook: "v1=<hex>",
	TV1:      "t=<unix>,v1=<hex>",
	BodyHex:  "<64 hex digits>",
	Raw:      "<64 hex digits>",
}

func knownScheme(f Format, item string) bool {
	switch f {
	case Standard:
		return strings.HasPrefix(item, "v1,") || strings.HasPrefix(item, "v1a,")
	case XWebhook, TV1:
		return strings.HasPrefix(item, "v1=")
	default:
		return item != "" && !strings.ContainsAny(item, "=,")
	}
}

// verifies compares one signature with what this key makes. HMACs are compared as text, whole: a prefix of the right
// signature, or the same bits in another spelling, is not the signature.
func (k Key) verifies(room []byte, item string, c content) bool {
	if k.public != nil {
		text, ok := strings.CutPrefix(item, "v1a,")
		if !ok {
			return false
		}
		sig, err := base64.StdEncoding.Strict().DecodeString(text)
		signed := append(appendSignedHead(nil, c.format, c.id, c.stamp), c.body...)
		return err == nil && ed25519.Verify(k.public, signed, sig)
	}
	want := k.appendSignature(room, c.format, c.id, c.stamp, c.body)
	return len(want) > 0 && subtle.ConstantTimeCompare(want, []byte(item)) == 1
}
