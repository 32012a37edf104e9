package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/fault"
)

// Signing is how one endpoint's requests are signed. Check it once with Validate. It can then be used concurrently.
type Signing struct {
	Format Format
	Prefix string // {P}; empty is DefaultPrefix
	Keys   []Key  // the live keys, newest first
	// Rotation says whether every key signs or the Slot's alone; empty is the format's default.
	Rotation Rotation
	// Slot is the key that signs alone: after a rotation the old key's index, until the member switches or the overlap
	// ends. An index past the end means the oldest key.
	Slot int
	// Shape is what the endpoint changes about the format; nil is nothing. Call Prepare where it is set.
	Shape *Shape
	// Also signs a second time, in headers of its own; nil is one signature.
	Also *Signing
	// Public also signs, in the Standard format alone, whatever the rotation; nil is no further signature.
	Public *Key

	names  *names // those of the shape
	signer *signer
}

// Prepare makes the shape ready to be used, once for many requests.
func (s *Signing) Prepare() {
	if s.Shape == nil {
		return
	}
	n := Wire{Format: s.Format, Prefix: s.Prefix, Shape: s.Shape}.names()
	s.names = &n
	if s.Format == Templated && s.Shape.Signature != nil {
		s.signer = s.Shape.Signature.signer()
	}
}

// Validate says whether requests can be signed: a known format, a valid prefix, at least one key, each fit for the
// format. A sender that gets an error here must not send: Headers would leave the signature out.
func (s Signing) Validate() error {
	if !s.Format.Valid() {
		return fault.InvalidField("format", "format_unknown", "There is no such format. "+useFormats)
	}
	if s.Prefix != "" {
		if err := checkPrefix(s.Prefix); err != nil {
			return err
		}
	}
	if len(s.Keys) == 0 {
		return fault.InvalidField("secret", "secret_missing", "The endpoint has no live secret. Rotate its secret to create one.")
	}
	for _, k := range s.Keys {
		if k.IsZero() || (k.Asymmetric() && s.Format != Standard) {
			return refuseSecret(fmt.Sprintf("One of the endpoint's keys can't sign in the %s format. Rotate its secret.", s.Format))
		}
	}
	if s.Format == Templated && s.signer == nil {
		return fault.InvalidField("wire.signature", "wire_template_missing", "The format template needs a signature: its value and what is signed.")
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
// mark where it is one. body is what AppendBody made. Content-Type and User-Agent are the sender's. Keys appear in
// their order in Signing, so the newest signature comes first; where one key signs alone it is the Slot's.
func (s Signing) Headers(dst []Header, m Message, body []byte, send Send) []Header {
	if s.Shape != nil && s.Shape.MessageID && m.DeliveryID != "" {
		m.EventID = m.DeliveryID
	}
	stamp := strconv.FormatInt(send.At.Unix(), 10)
	n := s.names
	if n == nil {
		plain := namesOf(s.Format, s.Prefix)
		n = &plain
	}
	first := len(dst)
	dst = appendHeaders(dst, s.Format, n, m, s.signature(m.EventID, stamp, body), send)
	if s.Also != nil {
		dst = appendAlso(dst, first, s.Also.Headers(nil, m, body, send))
	}
	return dst
}

// appendAlso adds the headers of the second signature that the first has not set.
func appendAlso(dst []Header, first int, also []Header) []Header {
	for _, h := range also {
		there := false
		for _, d := range dst[first:] {
			there = there || strings.EqualFold(d.Name, h.Name)
		}
		if !there {
			dst = append(dst, h)
		}
	}
	return dst
}

// SignAlso is the second signing of a shape. It is nil where the secret can't sign: the first signature goes without
// it.
func SignAlso(a *AlsoSign, secret string) *Signing {
	w := a.Wire()
	key, err := w.ParseKey(secret)
	if err != nil {
		return nil
	}
	s := Signing{Format: w.Format, Prefix: w.Prefix, Shape: w.Shape, Keys: []Key{key}}
	s.Prepare()
	if s.Validate() != nil {
		return nil
	}
	return &s
}

// Kept is the text of a request's signatures, to be kept with the attempt: one a line.
func (s Signing) Kept(headers []Header) string {
	if s.names == nil && s.Also == nil {
		return Of(headers)
	}
	kept := valueOf(headers, s.Wire(Message{}).names().signature)
	if s.Also != nil {
		kept += "\n" + valueOf(headers, s.Also.Wire(Message{}).names().signature)
	}
	return kept
}

// KeptWith is Kept with further headers, which are kept as they are.
func KeptWith(kept string, headers []Header) string {
	for i, h := range headers {
		if kept += "\n"; i == 0 {
			kept += "\n"
		}
		kept += h.Name + ": " + h.Value
	}
	return kept
}

func valueOf(headers []Header, name string) string {
	for _, h := range headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// SentHeaders are the headers of an attempt that was made: those that Headers gave it, with the signature and the
// further headers that were kept.
func SentHeaders(w Wire, m Message, signature string, send Send) []Header {
	n := w.names()
	signature, further, _ := strings.Cut(signature, "\n\n")
	kept, second, two := strings.Cut(signature, "\n")
	out := appendHeaders(nil, w.Format, &n, m, kept, send)
	if two && w.Shape != nil && w.Shape.AlsoSign != nil {
		also := w.Shape.AlsoSign.Wire()
		n := also.names()
		out = appendAlso(out, 0, appendHeaders(nil, also.Format, &n, m, second, send))
	}
	for line := range strings.Lines(further) {
		if name, value, is := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); is {
			out = append(out, Header{name, value})
		}
	}
	return out
}

func appendHeaders(dst []Header, f Format, n *names, m Message, signature string, send Send) []Header {
	put := func(name, value string) {
		if name != "" {
			dst = append(dst, Header{name, value})
		}
	}
	put(n.id, m.EventID)
	put(n.event, m.Type)
	put(n.endpoint, m.EndpointID)
	if f == Raw || f == Templated {
		put(n.delivery, m.dedupeID())
	} else {
		put(n.delivery, m.DeliveryID)
	}
	if n.rfc3339 {
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
	if s.signer != nil {
		return string(s.signer.append(value, keys[0], id, stamp, body))
	}
	for _, k := range keys {
		if len(value) > 0 {
			value = append(value, separator(s.Format))
		}
		value = k.appendSignature(value, s.Format, id, stamp, body)
	}
	if s.Public != nil && s.Format == Standard {
		value = s.Public.appendSignature(append(value, ' '), s.Format, id, stamp, body)
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
