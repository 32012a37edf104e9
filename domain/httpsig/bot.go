package httpsig

import (
	"crypto/ed25519"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bot signs requests as the platform, so that filters of bots know who sends them, and the directory of the keys
// (draft-ietf-webbotauth-httpsig-protocol-01).
type Bot struct {
	Agent   string // the origin that serves the directory: https and a host
	Signers []Signer
}

// The directory of the platform's keys.
const (
	DirectoryPath = "/.well-known/http-message-signatures-directory"
	DirectoryType = "application/http-message-signatures-directory+json"

	botTag       = "web-bot-auth"
	directoryTag = "http-message-signatures-directory"

	// botValid is how long a request's signature can be verified. Who sees one can use it until then.
	botValid = 5 * time.Minute
	// DirectoryValid is how long the signatures of the directory can be verified.
	DirectoryValid = 24 * time.Hour
)

// NewBot is the signature of a platform with a public URL; nil without one that begins with https, since verifiers read
// keys over TLS alone.
func NewBot(publicURL string, signers []Signer) *Bot {
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || len(signers) == 0 {
		return nil
	}
	return &Bot{Agent: "https://" + authority(u), Signers: signers}
}

// Sign signs a request: who is asked, how, and for what, with the address of the directory. A bot that is nil signs
// nothing.
func (b *Bot) Sign(r Request) (signed Signature, agent string, ok bool) {
	if b == nil {
		return signed, "", false
	}
	signer := Current(b.Signers, r.At)
	if signer == nil {
		return signed, "", false
	}
	path, _, _ := strings.Cut(r.URL.RequestURI(), "?")
	covered := []Component{
		{Name: "@authority", Value: authority(r.URL)},
		{Name: "@method", Value: r.Method},
		{Name: "@path", Value: path},
		{Name: "signature-agent", Params: `;key="` + botLabel + `"`, Value: quote(b.Agent)},
	}
	return Sign(botLabel, signer.private, covered, Params{
		Created: r.At,
		KeyID:   signer.thumbprint,
		Alg:     Algorithm,
		Expires: r.At.Add(botValid),
		Tag:     botTag,
	}), botLabel + "=" + quote(b.Agent), true
}

// SignDirectory signs a response with the directory, once with each key, for the host of Agent, whatever host the
// request named: nobody can serve these keys under another one.
func (b *Bot) SignDirectory(body []byte, now time.Time) (signatures []Signature, digest string) {
	digest = Digest(body)
	covered := []Component{
		{Name: "@authority", Params: ";req", Value: strings.TrimPrefix(b.Agent, "https://")},
		{Name: "content-digest", Value: digest},
	}
	for i := range b.Signers {
		s := &b.Signers[i]
		signatures = append(signatures, Sign("binding"+strconv.Itoa(i), s.private, covered, Params{
			Created: now,
			KeyID:   s.thumbprint,
			Alg:     Algorithm,
			Expires: now.Add(DirectoryValid),
			Tag:     directoryTag,
		}))
	}
	return signatures, digest
}

// Directory is the set of the keys.
func (b *Bot) Directory() JWKS {
	set := JWKS{Keys: make([]JWK, len(b.Signers))}
	for i, s := range b.Signers {
		set.Keys[i] = PublicJWK(s.private.Public().(ed25519.PublicKey), s.Span)
	}
	return set
}
