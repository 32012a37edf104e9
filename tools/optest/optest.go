// Package optest runs zitadel/oidc's OpenID provider, which is certified by the OpenID Foundation, as a server for
// tests. Only tests import it, so that the provider is not part of the program.
package optest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// User is the person who signs in at the provider.
type User struct {
	Subject, Email, Name string
	Unverified           bool // the provider says that the address is not verified
	Claims               map[string]any
}

// Provider is a running provider with one client.
type Provider struct {
	URL, ClientID, Secret string

	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	user     User
	authTime time.Time
	thin     bool
	change   func(claims map[string]any)
	forger   *key // signs changed tokens; nil: the provider's own key
	keys     []*key
	hidden   bool // the keys are not published
	requests map[string]*request
	codes    map[string]string
	tokens   map[string]string // access token id -> subject
	callback string
	asked    map[string]int

	// of the grant for programs
	crypto op.Crypto
	public any           // by which the client's assertions are verified
	life   time.Duration // of access tokens
	scopes []string      // of the last token
	broken string        // what the token endpoint responds; empty: a token
	jtis   map[string]bool
}

// New starts a provider that redirects its client to callback.
func New(t testing.TB, callback string) *Provider {
	t.Helper()
	p := &Provider{
		t:        t,
		ClientID: "posthorn",
		Secret:   "client-secret-of-a-test",
		callback: callback,
		requests: map[string]*request{},
		codes:    map[string]string{},
		tokens:   map[string]string{},
		asked:    map[string]int{},
		life:     time.Minute,
		jtis:     map[string]bool{},
	}
	p.Rotate()
	mux := http.NewServeMux()
	p.server = httptest.NewServer(mux)
	t.Cleanup(p.server.Close)
	p.URL = p.server.URL
	provider, err := op.NewProvider(&op.Config{
		CryptoKey:      [32]byte{1},
		CryptoKeyId:    "1",
		CodeMethodS256: true,
		AuthMethodPost: true,
	}, &storage{p}, op.StaticIssuer(p.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		if q := p.requests[r.URL.Query().Get("id")]; q != nil {
			q.done, q.subject, q.at = true, p.user.Subject, p.authTime
			if q.at.IsZero() {
				q.at = time.Now()
			}
		}
		p.mu.Unlock()
		http.Redirect(
			w,
			r,
			op.AuthCallbackURL(provider)(op.ContextWithIssuer(r.Context(), p.URL), r.URL.Query().Get("id")),
			http.StatusFound,
		)
	})
	p.crypto = provider.Crypto()
	mux.Handle("/", p.changed(p.asserted(provider)))
	return p
}

// Redirect changes where the provider redirects its client to.
func (p *Provider) Redirect(callback string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callback = callback
}

func (p *Provider) redirects() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callback
}

// SignIn sets who is signed in at the provider.
func (p *Provider) SignIn(u User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = u
}

// Authenticated sets when the user authenticated; zero is the time of each sign-in.
func (p *Provider) Authenticated(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.authTime = at
}

// Thin leaves everything but the subject out of ID tokens: only the userinfo endpoint returns it.
func (p *Provider) Thin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thin = true
}

// Change changes the claims of every ID token before it is signed; nil changes nothing.
func (p *Provider) Change(fn func(claims map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.forger = fn, nil
}

// Forge signs ID tokens with a key that the provider never published.
func (p *Provider) Forge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.forger = func(map[string]any) {}, newKey(p.t)
	p.forger.id = p.keys[0].id
}

// Rotate makes a new signing key. The keys before stay published.
func (p *Provider) Rotate() {
	k := newKey(p.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append([]*key{k}, p.keys...)
}

// Withdraw stops publishing all keys but the newest, and signs with the oldest from then on.
func (p *Provider) Withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.forger = func(map[string]any) {}, p.keys[len(p.keys)-1]
	p.keys = p.keys[:1]
}

// Asked is how often a path was requested.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// LogoutToken is a logout token for this client, signed by the provider.
func (p *Provider) LogoutToken(id, subject, sid string, change func(claims map[string]any)) string {
	claims := map[string]any{
		"iss":    p.URL,
		"aud":    p.ClientID,
		"iat":    time.Now().Unix(),
		"exp":    time.Now().Add(2 * time.Minute).Unix(),
		"jti":    id,
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	if subject != "" {
		claims["sub"] = subject
	}
	if sid != "" {
		claims["sid"] = sid
	}
	if change != nil {
		change(claims)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[0].sign(p.t, claims)
}

// Follow follows the redirects from the provider's URL, as a browser does, to the redirect URI, and returns it with its
// query.
func (p *Provider) Follow(start string) *url.URL {
	p.t.Helper()
	client := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), p.redirects()) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, start, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	to, err := answer.Location()
	if err != nil {
		body, _ := io.ReadAll(answer.Body)
		p.t.Fatalf("the provider answered %d: %s", answer.StatusCode, body)
	}
	return to
}

// changed lets a test change tokens, and counts requests.
func (p *Provider) changed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		change, forger, hidden := p.change, p.forger, p.hidden
		if forger == nil {
			forger = p.keys[0]
		}
		p.mu.Unlock()
		if hidden && r.URL.Path == "/keys" {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path != "/oauth/token" || change == nil {
			next.ServeHTTP(w, r)
			return
		}
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		answer := map[string]any{}
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer["id_token"] == nil {
			w.WriteHeader(recorder.Code)
			_, _ = io.Copy(w, recorder.Body)
			return
		}
		claims := map[string]any{}
		token, err := jose.ParseSigned(answer["id_token"].(string), []jose.SignatureAlgorithm{jose.RS256})
		if err == nil {
			d := json.NewDecoder(bytes.NewReader(token.UnsafePayloadWithoutVerification()))
			d.UseNumber()
			err = d.Decode(&claims)
		}
		if err != nil {
			p.t.Error(err)
		}
		change(claims)
		answer["id_token"] = forger.sign(p.t, claims)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// HideKeys makes the provider's keys unavailable.
func (p *Provider) HideKeys(hidden bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden = hidden
}

// key is a signing key.
type key struct {
	id      string
	private *rsa.PrivateKey
}

func newKey(t testing.TB) *key {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &key{id: rand.Text(), private: private}
}

func (k *key) ID() string                                  { return k.id }
func (k *key) Key() any                                    { return k.private }
func (k *key) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

func (k *key) sign(t testing.TB, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.RS256,
		Key: jose.JSONWebKey{
			Key:   k.private,
			KeyID: k.id,
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// published is a key as the provider publishes it.
type published struct{ *key }

func (k published) Key() any                           { return &k.private.PublicKey }
func (k published) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k published) Use() string                        { return "sig" }

// request is a sign-in in progress at the provider.
type request struct {
	*oidc.AuthRequest
	id, subject string
	at          time.Time
	done        bool
}

func (r *request) GetID() string                      { return r.id }
func (r *request) GetACR() string                     { return "" }
func (r *request) GetAMR() []string                   { return []string{"pwd"} }
func (r *request) GetAudience() []string              { return []string{r.ClientID} }
func (r *request) GetAuthTime() time.Time             { return r.at }
func (r *request) GetClientID() string                { return r.ClientID }
func (r *request) GetNonce() string                   { return r.Nonce }
func (r *request) GetRedirectURI() string             { return r.RedirectURI }
func (r *request) GetScopes() []string                { return r.Scopes }
func (r *request) GetState() string                   { return r.State }
func (r *request) GetSubject() string                 { return r.subject }
func (r *request) Done() bool                         { return r.done }
func (r *request) GetResponseType() oidc.ResponseType { return r.ResponseType }
func (r *request) GetResponseMode() oidc.ResponseMode { return r.ResponseMode }
func (r *request) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: r.CodeChallenge, Method: r.CodeChallengeMethod}
}

// client is the provider's only client.
type client struct{ p *Provider }

func (c *client) GetID() string                       { return c.p.ClientID }
func (c *client) RedirectURIs() []string              { return []string{c.p.redirects()} }
func (c *client) PostLogoutRedirectURIs() []string    { return nil }
func (c *client) ApplicationType() op.ApplicationType { return op.ApplicationTypeWeb }
func (c *client) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodBasic }
func (c *client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}

func (c *client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeClientCredentials}
}

func (c *client) LoginURL(id string) string            { return c.p.URL + "/login?id=" + url.QueryEscape(id) }
func (c *client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (c *client) IDTokenLifetime() time.Duration       { return time.Hour }
func (c *client) DevMode() bool                        { return true }
func (c *client) IsScopeAllowed(string) bool           { return false }
func (c *client) ClockSkew() time.Duration             { return 0 }
func (c *client) IDTokenUserinfoClaimsAssertion() bool { return !c.p.thin }
func (c *client) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return func(s []string) []string { return s }
}

func (c *client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(s []string) []string { return s }
}

// storage is what the provider's library needs.
type storage struct{ p *Provider }

var errUnknown = errors.New("unknown")

func (s *storage) CreateAuthRequest(_ context.Context, r *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	q := &request{AuthRequest: r, id: rand.Text()}
	s.p.requests[q.id] = q
	return q, nil
}

func (s *storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if q := s.p.requests[id]; q != nil {
		as := *q
		return &as, nil
	}
	return nil, errUnknown
}

func (s *storage) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	s.p.mu.Lock()
	id := s.p.codes[code]
	s.p.mu.Unlock()
	return s.AuthRequestByID(ctx, id)
}

func (s *storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.codes[code] = id
	return nil
}

func (s *storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.requests, id)
	return nil
}

func (s *storage) CreateAccessToken(_ context.Context, r op.TokenRequest) (string, time.Time, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	id := rand.Text()
	s.p.tokens[id] = r.GetSubject()
	return id, time.Now().Add(s.p.life), nil
}

func (s *storage) CreateAccessAndRefreshTokens(context.Context, op.TokenRequest, string) (string, string, time.Time, error) {
	return "", "", time.Time{}, errUnknown
}

func (s *storage) TokenRequestByRefreshToken(context.Context, string) (op.RefreshTokenRequest, error) {
	return nil, errUnknown
}

func (s *storage) TerminateSession(context.Context, string, string) error { return nil }

func (s *storage) RevokeToken(context.Context, string, string, string) *oidc.Error { return nil }

func (s *storage) GetRefreshTokenInfo(context.Context, string, string) (string, string, error) {
	return "", "", op.ErrInvalidRefreshToken
}

func (s *storage) SigningKey(context.Context) (op.SigningKey, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.keys[0], nil
}

func (s *storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

func (s *storage) KeySet(context.Context) (keys []op.Key, err error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for _, k := range s.p.keys {
		keys = append(keys, published{k})
	}
	return keys, nil
}

func (s *storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	if id != s.p.ClientID {
		return nil, errUnknown
	}
	return &client{s.p}, nil
}

func (s *storage) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if id != s.p.ClientID || secret != s.p.Secret {
		return errUnknown
	}
	return nil
}

func (s *storage) SetUserinfoFromScopes(_ context.Context, to *oidc.UserInfo, subject, _ string, scopes []string) error {
	return s.fill(to, subject, scopes)
}

func (s *storage) SetUserinfoFromToken(_ context.Context, to *oidc.UserInfo, token, subject, _ string) error {
	s.p.mu.Lock()
	known := s.p.tokens[token] == subject
	s.p.mu.Unlock()
	if !known {
		return errUnknown
	}
	return s.fill(to, subject, []string{oidc.ScopeOpenID, oidc.ScopeEmail, oidc.ScopeProfile})
}

func (s *storage) fill(to *oidc.UserInfo, subject string, scopes []string) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	to.Subject = subject
	for _, scope := range scopes {
		switch scope {
		case oidc.ScopeEmail:
			to.Email, to.EmailVerified = s.p.user.Email, oidc.Bool(!s.p.user.Unverified)
		case oidc.ScopeProfile:
			to.Name = s.p.user.Name
			for name, value := range s.p.user.Claims {
				to.AppendClaims(name, value)
			}
		}
	}
	return nil
}

func (s *storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errUnknown
}

func (s *storage) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}

func (s *storage) GetKeyByIDAndClientID(_ context.Context, id, client string) (*jose.JSONWebKey, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.public == nil || client != s.p.ClientID || id != KeyID {
		return nil, errUnknown
	}
	return &jose.JSONWebKey{Key: s.p.public, KeyID: KeyID, Use: "sig"}, nil
}

func (s *storage) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, nil
}

func (s *storage) Health(context.Context) error { return nil }
