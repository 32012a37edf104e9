// Package id holds Posthorn's identifiers: a UUIDv7 (RFC 9562) inside, a type-prefixed lower-case base32 text outside
// (`evt_01jd...`). The first 48 bits are the creation time in milliseconds, so an id names the day partition of its
// row.
package id

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// Kind is the prefix of an id's text form, without the underscore.
type Kind string

// The kinds of ids, one per noun of the data model.
const (
	Tenant     Kind = "ten"
	Person     Kind = "per"
	Member     Kind = "mem"
	Invitation Kind = "inv"
	Session    Kind = "ses"
	PortalLink Kind = "plk"
	Operator   Kind = "opr"
	Key        Kind = "key"
	Event      Kind = "evt"
	Endpoint   Kind = "ep"
	Secret     Kind = "sec"
	Delivery   Kind = "dlv"
	Attempt    Kind = "att"
	Batch      Kind = "bat" // a request with several events
	Worker     Kind = "wrk"
	Audit      Kind = "aud"
	Notice     Kind = "ntc"
	Mail       Kind = "eml"
	Job        Kind = "job"
	SigningKey Kind = "sgk" // of signatures that receivers verify with a public key
	Share      Kind = "shr" // a read-only link to a delivery
	Pause      Kind = "pse"
	Alert      Kind = "alr" // of the platform's operators
	Request    Kind = "req"
	Received   Kind = "rcv" // a request that a test inbox received
	Source     Kind = "src"
)

// UUID is the 16 bytes of an id. The zero value means "none".
type UUID [16]byte

// errMalformed says that a text is not an id of the wanted kind.
var errMalformed = errors.New("malformed id")

// Crockford's base32 alphabet in lower case: no i, l, o, u.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var decode = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	return t
}()

const textLength = 26

// New makes a version 7 UUID of a moment and 10 random bytes. The caller supplies both, so that rules and tests stay
// deterministic.
func New(at time.Time, random [10]byte) UUID {
	var u UUID
	ms := uint64(at.UnixMilli())
	binary.BigEndian.PutUint64(u[:8], ms<<16)
	copy(u[6:], random[:])
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Within makes an id of the same moment as another: that of the n-th thing that was made together with it. Ids made
// within one id sort by n, and lie beside each other.
func (u UUID) Within(n int, random [6]byte) UUID {
	binary.BigEndian.PutUint16(u[8:], 0x8000|uint16(min(n, 0x3fff)))
	copy(u[10:], random[:])
	return u
}

// Time is the creation time in the id, UTC, in whole milliseconds.
func (u UUID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(u[:8]) >> 16)).UTC()
}

// FirstAt is above every id that was made before a moment, and at or below all others. Ids have whole milliseconds: a
// moment between two counts as the later one.
func FirstAt(at time.Time) (first UUID) {
	ms := max(at.UnixMilli(), 0)
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	binary.BigEndian.PutUint64(first[:8], uint64(ms)<<16)
	return first
}

// Compare orders ids as the database does.
func (u UUID) Compare(other UUID) int { return bytes.Compare(u[:], other[:]) }

// Last is greater than every id that is made.
var Last = UUID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// IsZero reports whether the id is absent.
func (u UUID) IsZero() bool { return u == UUID{} }

// String is the hexadecimal form, as PostgreSQL shows it. People see Kind.Format instead.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:36], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Format is the outer form of an id: prefix, underscore, 26 characters of base32 that sort as the bytes do.
func (k Kind) Format(u UUID) string {
	out := make([]byte, 0, len(k)+1+textLength)
	out = append(out, k...)
	out = append(out, '_')
	hi, lo := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	for shift := 125; shift >= 0; shift -= 5 {
		var v uint64
		switch {
		case shift >= 64:
			v = hi >> (shift - 64)
		case shift > 59:
			v = hi<<(64-shift) | lo>>shift
		default:
			v = lo >> shift
		}
		out = append(out, alphabet[v&31])
	}
	return string(out)
}

// Rule says what an id of the kind looks like: "ep_ and 26 lowercase letters and digits".
func (k Kind) Rule() string {
	return string(k) + "_ and 26 lowercase letters and digits"
}

// None is an id that no row has. It stands for a text that is no id where such a text is as unknown as a random id.
var None = UUID{15: 1}

// Parse reads the outer form. Anything but the exact canonical text of this kind is errMalformed.
func (k Kind) Parse(s string) (UUID, error) {
	var u UUID
	if len(s) != len(k)+1+textLength || s[:len(k)] != string(k) || s[len(k)] != '_' {
		return u, errMalformed
	}
	var hi, lo uint64
	for i := len(k) + 1; i < len(s); i++ {
		v := decode[s[i]]
		if v == 0xff || (i == len(k)+1 && v > 7) {
			return UUID{}, errMalformed
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return u, nil
}
