package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// tagBytes is how much of the HMAC-SHA256 a token carries: 128 bits.
const tagBytes = 16

// Token signs a text that its holder can read but not change: for links without a sign-in. The same text has the same
// token for as long as the newest key is the same. purpose separates tokens of different kinds.
func (r *Ring) Token(purpose string, payload []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(payload) + "." + encode(r.keys[0].tag(purpose, payload))
}

// OpenToken returns the text of a token of this purpose; false if no key of the ring has signed it.
func (r *Ring) OpenToken(purpose, token string) ([]byte, bool) {
	first, second, _ := strings.Cut(token, ".")
	decode := base64.RawURLEncoding.Strict().DecodeString
	payload, err := decode(first)
	if err != nil {
		return nil, false
	}
	tag, err := decode(second)
	if err != nil {
		return nil, false
	}
	for i := range r.keys {
		if hmac.Equal(tag, r.keys[i].tag(purpose, payload)) {
			return payload, true
		}
	}
	return nil, false
}

func (k *key) tag(purpose string, payload []byte) []byte {
	h := hmac.New(sha256.New, k.mac)
	h.Write([]byte(purpose))
	h.Write([]byte{0})
	h.Write(payload)
	return h.Sum(nil)[:tagBytes]
}

// ReadToken returns the text of a token without a check of its signature. Use it only to find who can check the token.
func ReadToken(token string) ([]byte, bool) {
	text, _, signed := strings.Cut(token, ".")
	payload, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return payload, err == nil && signed
}

// TokenOf is Token with a key of its own, which two homes share.
func TokenOf(mac []byte, purpose string, payload []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(payload) + "." + encode((&key{mac: mac}).tag(purpose, payload))
}

// OpensTokenOf reports whether a token of TokenOf was signed with a key.
func OpensTokenOf(mac []byte, purpose, token string) bool {
	payload, ok := ReadToken(token)
	return ok && hmac.Equal([]byte(TokenOf(mac, purpose, payload)), []byte(token))
}
