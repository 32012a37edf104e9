package optest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// This is the grant for programs: client credentials, with a secret or an assertion.

// KeyID is the id of the key that the client's assertions are signed with.
const KeyID = "key-of-a-test"

// TrustKey makes the provider verify the client's assertions with a public key.
func (p *Provider) TrustKey(public any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.public = public
}

// TokensLive sets the life of access tokens.
func (p *Provider) TokensLive(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life = d
}

// Break makes the token endpoint respond with 500 and a body; empty ends it.
func (p *Provider) Break(body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = body
}

// RevokeAll makes the tokens invalid that were given out.
func (p *Provider) RevokeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.tokens)
}

// Scopes are those of the last token.
func (p *Provider) Scopes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scopes
}

// Accepts reports whether an Authorization header has a token that is valid.
func (p *Provider) Accepts(header string) bool {
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return false
	}
	plain, err := p.crypto.Decrypt(token)
	if err != nil {
		return false
	}
	id, subject, _ := strings.Cut(plain, ":")
	p.mu.Lock()
	defer p.mu.Unlock()
	return subject == p.ClientID && p.tokens[id] == subject
}

// asserted verifies a client's assertion before the provider sees the request: its own token endpoint knows assertions
// for other grants alone.
func (p *Provider) asserted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/oauth/token" || r.ParseForm() != nil {
			next.ServeHTTP(w, r)
			return
		}
		p.mu.Lock()
		broken := p.broken
		p.mu.Unlock()
		if broken != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(broken))
			return
		}
		if assertion := r.Form.Get("client_assertion"); assertion != "" {
			verifier := op.NewJWTProfileVerifier(&storage{p}, p.URL, time.Hour, 0)
			claims, err := op.VerifyJWTAssertion(r.Context(), assertion, verifier)
			if err != nil || r.Form.Get("client_assertion_type") != oidc.ClientAssertionTypeJWTAssertion || !p.once(claims.Subject, assertion) {
				op.RequestError(w, r, oidc.ErrInvalidClient().WithDescription("the assertion was refused"), nil)
				return
			}
			r.SetBasicAuth(claims.Subject, p.Secret)
		}
		next.ServeHTTP(w, r)
	})
}

// once reports whether an assertion is of the client and was not sent before.
func (p *Provider) once(subject, assertion string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.jtis[assertion]
	p.jtis[assertion] = true
	return !seen && subject == p.ClientID
}

// ClientCredentials is op.ClientCredentialsStorage's.
func (s *storage) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	if err := s.AuthorizeClientIDSecret(ctx, id, secret); err != nil {
		return nil, err
	}
	return s.GetClientByClientID(ctx, id)
}

// ClientCredentialsTokenRequest is op.ClientCredentialsStorage's.
func (s *storage) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.scopes = scopes
	return &programToken{id, scopes}, nil
}

type programToken struct {
	client string
	scopes []string
}

func (t *programToken) GetSubject() string    { return t.client }
func (t *programToken) GetAudience() []string { return nil }
func (t *programToken) GetScopes() []string   { return t.scopes }
