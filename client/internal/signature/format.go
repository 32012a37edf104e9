// Code generated from domain/signature/format.go. DO NOT EDIT.

// Package signature is the wire format of a delivery: how an event's body is rendered, signed and verified in each of
// the five formats (docs/delivery.md). A format is data that a customer's code depends on: its bytes never change.
// Times come from the caller.
package signature

import (
	"fmt"
	"strings"

	"posthorn/client/internal/egress"
	"posthorn/client/internal/fault"
)

// Format names one of the wire formats.
type Format string

// The formats. "hex" and "base64" are of HMAC-SHA256 unless the key is ed25519.
const (
	Standard Format = "standard"  // Standard Webhooks: base64 over id.timestamp.body, one signature per live key
	XWebhook Format = "x-webhook" // v1=hex over timestamp.body; one key, or on request several separated by commas
	TV1      Format = "t-v1"      // t=unix,v1=hex over timestamp.body, further v1= on rotation
	BodyHex  Format = "body-hex"  // hex over the body alone, one key
	Raw      Format = "raw"       // the body is the data alone; hex over timestamp.body, one key

	// Templated is a signature in a notation of the endpoint's own (Template), one key. The body is the data unless it
	// says otherwise.
	Templated Format = "template"
)

// DefaultPrefix is {P} in header names if an endpoint sets none.
const DefaultPrefix = "Webhook"

// maxPrefix is the length of the longest prefix, in characters.
const maxPrefix = 40

// Formats lists the formats that are whole without a shape, the default first. Templated is not.
func Formats() []Format { return []Format{Standard, XWebhook, TV1, BodyHex, Raw} }

// useFormats says which formats there are.
const useFormats = "Use standard, x-webhook, t-v1, body-hex, raw or template."

// Valid reports whether f is one of Formats.
func (f Format) Valid() bool {
	switch f {
	case Standard, XWebhook, TV1, BodyHex, Raw, Templated:
		return true
	}
	return false
}

// OneSlot reports whether the format's header has room for a single signature.
func (f Format) OneSlot() bool { return f == BodyHex || f == Raw || f == Templated }

// Rotation says which of the live keys sign while a secret is rotated. Empty is the format's default.
type Rotation string

// The ways to rotate.
const (
	SignOne Rotation = "one" // the old key alone, until the switch or the end of its overlap
	SignAll Rotation = "all" // every live key
)

// Rotations lists the ways.
func Rotations() []Rotation { return []Rotation{SignOne, SignAll} }

// Rotation is the way in force where an endpoint asks for r. XWebhook's default is one key: published verifiers of
// this format compare a single signature, the newest or the whole header.
func (f Format) Rotation(r Rotation) Rotation {
	switch {
	case f.OneSlot():
		return SignOne
	case r == SignOne || r == SignAll:
		return r
	case f == XWebhook:
		return SignOne
	}
	return SignAll
}

// ValidPrefix says whether an endpoint can choose p for {P}: it is a prefix, and no format makes a reserved name of
// it. The refusal is a *fault.Error of field prefix.
func ValidPrefix(p string) error {
	if err := checkPrefix(p); err != nil || p == DefaultPrefix {
		return err
	}
	for _, f := range Formats() {
		for _, name := range listNames(makeNames(f, p)) {
			if why := egress.ReservedInWire(name); why != "" {
				return fault.InvalidField("prefix", "prefix_refused", strings.Replace(why, "another name", "another prefix", 1))
			}
		}
	}
	return nil
}

// checkPrefix says whether p is 1 to 40 ASCII letters, digits and hyphens, without a hyphen at either end.
func checkPrefix(p string) error {
	ok := len(p) >= 1 && len(p) <= maxPrefix && p[0] != '-' && p[len(p)-1] != '-'
	for i := 0; ok && i < len(p); i++ {
		ok = p[i] == '-' || isAlphanumeric(p[i])
	}
	if !ok {
		return fault.InvalidField("prefix", "prefix_refused", fmt.Sprintf(
			"A header prefix can have 1 to %d letters, digits, and hyphens, without a hyphen at either end, such as \"Acme\".", maxPrefix))
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// names are a format's header names; a field is empty where the format has no such header.
type names struct {
	id, timestamp, signature, event, endpoint, delivery, retry, attempt, resend, replayed string

	rfc3339 bool // the timestamp's value
}

var defaultNames = func() map[Format]names {
	all := make(map[Format]names)
	for _, f := range append(Formats(), Templated) {
		all[f] = makeNames(f, DefaultPrefix)
	}
	return all
}()

func namesOf(f Format, prefix string) names {
	if prefix == "" || prefix == DefaultPrefix {
		return defaultNames[f]
	}
	return makeNames(f, prefix)
}

func makeNames(f Format, prefix string) names {
	switch f {
	case Standard:
		return names{
			id:        "webhook-id",
			timestamp: "webhook-timestamp",
			signature: "webhook-signature",
			attempt:   "webhook-attempt",
			replayed:  "webhook-replayed",
		}
	case XWebhook: // its own four names are fixed; what Posthorn adds carries the prefix
		return names{
			id:        "X-Webhook-Id",
			timestamp: "X-Webhook-Timestamp",
			signature: "X-Webhook-Signature",
			delivery:  "X-Delivery-Id",
			attempt:   "X-" + prefix + "-Attempt",
			replayed:  "X-" + prefix + "-Replayed",
		}
	case TV1:
		return names{
			signature: prefix + "-Signature",
			id:        prefix + "-Event-Id",
			event:     prefix + "-Event-Type",
			endpoint:  prefix + "-Webhook-Id",
			attempt:   "X-" + prefix + "-Attempt",
			replayed:  "X-" + prefix + "-Replayed",
		}
	case BodyHex:
		return names{
			id:        "X-" + prefix + "-Event-Id",
			event:     "X-" + prefix + "-Event",
			signature: "X-" + prefix + "-Signature",
			timestamp: "X-" + prefix + "-Timestamp",
			retry:     "X-" + prefix + "-Retry-Attempt",
			attempt:   "X-" + prefix + "-Attempt",
			resend:    "X-" + prefix + "-Retry",
			replayed:  "X-" + prefix + "-Replayed",
			rfc3339:   true,
		}
	case Raw, Templated:
		return names{
			id:        "X-" + prefix + "-Event-Id",
			event:     "X-" + prefix + "-Event",
			delivery:  "X-" + prefix + "-Delivery",
			timestamp: "X-" + prefix + "-Timestamp",
			signature: "X-" + prefix + "-Signature",
			attempt:   "X-" + prefix + "-Attempt",
			replayed:  "X-" + prefix + "-Replayed",
		}
	}
	return names{}
}

func listNames(n names) []string {
	var list []string
	for _, name := range []string{
		n.id, n.event, n.endpoint, n.delivery, n.timestamp, n.signature, n.retry, n.attempt, n.resend, n.replayed,
	} {
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}
