// Package credential hashes and checks passwords, authenticator codes, and recovery codes.
package credential

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/crypto/argon2"

	"posthorn/handlers"
)

// The cost of argon2id: the first choice of the OWASP password storage cheat sheet, and the minimum in SECURITY.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	saltSize  = 16
	hashSize  = 32
)

// Passwords hashes and checks passwords, a few at a time: each takes a core for some 40 ms and 19 MiB.
type Passwords struct {
	slots chan struct{}
	dummy string
}

// NewPasswords makes Passwords that use at most as many cores as there are.
func NewPasswords() *Passwords {
	p := &Passwords{slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	p.dummy = encode(make([]byte, saltSize), make([]byte, hashSize))
	return p
}

func (p *Passwords) take(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return handlers.ErrBusy
	}
}

// Hash makes a PHC string ($argon2id$v=19$m=...,t=...,p=...$salt$hash) of a password.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if err := p.take(ctx); err != nil {
		return "", err
	}
	defer func() { <-p.slots }()
	var salt [saltSize]byte
	_, _ = rand.Read(salt[:]) // never fails: the program would have crashed
	return encode(salt[:], argon2.IDKey([]byte(password), salt[:], passes, memoryKiB, lanes, hashSize)), nil
}

// Verify reports whether a password is the hashed one. An empty hash, of an account that does not exist, takes as
// long and never matches.
func (p *Passwords) Verify(ctx context.Context, phc, password string) (bool, error) {
	exists := phc != ""
	if !exists {
		phc = p.dummy
	}
	c, err := decode(phc)
	if err != nil {
		return false, err
	}
	if err := p.take(ctx); err != nil {
		return false, err
	}
	defer func() { <-p.slots }()
	got := argon2.IDKey([]byte(password), c.salt, c.passes, c.memory, c.lanes, uint32(len(c.hash)))
	return subtle.ConstantTimeCompare(got, c.hash) == 1 && exists, nil
}

func encode(salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memoryKiB, passes, lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

type costed struct {
	memory, passes uint32
	lanes          uint8
	salt, hash     []byte
}

var errNoHash = errors.New("a stored password is not an argon2id hash")

// decode reads the cost from the hash itself, so that new hashes can have a higher one.
func decode(phc string) (c costed, err error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, errNoHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.lanes); err != nil {
		return c, errNoHash
	}
	if c.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return c, errNoHash
	}
	if c.hash, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(c.hash) != hashSize ||
		c.memory == 0 || c.passes == 0 || c.lanes == 0 {
		return c, errNoHash
	}
	return c, nil
}
