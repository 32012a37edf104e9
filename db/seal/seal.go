// Package seal encrypts the few secrets that Posthorn must be able to read again: signing secrets and custom headers. A
// stored value says which key sealed it, and opens only for one tenant and one object. If a ciphertext is moved to
// another row, opening it fails, so it never signs another tenant's requests.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

const (
	version   = 1
	keySize   = 32
	idSize    = 4
	headSize  = 1 + idSize
	nonceSize = 12
	tagSize   = 16
)

// ErrUnopened says that a sealed value can't be read: no key of the ring sealed it, it was changed, or it belongs to
// another tenant or object. The error does not say which, since that would help a forger.
var ErrUnopened = errors.New("sealed value does not open: it was sealed under a master key that is not configured, or belongs to another row")

// Ring holds the master keys: the first seals, all open. It is read-only after NewRing, safe for concurrent use, and
// never prints its keys.
type Ring struct {
	keys []key
}

type key struct {
	id   [idSize]byte
	aead cipher.AEAD
	mac  []byte // signs tokens
}

// NewRing reads POSTHORN_MASTER_KEY: one or more keys of 32 bytes in base64, separated by commas, newest first. The
// error never contains a key.
func NewRing(keys string) (*Ring, error) {
	r := &Ring{}
	for i, text := range strings.Split(keys, ",") {
		text = strings.TrimSpace(text)
		if text == "" && i > 0 {
			continue // an extra comma
		}
		raw, err := decode(text)
		if err != nil || len(raw) != keySize {
			return nil, fault.New(fault.Invalid, "master_key_invalid", fmt.Sprintf(
				"Key %d of POSTHORN_MASTER_KEY is not base64 of 32 bytes. Make one with `openssl rand -base64 32`.", i+1))
		}
		k, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		for _, other := range r.keys {
			if other.id == k.id {
				return nil, fault.New(fault.Invalid, "master_key_invalid", fmt.Sprintf(
					"Key %d of POSTHORN_MASTER_KEY is listed twice. List every key once, the newest first.", i+1))
			}
		}
		r.keys = append(r.keys, k)
	}
	return r, nil
}

// decode accepts both alphabets of base64, padded or not: keys are pasted from many tools.
func decode(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "-_") {
		return base64.RawURLEncoding.Strict().DecodeString(text)
	}
	return base64.RawStdEncoding.Strict().DecodeString(text)
}

func newKey(raw []byte) (key, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	mac, err := hkdf.Key(sha256.New, raw, nil, "posthorn token v1", sha256.Size)
	if err != nil {
		return key{}, err
	}
	k := key{aead: aead, mac: mac}
	sum := sha256.Sum256(raw)
	copy(k.id[:], sum[:])
	return k, nil
}

// Generate returns the text of a new key.
func Generate(random [32]byte) string { return base64.StdEncoding.EncodeToString(random[:]) }

// KeyID is the first 8 hexadecimal digits of the SHA-256 of the newest key. Operators compare it between machines.
func (r *Ring) KeyID() string { return hex.EncodeToString(r.keys[0].id[:]) }

// Seal encrypts under the newest key, for one tenant and one object. The result is a version byte, the key's id, the
// nonce and the ciphertext with its tag.
func (r *Ring) Seal(plaintext []byte, tenant, object id.UUID) []byte {
	k := r.keys[0]
	out := make([]byte, 0, headSize+nonceSize+len(plaintext)+tagSize)
	out = append(append(out, version), k.id[:]...)
	//nolint:gosec // G407: this AEAD draws its own nonce
	return k.aead.Seal(out, nil, plaintext, associated(k.id, tenant, object))
}

// Open decrypts a value that was sealed for the same tenant and object under any key of the ring; otherwise it returns
// ErrUnopened.
func (r *Ring) Open(sealed []byte, tenant, object id.UUID) ([]byte, error) {
	k := r.find(sealed)
	if k == nil {
		return nil, ErrUnopened
	}
	plain, err := k.aead.Open(nil, nil, sealed[headSize:], associated(k.id, tenant, object))
	if err != nil {
		return nil, ErrUnopened
	}
	return plain, nil
}

// Head is the beginning of every value that is sealed under the newest key: the version byte and the key's id.
func (r *Ring) Head() []byte { return append([]byte{version}, r.keys[0].id[:]...) }

func (r *Ring) find(sealed []byte) *key {
	if len(sealed) < headSize || sealed[0] != version {
		return nil
	}
	for i := range r.keys {
		if bytes.Equal(sealed[1:headSize], r.keys[i].id[:]) {
			return &r.keys[i]
		}
	}
	return nil
}

// associated binds a ciphertext to its key, tenant and object: three fixed lengths, so that no two sets have the same
// bytes.
func associated(keyID [idSize]byte, tenant, object id.UUID) []byte {
	out := make([]byte, 0, idSize+2*len(tenant))
	out = append(out, keyID[:]...)
	out = append(out, tenant[:]...)
	return append(out, object[:]...)
}

// Format keeps keys out of logs, with any verb.
func (r *Ring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("redacted")) }
