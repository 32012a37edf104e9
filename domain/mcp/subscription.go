// Package mcp holds the rules of events over the Model Context Protocol (docs/mcp.md): who a subscription belongs to
// and what makes it one, its arguments, its lifetime, and what is said about its deliveries.
package mcp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
)

// Bounds of subscriptions.
const (
	MaxPerPrincipal = 50
	MaxPerTenant    = 1000
	maxPrincipal    = 200 // characters
	SecretOverlap   = 300 // seconds for which the old secret signs too
)

// SubscriptionHeader is the header that names the subscription in each request to its URL.
const SubscriptionHeader = "X-MCP-Subscription-Id"

// Metadata is the entry of an endpoint's metadata that names its subscription.
const Metadata = "mcp_subscription"

// Retries are the delays after failed attempts, in seconds. The first ones are short: a client responds with 503 until
// it has stored its new subscription.
var Retries = []int{1, 2, 4, 8, 15, 30, 60, 300, 900, 3600, 3 * 3600, 6 * 3600}

// Lifetimes of a subscription.
const (
	minLife     = time.Minute
	defaultLife = 24 * time.Hour
	maxLife     = 7 * 24 * time.Hour
)

// Life is how long a subscription lives until it is refreshed: what the client suggests, within bounds. nil: it
// suggests nothing. none: it asks for no end, which nobody gets.
func Life(milliseconds *int64, none bool) time.Duration {
	switch {
	case none:
		return maxLife
	case milliseconds == nil:
		return defaultLife
	case *milliseconds > maxLife.Milliseconds():
		return maxLife
	}
	return max(time.Duration(*milliseconds)*time.Millisecond, minLife)
}

// ID is the id of a subscription: the same for the same principal, URL, event type, and canonical arguments.
func ID(principal, address, event, arguments string) string {
	text, err := json.Marshal([]string{principal, address, event, arguments})
	if err != nil {
		panic(err) // texts alone
	}
	sum := sha256.Sum256(text)
	return "sub_" + hex.EncodeToString(sum[:16])
}

// IsID reports whether a text has the form of an ID.
func IsID(text string) bool {
	rest, is := strings.CutPrefix(text, "sub_")
	_, err := hex.DecodeString(rest)
	return is && len(rest) == 32 && err == nil && rest == strings.ToLower(rest)
}

// CheckPrincipal validates the name of whoever subscribes.
func CheckPrincipal(text string) error {
	if n := utf8.RuneCountInString(text); n == 0 || n > maxPrincipal || !utf8.ValidString(text) || !characters.Line(text) {
		return fault.InvalidField("principal", "principal_malformed", "A principal has 1 to 200 visible characters.")
	}
	return nil
}

// CheckSecret validates the secret that a client gives: whsec_ and the base64 of 24 to 64 bytes.
func CheckSecret(text string) error {
	encoded, is := strings.CutPrefix(text, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !is || err != nil || len(raw) < 24 || len(raw) > 64 {
		return fault.InvalidField("delivery.secret", "secret_refused", "delivery.secret must be whsec_ and the base64 of 24 to 64 random bytes.")
	}
	return nil
}

// CheckURL validates what the protocol asks for beyond what every endpoint needs.
func CheckURL(text string) error {
	if u, err := url.Parse(text); err != nil || strings.Contains(text, "#") || u.User != nil {
		return fault.InvalidField("delivery.url", "url_refused", "delivery.url must be an https:// address without credentials and without a fragment.")
	}
	return nil
}

// Reason is the category of a failure, the only thing that a client is told about it.
func Reason(r delivery.Result) string {
	switch {
	case r.Failure == delivery.FailTimeout:
		return "timeout"
	case r.Failure == delivery.FailTLS:
		return "tls_error"
	case r.Failure != delivery.FailNone:
		return "connection_refused"
	case r.Status >= 500:
		return "http_5xx"
	}
	return "http_4xx"
}
