package show

import (
	"crypto/ed25519"
	"encoding/base64"
	"time"

	"posthorn/domain/httpsig"
	"posthorn/domain/id"
)

// SigningKey is a key of signatures that receivers verify with a public key.
type SigningKey struct {
	ID        id.UUID
	Public    ed25519.PublicKey
	State     httpsig.State
	CreatedAt time.Time // since when it is published
	httpsig.Span
}

// Thumbprint is how signatures name the key.
func (k SigningKey) Thumbprint() string { return httpsig.Thumbprint(k.Public) }

// Text is the key for libraries of Standard Webhooks.
func (k SigningKey) Text() string { return "whpk_" + base64.StdEncoding.EncodeToString(k.Public) }

// JWKS is the set of keys as receivers read it.
func JWKS(keys []SigningKey) httpsig.JWKS {
	set := httpsig.JWKS{Keys: make([]httpsig.JWK, len(keys))}
	for i, k := range keys {
		set.Keys[i] = httpsig.PublicJWK(k.Public, k.Span)
	}
	return set
}
