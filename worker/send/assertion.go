package send

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"posthorn/domain/endpoint"
)

// assertionLife is how long a token endpoint can accept an assertion. Clocks differ by seconds.
const assertionLife = time.Minute

// assertion is a JWT by which a client proves to a token endpoint that it has a private key (RFC 7523 section 3). Each
// is used once.
func assertion(key crypto.Signer, c *endpoint.OAuthClient, now time.Time) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT")
	if c.KeyID != "" {
		options = options.WithHeader("kid", c.KeyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithmOf(key), Key: key}, options)
	if err != nil {
		return "", fmt.Errorf("assertion: %w", err)
	}
	claims, err := json.Marshal(map[string]any{
		"iss": c.ID,
		"sub": c.ID,
		"aud": cmp.Or(c.Claimed, c.TokenURL),
		"jti": rand.Text(),
		"iat": now.Unix(),
		"nbf": now.Unix(),
		"exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("assertion: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("assertion: %w", err)
	}
	return signed.CompactSerialize()
}

// algorithmOf is the algorithm of a key that every server has for its kind.
func algorithmOf(key crypto.Signer) jose.SignatureAlgorithm {
	switch k := key.(type) {
	case ed25519.PrivateKey:
		return jose.EdDSA
	case *ecdsa.PrivateKey:
		return map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[k.Curve.Params().BitSize]
	}
	return jose.RS256
}
