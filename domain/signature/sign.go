package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"posthorn/domain/fault"
)

// Signing is how one endpoint's requests are signed. Check it once with Validate; it may then be used concurrently.
type Signing struct {
	Format Format
	Prefix string // {P}; empty is DefaultPrefix
	Keys   []Key  // the live keys, newest first
	// Rotation says whether every key signs or the Slot's alone; empty is the format's default.
	Rotation Rotation
	// Slot is the key that signs alone: after a rotation the old key's index, until the member switches or the overlap
	// ends. An index past the end means the oldest key.
	Slot int
}

// Validate says whether requests can be signed: a known format, a valid prefix, at least one key, each fit for the
// format. A sender that gets an error here must not send: Headers would leave the signature out.
func (s Signing) Validate() error {
	if !s.Format.Valid() {
		return fault.InvalidField("format", "format_unknown", "There is no such format. Use standard, x-webhook, t-v1, body-hex or raw.")
	}
	if s.Prefix != "" {
		if err := ValidPrefix(s.Prefix); err != nil {
			return err
		}
	}
	if len(s.Keys) == 0 {
		return fault.InvalidField("secret", "secret_missing", "The endpoint has no live secret. Rotate its secret to make one.")
	}
	for _, k := range s.Keys {
		if k.IsZero() || (k.Asymmetric() && s.Format != Standard) {
			return refuseSecret(fmt.Sprintf("One of the endpoint's keys can't sign in the %s format. Rotate its secret.", s.Format))
		}
	}
	return nil
}

// Send is what differs between two attempts at the same message.
type Send struct {
	At       time.Time // when the attempt is made; its whole second is signed
	Attempt  int       // counts from 1
	Replayed bool      // the delivery is a replay
}

// Header is one header field, its name in the format's own spelling.
type Header struct{ Name, Value string }

// Headers appends the headers of one attempt to dst: ids, type, timestamp, signature, attempt number, and the replay
// mark where it is one. body is what AppendBody made. Content-Type and User-Agent are the sender's. Keys appear in their
// order in Signing, so the newest signature comes first; where one key signs alone it is the Slot's.
func (s Signing) Headers(dst []Header, m Message, body []byte, send Send) []Header {
	return appendHeaders(dst, s.Format, s.Prefix, m, s.signature(m.EventID, strconv.FormatInt(send.At.Unix(), 10), body), send)
}

// SentHeaders are the headers of an attempt that was made: those that Headers gave it, with the signature that was kept.
func SentHeaders(w Wire, m Message, signature string, send Send) []Header {
	return appendHeaders(nil, w.Format, w.Prefix, m, signature, send)
}

func appendHeaders(dst []Header, f Format, prefix string, m Message, signature string, send Send) []Header {
	n := namesOf(f, prefix)
	put := func(name, value string) {
		if name != "" {
			dst = append(dst, Header{name, value})
		}
	}
	put(n.id, m.EventID)
	put(n.event, m.Type)
	put(n.endpoint, m.EndpointID)
	if f == Raw {
		put(n.delivery, m.DedupeID())
	} else {
		put(n.delivery, m.DeliveryID)
	}
	if f == BodyHex {
		put(n.timestamp, string(appendTime(make([]byte, 0, 32), send.At)))
	} else {
		put(n.timestamp, strconv.FormatInt(send.At.Unix(), 10))
	}
	if signature != "" {
		put(n.signature, signature)
	}
	attempt := strconv.Itoa(send.Attempt)
	if send.Attempt > 1 {
		put(n.retry, attempt)
	}
	put(n.attempt, attempt)
	if send.Replayed {
		put(n.resend, "true")
		put(n.replayed, "true")
	}
	return dst
}

// signature is the value of the signature header; empty where no key can sign.
func (s Signing) signature(id, stamp string, body []byte) string {
	if len(s.Keys) == 0 {
		return ""
	}
	var room [256]byte
	value := room[:0]
	if s.Format == TV1 {
		value = append(append(value, "t="...), stamp...)
	}
	keys := s.Keys
	if s.Format.Rotation(s.Rotation) == SignOne {
		slot := min(max(s.Slot, 0), len(keys)-1)
		keys = keys[slot : slot+1]
	}
	for _, k := range keys {
		if len(value) > 0 {
			value = append(value, separator(s.Format))
		}
		value = k.appendSignature(value, s.Format, id, stamp, body)
	}
	return string(value)
}

func separator(f Format) byte {
	if f == Standard {
		return ' '
	}
	return ','
}

// appendSignature appends one key's signature with its version mark.
func (k Key) appendSignature(dst []byte, f Format, id, stamp string, body []byte) []byte {
	if k.private != nil {
		if f != Standard {
			return dst
		}
		content := append(appendSignedHead(make([]byte, 0, len(id)+len(stamp)+2+len(body)), f, id, stamp), body...)
		return base64.StdEncoding.AppendEncode(append(dst, "v1a,"...), ed25519.Sign(k.private, content))
	}
	if k.macs == nil {
		return dst
	}
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	m.hash.Reset()
	m.hash.Write(appendSignedHead(m.head[:0], f, id, stamp))
	m.hash.Write(body)
	sum := m.hash.Sum(m.sum[:0])
	switch f {
	case Standard:
		return base64.StdEncoding.AppendEncode(append(dst, "v1,"...), sum)
	case XWebhook, TV1:
		return hex.AppendEncode(append(dst, "v1="...), sum)
	default:
		return hex.AppendEncode(dst, sum)
	}
}

// appendSignedHead appends what is signed before the body.
func appendSignedHead(dst []byte, f Format, id, stamp string) []byte {
	switch f {
	case BodyHex:
		return dst
	case Standard:
		dst = append(append(dst, id...), '.')
	}
	return append(append(dst, stamp...), '.')
}
