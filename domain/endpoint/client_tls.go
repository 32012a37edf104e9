package endpoint

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/fault"
)

// ClientTLS is what an endpoint's connections have beyond the usual TLS: a certificate of ours, and whom they trust. It
// is stored sealed, as its JSON.
type ClientTLS struct {
	Certificate string `json:"certificate,omitempty"` // in PEM, our own first; empty: none
	Key         string `json:"key,omitempty"`         // of the certificate, in PKCS #8; write-only
	CA          string `json:"ca,omitempty"`          // in PEM: by which alone the receiver is judged; empty: by those that the machine trusts

	// A certificate that was requested and is not installed yet.
	Request    string `json:"request,omitempty"`     // the certificate signing request, in PEM
	RequestKey string `json:"request_key,omitempty"` // its key; write-only
}

// Connects is what connections have of it; nil: nothing.
func (t *ClientTLS) Connects() *ClientTLS {
	if t == nil || t.Certificate == "" && t.CA == "" {
		return nil
	}
	return &ClientTLS{Certificate: t.Certificate, Key: t.Key, CA: t.CA}
}

// Format keeps the key out of logs whatever the verb.
func (ClientTLS) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("tls redacted")) }

// Leaf is our own certificate; nil: none.
func (t *ClientTLS) Leaf() *x509.Certificate {
	if t == nil || t.Certificate == "" {
		return nil
	}
	all, _, refusal := Certificates(t.Certificate)
	if refusal != "" {
		return nil
	}
	return all[0]
}

// Ends is when the first certificate of our chain ends; zero: there is none.
func (t *ClientTLS) Ends() (first time.Time) {
	if t == nil || t.Certificate == "" {
		return first
	}
	all, _, _ := Certificates(t.Certificate)
	for _, c := range all {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

// tlsShown is ClientTLS as the API shows it.
type tlsShown struct {
	Certificate *string    `json:"client_certificate"`
	Subject     *string    `json:"subject"`
	Ends        *time.Time `json:"expires_at"`
	CA          *string    `json:"ca_certificate"`
	Request     *string    `json:"certificate_request"`
}

func showTLS(s Settings) any {
	t := s.TLS
	if t == nil {
		return nil
	}
	var out tlsShown
	if t.Certificate != "" {
		out.Certificate = &t.Certificate
	}
	if leaf := t.Leaf(); leaf != nil {
		subject, ends := strings.ToValidUTF8(leaf.Subject.String(), "?"), t.Ends().UTC()
		out.Subject, out.Ends = &subject, &ends
	}
	if t.CA != "" {
		out.CA = &t.CA
	}
	if t.Request != "" {
		out.Request = &t.Request
	}
	return out
}

// setTLS changes the parts that are given; null removes all, or the part. The key of a certificate is kept if it fits
// the next one: many renew with the same key.
func setTLS(s *Settings, raw json.RawMessage) error {
	if string(raw) == "null" {
		s.TLS = nil
		return nil
	}
	var in struct {
		Certificate json.RawMessage `json:"client_certificate"`
		Key         *string         `json:"private_key"`
		CA          json.RawMessage `json:"ca_certificate"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return fault.InvalidField("tls", "body_malformed", "tls has another shape.")
	}
	t := ClientTLS{}
	if s.TLS != nil {
		t = *s.TLS
	}
	if len(in.Certificate) > 0 {
		if t.Certificate = strings.TrimSpace(unquote(in.Certificate)); t.Certificate == "" {
			t.Key = ""
		}
	}
	if leaf := t.Leaf(); leaf != nil && t.RequestKey != "" && isKeyOf(t.RequestKey, leaf) {
		t.Key, t.Request, t.RequestKey = t.RequestKey, "", "" // what was requested is installed
	}
	if in.Key != nil && *in.Key != "" && *in.Key != Marker {
		t.Key = *in.Key
	}
	if len(in.CA) > 0 {
		t.CA = strings.TrimSpace(unquote(in.CA))
	}
	if s.TLS = &t; t == (ClientTLS{}) {
		s.TLS = nil
	}
	return nil
}

// tls checks the certificates, and leaves them in the form in which they are stored.
func (c *collector) tls(s *Settings) {
	t := s.TLS
	if t == nil {
		return
	}
	if s.Kind != HTTP {
		c.refuse("tls", "tls_unwanted", fmt.Sprintf("An endpoint of the kind %s has no tls. Leave it out.", s.Kind))
		return
	}
	if t.CA != "" {
		if _, tidy, refusal := Certificates(t.CA); refusal != "" {
			c.refuse("tls.ca_certificate", "ca_certificate_refused", refusal)
		} else {
			t.CA = tidy
		}
	}
	if t.Certificate == "" {
		if t.Key != "" {
			c.refuse("tls.client_certificate", "client_certificate_refused", "A private key needs its certificate. Send both.")
		}
		return
	}
	chain, tidy, refusal := Certificates(t.Certificate)
	if refusal != "" {
		c.refuse("tls.client_certificate", "client_certificate_refused", refusal)
		return
	}
	t.Certificate = tidy
	if t.Key == "" {
		c.refuse("tls.private_key", "private_key_refused", "Send the private key of the certificate.")
		return
	}
	key, tidy, refusal := PrivateKey(t.Key)
	if refusal != "" {
		c.refuse("tls.private_key", "private_key_refused", refusal)
		return
	}
	t.Key = tidy
	if !isPublicKey(key.Public(), chain[0].PublicKey) {
		c.refuse("tls.private_key", "private_key_refused",
			"This private key doesn't belong to the first certificate. Send the key of that certificate, and the certificate before its intermediates.")
	}
}

func isPublicKey(key, other crypto.PublicKey) bool {
	public, ok := key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(other)
}

// isKeyOf reports whether a stored private key is that of a certificate.
func isKeyOf(key string, c *x509.Certificate) bool {
	signer, _, refusal := PrivateKey(key)
	return refusal == "" && isPublicKey(signer.Public(), c.PublicKey)
}

// maxCommonName is the bound of X.509 (ub-common-name), in characters.
const maxCommonName = 64

// RequestCertificate makes a key, which never leaves the server, and a request for a certificate of it (PKCS #10). An
// earlier request is replaced; the certificate in use stays.
func (s Settings) RequestCertificate(random io.Reader, commonName string) (Settings, error) {
	if commonName = strings.TrimSpace(commonName); commonName == "" {
		commonName = "posthorn"
	}
	if utf8.RuneCountInString(commonName) > maxCommonName || !clean(commonName) {
		return s, fault.InvalidField("common_name", "text_malformed", fmt.Sprintf("common_name can have at most %d characters, without control characters.", maxCommonName))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return s, err
	}
	request, err := x509.CreateCertificateRequest(random, &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}}, key)
	if err != nil {
		return s, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return s, err
	}
	s = s.Clone()
	if s.TLS == nil {
		s.TLS = &ClientTLS{}
	}
	s.TLS.Request = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	s.TLS.RequestKey = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return s, nil
}
