package delivery

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// SharePath is where read-only links to deliveries lead. The tenant's id that follows finds the home.
const SharePath = "/shared/"

// ShareURL is the path and the query of a read-only link of a tenant with a token.
func ShareURL(tenant id.UUID, token string) string {
	return SharePath + id.Tenant.Format(tenant) + "?token=" + url.QueryEscape(token)
}

// How long a read-only link to a delivery can be opened, in seconds.
const (
	ShareLeast = int(time.Hour / time.Second)
	ShareMost  = int(7 * 24 * time.Hour / time.Second)
)

// MaxShares is how many links to one delivery can be open.
const MaxShares = 10

// ErrShares rejects more links to a delivery.
var ErrShares = fault.New(fault.Conflict, "delivery_shares_limit", fmt.Sprintf("A delivery can have %d links. Revoke one first.", MaxShares))

// ErrShareGone is for a link that opens nothing any more.
var ErrShareGone = fault.New(fault.Gone, "share_gone", "This link has expired or was revoked. Ask whoever sent it to you for a new one.")

// ShareFaults says what is wrong with how long a link lives, in seconds.
func ShareFaults(seconds int) []fault.Field {
	if seconds >= ShareLeast && seconds <= ShareMost {
		return nil
	}
	return []fault.Field{{Name: "expires_in", Code: "share_expiry_range", Detail: "A link can be open for one hour to seven days."}}
}

// Masked stands for a value that a shared page does not show.
const Masked = "***"

// ShareHeader is the value of a request's header as a shared page shows it: with a signature, nobody could tell a
// request from Posthorn's.
func ShareHeader(name, value, signature string) string {
	name = strings.ToLower(name)
	for _, word := range []string{"signature", "hmac", "authorization", "token", "secret"} {
		if strings.Contains(name, word) {
			return Masked
		}
	}
	for line := range strings.Lines(signature) { // each signature has a line
		if line = strings.TrimSpace(line); line != "" && strings.Contains(value, line) {
			return Masked
		}
	}
	return value
}
