// Code generated from domain/signature/template.go. DO NOT EDIT.

package signature

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // GitHub's legacy header; never a default
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"time"

	"posthorn/client/internal/fault"
)

// Template is a signature in a provider's own notation.
type Template struct {
	Value     string `json:"value"`               // of the header, from {hex} or {base64} and {ts}: t={ts},v1={hex}
	Content   string `json:"content"`             // what is signed, from {id}, {ts} and {body}: {ts}.{body}
	Algorithm string `json:"algorithm,omitempty"` // empty: HMACSHA256
	Key       string `json:"key,omitempty"`       // how the secret's text becomes the key; empty: KeyText
}

// The algorithms of a template.
const (
	hmacSHA256 = "hmac-sha256"
	hmacSHA512 = "hmac-sha512"
	hmacSHA1   = "hmac-sha1" // for receivers that know nothing else
)

// algorithms lists them, the default first.
func algorithms() []string { return []string{hmacSHA256, hmacSHA512, hmacSHA1} }

// How a secret's text becomes a key.
const (
	keyText   = "text"   // the text's bytes
	keyBase64 = "base64" // the bytes that the text is base64 of; whsec_ in front is left out
)

// maxTemplate is the length of the longest value or content, in characters.
const maxTemplate = 200

// part is a literal text or, with a name, a placeholder.
type part struct{ literal, name string }

// parts cuts a template. A placeholder that is not among the known ones is an error.
func parts(text string, known ...string) ([]part, error) {
	var out []part
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			out = append(out, part{literal: before})
		}
		if !found {
			return out, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		ok := false
		for _, k := range known {
			ok = ok || k == name
		}
		if !closed || !ok {
			return nil, fmt.Errorf("{%.20s} is no placeholder", name)
		}
		out, text = append(out, part{name: name}), after
	}
	return out, nil
}

func count(list []part, name string) (n int) {
	for _, p := range list {
		if p.name == name {
			n++
		}
	}
	return n
}

// wrong says what keeps the template from being used; empty for nothing.
func (t *Template) wrong() string {
	value, err := parts(t.Value, "hex", "base64", "ts")
	content, errContent := parts(t.Content, "id", "ts", "body")
	visible := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	}
	switch {
	case len(t.Value) > maxTemplate || len(t.Content) > maxTemplate || !visible(t.Value) || !visible(t.Content):
		return fmt.Sprintf("value and content have at most %d visible ASCII characters.", maxTemplate)
	case err != nil:
		return "In value, " + err.Error() + ". Use {hex} or {base64}, and {ts}."
	case errContent != nil:
		return "In content, " + errContent.Error() + ". Use {id}, {ts} and {body}."
	case count(value, "hex")+count(value, "base64") != 1 || count(value, "ts") > 1:
		return "value holds {hex} or {base64} once, and {ts} at most once."
	case adjacent(value):
		return "value needs a text between its placeholders."
	case count(content, "body") != 1:
		return "content holds {body} once."
	case t.Algorithm != "" && t.newHash() == nil:
		return "The algorithm is one of " + strings.Join(algorithms(), ", ") + "."
	case t.Key != "" && t.Key != keyText && t.Key != keyBase64:
		return "key is text or base64."
	}
	return ""
}

func adjacent(list []part) bool {
	for i := 1; i < len(list); i++ {
		if list[i].name != "" && list[i-1].name != "" {
			return true
		}
	}
	return false
}

func (t *Template) newHash() func() hash.Hash {
	switch t.Algorithm {
	case "", hmacSHA256:
		return sha256.New
	case hmacSHA512:
		return sha512.New
	case hmacSHA1:
		return sha1.New
	}
	return nil
}

// key reads a secret as the template says.
func (t *Template) key(secret string) (Key, error) {
	if t.Key != keyBase64 {
		k, err := parsePlain(secret)
		if err != nil || t.Algorithm == "" || t.Algorithm == hmacSHA256 {
			return k, err
		}
		return hashKey(t.newHash(), []byte(secret)), nil
	}
	raw, err := decodeBase64(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(raw) == 0 || len(raw) > maxPlainKey {
		return Key{}, refuseSecret("The secret is not base64 (the standard alphabet, with padding) of 1 to 256 bytes. Paste the secret whole.")
	}
	return hashKey(t.newHash(), raw), nil
}

// signer is a template that was cut once.
type signer struct {
	value, content []part
	usesID, usesTS bool // in what is signed
	tsInValue      bool
}

// Format keeps a signer short in logs.
func (s *signer) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("signer")) }

func (t *Template) signer() *signer {
	s := &signer{}
	s.value, _ = parts(t.Value, "hex", "base64", "ts") // it was checked
	s.content, _ = parts(t.Content, "id", "ts", "body")
	s.usesID, s.usesTS = count(s.content, "id") > 0, count(s.content, "ts") > 0
	s.tsInValue = count(s.value, "ts") > 0
	return s
}

// append appends the header's value.
func (s *signer) append(dst []byte, k Key, id, stamp string, body []byte) []byte {
	if k.macs == nil {
		return dst
	}
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	m.hash.Reset()
	for _, p := range s.content {
		switch p.name {
		case "id":
			m.hash.Write(append(m.head[:0], id...))
		case "ts":
			m.hash.Write(append(m.head[:0], stamp...))
		case "body":
			m.hash.Write(body)
		default:
			m.hash.Write(append(m.head[:0], p.literal...))
		}
	}
	sum := m.hash.Sum(m.sum[:0])
	for _, p := range s.value {
		switch p.name {
		case "ts":
			dst = append(dst, stamp...)
		case "hex":
			dst = hex.AppendEncode(dst, sum)
		case "base64":
			dst = base64.StdEncoding.AppendEncode(dst, sum)
		default:
			dst = append(dst, p.literal...)
		}
	}
	return dst
}

// stamp takes the time out of a header's value; ok is false where the value has not the template's shape.
func (s *signer) stamp(value string) (stamp string, ok bool) {
	for i, p := range s.value {
		if p.name == "" {
			rest, found := strings.CutPrefix(value, p.literal)
			if !found {
				return "", false
			}
			value = rest
			continue
		}
		end := len(value)
		if i+1 < len(s.value) {
			if end = strings.Index(value, s.value[i+1].literal); end < 0 {
				return "", false
			}
		}
		if p.name == "ts" {
			stamp = value[:end]
		}
		value = value[end:]
	}
	return stamp, value == ""
}

// verifyTemplate is Verify in the format template.
func (w Wire) verifyTemplate(n names, header func(string) string, body []byte, keys []Key, now time.Time, tolerance time.Duration) error {
	s := w.Shape.Signature.signer()
	value := header(n.signature)
	if value == "" {
		return missing(n.signature)
	}
	stamp, ok := s.stamp(value)
	if !ok {
		return fault.InvalidField(n.signature, CodeSchemeUnknown, fmt.Sprintf("The signature has not the shape %s.", w.Shape.Signature.Value))
	}
	var id string
	if s.usesID {
		if id = header(n.id); id == "" {
			return missing(n.id)
		}
	}
	if s.usesTS || s.tsInValue {
		at := n.signature
		if !s.tsInValue {
			if at, stamp = n.timestamp, header(n.timestamp); stamp == "" {
				return missing(n.timestamp)
			}
		}
		if err := checkAge(at, stamp, now, tolerance); err != nil {
			return err
		}
	}
	for _, k := range keys {
		want := s.append(nil, k, id, stamp, body)
		if subtle.ConstantTimeCompare(want, []byte(value)) == 1 {
			return nil
		}
	}
	return mismatch(n.signature)
}

func hashKey(h func() hash.Hash, secret []byte) Key {
	return poolKey(func() hash.Hash { return hmac.New(h, secret) })
}
