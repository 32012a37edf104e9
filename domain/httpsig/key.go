package httpsig

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"posthorn/domain/fault"
)

// Algorithm is that of every key.
const Algorithm = "ed25519"

// The rules of rotation (docs/public-signatures.md). A key is published before it signs, because receivers keep the set
// for a while, and for some time after the last request that it signed.
const (
	DefaultStart = 24 * 3600 // seconds from its creation until a key signs
	MaxStart     = 7 * 24 * 3600
	KeptFor      = 7 * 24 * time.Hour // a key is published after its successor has begun to sign
	maxKeys      = 10
)

// KeysPath is where receivers read the keys of a tenant.
func KeysPath(tenant string) string { return KeysRoot + tenant + "/jwks.json" }

// KeysRoot is the part of KeysPath before the tenant.
const KeysRoot = "/.well-known/posthorn/tenants/"

// JWK is a public key as a JSON Web Key (RFC 8037). Its id is its thumbprint.
type JWK struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	NotBefore int64  `json:"nbf,omitempty"`
	Expires   int64  `json:"exp,omitempty"`
}

// JWKS is a set of keys.
type JWKS struct {
	Keys []JWK `json:"keys"`
}

// Thumbprint is the id of a key (RFC 7638, RFC 8037 appendix A.3).
func Thumbprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// State is what a key does.
type State string

// The states of a key.
const (
	Next    State = "next"    // published, and signs later
	Signing State = "signing" // signs
	Retired State = "retired" // published, so that what it signed can still be verified
)

// Span is when a key signs.
type Span struct {
	StartsAt  time.Time
	ExpiresAt *time.Time // when it is no longer published; nil: it has no successor
}

// signs reports whether the key can sign. Of several, the newest does.
func (s Span) signs(now time.Time) bool {
	return !now.Before(s.StartsAt) && (s.ExpiresAt == nil || now.Before(*s.ExpiresAt))
}

// StateOf is the state of the key at an index, among keys with the newest first.
func StateOf(keys []Span, i int, now time.Time) State {
	switch {
	case now.Before(keys[i].StartsAt):
		return Next
	case i == slices.IndexFunc(keys, func(s Span) bool { return s.signs(now) }):
		return Signing
	}
	return Retired
}

// CheckStart says whether a new key can begin to sign so many seconds from now.
func CheckStart(seconds int) error {
	if seconds < 0 || seconds > MaxStart {
		return fault.InvalidField("starts_in_seconds", "key_start_range", "starts_in_seconds must be 0 to 604800, which is 7 days.")
	}
	return nil
}

// ErrPending rejects a rotation while the last one is under way.
var ErrPending = fault.New(fault.Conflict, "key_pending",
	"A new key is published and doesn't sign yet. Wait until it signs, or rotate with starts_in_seconds 0 to replace all keys now.")

// CheckRoom says whether a set of so many keys can have one more.
func CheckRoom(has int) error {
	if has < maxKeys {
		return nil
	}
	return fault.New(fault.Conflict, "signing_keys_limit", fmt.Sprintf(
		"%d keys are published, the most there can be. Wait until the oldest expires, or rotate with starts_in_seconds 0 to replace all keys now.", has))
}

// ErrNoKeys says that there is no set of keys.
var ErrNoKeys = fault.New(fault.NotFound, "keys_missing", "There are no public keys here.")

// PublicJWK is a key as receivers read it.
func PublicJWK(key ed25519.PublicKey, s Span) JWK {
	k := JWK{
		Type:      "OKP",
		Curve:     "Ed25519",
		X:         base64.RawURLEncoding.EncodeToString(key),
		ID:        Thumbprint(key),
		Use:       "sig",
		NotBefore: s.StartsAt.Unix(),
	}
	if s.ExpiresAt != nil {
		k.Expires = s.ExpiresAt.Unix()
	}
	return k
}
