package httpsig

import (
	"crypto/ed25519"
	"fmt"
	"net/url"
	"strings"
	"time"

	"posthorn/domain/signature"
)

// Signer is a key that signs. It prints as "redacted" in every form.
type Signer struct {
	Span
	private    ed25519.PrivateKey
	thumbprint string
	webhooks   signature.Key
}

// NewSigner makes the key of 32 bytes.
func NewSigner(seed [ed25519.SeedSize]byte, s Span) Signer {
	private := ed25519.NewKeyFromSeed(seed[:])
	secret, _ := signature.NewKeyPair(seed)
	webhooks, err := signature.ParseKey(signature.Standard, secret)
	if err != nil {
		panic(err) // it was made for this format
	}
	return Signer{Span: s, private: private, thumbprint: Thumbprint(private.Public().(ed25519.PublicKey)), webhooks: webhooks}
}

// Format keeps keys out of logs whatever the verb.
func (s Signer) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("redacted")) }

// Webhooks is the key for v1a signatures of Standard Webhooks.
func (s *Signer) Webhooks() *signature.Key { return &s.webhooks }

// Current is the signer of a moment, among signers with the newest first; nil: none.
func Current(signers []Signer, now time.Time) *Signer {
	for i := range signers {
		if signers[i].signs(now) {
			return &signers[i]
		}
	}
	return nil
}

// Request is a request to sign.
type Request struct {
	Method  string
	URL     *url.URL
	Body    []byte
	Type    string             // of the body
	Headers []signature.Header // of the format
	ID      string             // the name of the header among them by which receivers recognize what they have handled
	At      time.Time
}

// webhookLabel and botLabel are the labels of the two signatures of a request.
const (
	webhookLabel = "webhook"
	botLabel     = "bot"
)

// Webhook signs a request as its tenant: the method, the URL without its scheme, which proxies change, the body with
// its type, and the format's id.
func (s *Signer) Webhook(r Request) (signed Signature, digest string) {
	digest = Digest(r.Body)
	covered := []Component{{Name: "@method", Value: r.Method}, {Name: "@authority", Value: authority(r.URL)}}
	path, query, asks := strings.Cut(r.URL.RequestURI(), "?")
	covered = append(covered, Component{Name: "@path", Value: path})
	if asks {
		covered = append(covered, Component{Name: "@query", Value: "?" + query})
	}
	covered = append(covered, Component{Name: "content-digest", Value: digest}, Component{Name: "content-type", Value: r.Type})
	for _, h := range r.Headers {
		if h.Name == r.ID {
			covered = append(covered, Component{Name: strings.ToLower(h.Name), Value: strings.Trim(h.Value, " \t")})
		}
	}
	return Sign(webhookLabel, s.private, covered, Params{Created: r.At, KeyID: s.thumbprint, Alg: Algorithm}), digest
}

// authority is the value of @authority: the host without the scheme's own port (RFC 9421 section 2.2.3).
func authority(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if own := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; own != "" {
		host = strings.TrimSuffix(host, own)
	}
	return host
}
