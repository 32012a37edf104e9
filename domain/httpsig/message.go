// Package httpsig signs requests and responses with ed25519 as HTTP Message Signatures (RFC 9421), with a digest of the
// content (RFC 9530), and publishes the keys that verify them as a JSON Web Key Set. Times come from the caller.
package httpsig

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/signature"
)

// The fields of signed messages.
const (
	DigestField = "Content-Digest"
	InputField  = "Signature-Input"
	Field       = "Signature"
	AgentField  = "Signature-Agent"
)

// IsField reports whether the signatures of a request have a field of this name.
func IsField(name string) bool {
	return slices.ContainsFunc([]string{DigestField, InputField, Field, AgentField}, func(f string) bool { return strings.EqualFold(f, name) })
}

// Component is one covered component of a message.
type Component struct {
	Name   string // in lower case: of a field, or @method and the like
	Params string // as they are written behind the name, such as ;key="bot"; empty: none
	Value  string
}

// Params are the parameters of a signature. Zero ones are left out.
type Params struct {
	Created time.Time
	KeyID   string
	Alg     string
	Expires time.Time
	Nonce   string
	Tag     string
}

// input is the inner list of covered components with the signature's parameters (RFC 9421 section 2.3).
func input(covered []Component, p Params) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, c := range covered {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(c.Name) + c.Params)
	}
	b.WriteByte(')')
	if !p.Created.IsZero() {
		b.WriteString(";created=" + strconv.FormatInt(p.Created.Unix(), 10))
	}
	text := func(name, value string) {
		if value != "" {
			b.WriteString(";" + name + "=" + quote(value))
		}
	}
	text("keyid", p.KeyID)
	text("alg", p.Alg)
	if !p.Expires.IsZero() {
		b.WriteString(";expires=" + strconv.FormatInt(p.Expires.Unix(), 10))
	}
	text("nonce", p.Nonce)
	text("tag", p.Tag)
	return b.String()
}

// quote writes a string of a structured field. Its texts are names, ids and base64 alone.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// base is what is signed (RFC 9421 section 2.5).
func base(covered []Component, input string) []byte {
	var b []byte
	for _, c := range covered {
		b = append(append(append(append(b, quote(c.Name)...), c.Params...), ": "...), c.Value...)
		b = append(b, '\n')
	}
	return append(append(b, `"@signature-params": `...), input...)
}

// Signature is one signature of a message under its label.
type Signature struct{ Label, Input, Value string }

// Sign signs the covered components.
func Sign(label string, key ed25519.PrivateKey, covered []Component, p Params) Signature {
	in := input(covered, p)
	value := ed25519.Sign(key, base(covered, in))
	return Signature{Label: label, Input: in, Value: ":" + base64.StdEncoding.EncodeToString(value) + ":"}
}

// Headers are the two fields of all signatures of a message.
func Headers(signatures []Signature) []signature.Header {
	inputs, values := make([]string, len(signatures)), make([]string, len(signatures))
	for i, s := range signatures {
		inputs[i], values[i] = s.Label+"="+s.Input, s.Label+"="+s.Value
	}
	return []signature.Header{
		{Name: InputField, Value: strings.Join(inputs, ", ")},
		{Name: Field, Value: strings.Join(values, ", ")},
	}
}

// Digest is the Content-Digest of a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}
