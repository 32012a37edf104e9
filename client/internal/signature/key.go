// Code generated from domain/signature/key.go. DO NOT EDIT.

package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"sync"
	"unicode/utf8"

	"posthorn/client/internal/fault"
)

// The prefixes of secrets in the standard format (Standard Webhooks specification, "Signature scheme").
const (
	secretPrefix  = "whsec_" // base64 of an HMAC key
	privatePrefix = "whsk_"  // base64 of an ed25519 seed and its public key
	publicPrefix  = "whpk_"  // base64 of an ed25519 public key
)

// The sizes of HMAC keys: decoded bytes in the standard format (its specification's range), characters' bytes in the
// others. The others have no lower bound above 1, because a provider brings the secrets that its customers already
// hold.
const (
	minStandardKey = 24
	maxStandardKey = 64
	maxPlainKey    = 256
)

// Key is a parsed signing key. It is safe for concurrent use and prints as "redacted" in every form.
type Key struct {
	macs    *sync.Pool // of *mac; nil for an ed25519 key
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

// mac is a reusable HMAC state: it keeps the key's two hashed pads, so that a signature costs no set-up and no garbage.
type mac struct {
	hash hash.Hash
	sum  [sha512.Size]byte
	head [128]byte
}

// ParseKey reads a secret as format f understands it. Standard takes whsec_ and base64 of 24 to 64 bytes, or an ed25519
// key pair as whsk_. In every other format the whole string is the HMAC key: 1 to 256 bytes of UTF-8 without control
// characters, so that a pasted line break is refused instead of signed with. The refusal is a *fault.Error of field
// secret and never holds the secret.
func ParseKey(f Format, secret string) (Key, error) {
	if !f.Valid() {
		return Key{}, fault.InvalidField("format", "format_unknown", "There is no such format. "+useFormats)
	}
	if f != Standard {
		return parsePlain(secret)
	}
	switch {
	case strings.HasPrefix(secret, secretPrefix):
		raw, err := decodeBase64(secret[len(secretPrefix):])
		if err != nil {
			return Key{}, refuseSecret("The part after whsec_ isn't base64 (standard alphabet, with padding). Paste the complete secret.")
		}
		if len(raw) < minStandardKey || len(raw) > maxStandardKey {
			return Key{}, refuseSecret(fmt.Sprintf("After whsec_, this secret has %d bytes; it needs %d to %d.",
				len(raw), minStandardKey, maxStandardKey))
		}
		return hmacKey(raw), nil
	case strings.HasPrefix(secret, privatePrefix):
		raw, err := decodeBase64(secret[len(privatePrefix):])
		if err != nil || len(raw) != ed25519.PrivateKeySize {
			return Key{}, refuseSecret("The part after whsk_ isn't the base64 of a 64-byte ed25519 key pair. Paste the complete key.")
		}
		private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
		if !bytes.Equal(private, raw) {
			return Key{}, refuseSecret("The two halves of this whsk_ key don't belong together. Paste the complete key, or create a new pair.")
		}
		return Key{private: private, public: ed25519.PublicKey(private[ed25519.SeedSize:])}, nil
	}
	return Key{}, refuseSecret("A secret of the standard format starts with whsec_ (or whsk_ for an ed25519 key pair).")
}

func parsePlain(secret string) (Key, error) {
	if secret == "" || len(secret) > maxPlainKey {
		return Key{}, refuseSecret(fmt.Sprintf("A secret of this format can have 1 to %d bytes; this one has %d.", maxPlainKey, len(secret)))
	}
	if !utf8.ValidString(secret) || strings.ContainsFunc(secret, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return Key{}, refuseSecret("The secret contains a line break, another control character, or invalid UTF-8. Paste it without them.")
	}
	return hmacKey([]byte(secret)), nil
}

func refuseSecret(detail string) error { return fault.InvalidField("secret", "secret_refused", detail) }

// decodeBase64 is strict: the decoder itself would skip line breaks and accept stray bits at the end, and then two
// texts would be one key.
func decodeBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}

func hmacKey(secret []byte) Key { return hashKey(sha256.New, secret) }

func poolKey(h func() hash.Hash) Key {
	return Key{macs: &sync.Pool{New: func() any { return &mac{hash: h()} }}}
}

// IsZero reports whether the key is absent: the zero Key, which ParseKey never returns without an error.
func (k Key) IsZero() bool { return k.macs == nil && k.private == nil }

// Asymmetric reports whether it is an ed25519 key, which only the standard format knows.
func (k Key) Asymmetric() bool { return k.private != nil }

// Public is the whpk_ text of an ed25519 key, which is no secret; empty for an HMAC key.
func (k Key) Public() string {
	if k.public == nil {
		return ""
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(k.public)
}

// Format keeps keys out of logs whatever the verb, %#v and %x included.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("redacted")) }

// NewSecret makes an HMAC secret of 32 random bytes. Its text works in every format.
func NewSecret(random [32]byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(random[:])
}

// NewKeyPair makes an ed25519 key pair of 32 random bytes: the whsk_ secret and the whpk_ key for the receiver.
func NewKeyPair(seed [32]byte) (secret, public string) {
	private := ed25519.NewKeyFromSeed(seed[:])
	return privatePrefix + base64.StdEncoding.EncodeToString(private),
		publicPrefix + base64.StdEncoding.EncodeToString(private[ed25519.SeedSize:])
}
