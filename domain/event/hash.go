package event

import "crypto/sha256"

// BodyHash is what two requests with one idempotency key are compared by: the SHA-256 of the body without its field
// idempotency_key, so that the key can be in the body or in the header. body is what the emission was parsed from.
func (e Emission) BodyHash(body []byte) [sha256.Size]byte {
	if e.keyField.to == 0 {
		return sha256.Sum256(body)
	}
	h := sha256.New()
	h.Write(body[:e.keyField.from])
	h.Write(body[e.keyField.to:])
	return [sha256.Size]byte(h.Sum(nil))
}
