// Package openid communicates with OpenID providers: discovery, the authorization code flow with PKCE, ID tokens, and
// back-channel logout. A tenant's owner chooses the provider, so every response of it can be hostile.
package openid

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"posthorn/domain/characters"
	"posthorn/domain/fault"
	"posthorn/domain/sso"
)

// Provider is an OpenID provider and Posthorn's client at it.
type Provider struct {
	Issuer    string
	ClientID  string
	Secret    string // empty: a public client
	Callback  string // the URL to which the provider redirects
	RoleClaim string // the claim with the values for roles; see sso.Groups
}

// Client calls providers. It is safe for concurrent use.
type Client struct {
	http *http.Client
	now  func() time.Time

	mu    sync.Mutex
	known map[string]discovered // by issuer

	authorities map[string]authority // of access tokens, by issuer
}

// discovered is a provider's metadata with the time until which it is used.
type discovered struct {
	until    time.Time
	provider *oidc.Provider
	metadata metadata
}

const (
	knownFor = 5 * time.Minute
	maxKnown = 1000
)

// New creates a client. c must bound the time and size of responses, and decide which addresses it connects to.
func New(c *http.Client, now func() time.Time) *Client {
	return &Client{http: c, now: now, known: map[string]discovered{}, authorities: map[string]authority{}}
}

// metadata is what Posthorn reads of a provider's discovery document (OpenID Connect Discovery 1.0, section 3).
type metadata struct {
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	ClientAuth    []string `json:"token_endpoint_auth_methods_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// Errors of a provider's responses.
var (
	// errUnreachable says that the provider does not respond. Its cause is for the log.
	errUnreachable = fault.New(
		fault.Unavailable,
		"sso_provider_unreachable",
		"The identity provider can't be reached, or its configuration is invalid. Try again in a few minutes, or ask an owner of the tenant to check the issuer.",
	)
	// errRejected says that the provider's response is not accepted. Its cause is for the log.
	errRejected = fault.New(
		fault.Forbidden,
		"sso_rejected",
		"The identity provider's response isn't valid for this sign-in. Start again. If it fails again, ask the administrator of the provider.",
	)
)

// errExpired says that a token was valid and has expired. Its cause is for the log.
var errExpired = fault.New(
	fault.Forbidden,
	"sso_token_expired",
	"The identity provider's response has expired. Start again. If it fails again, the clock of the provider or of this server is wrong. Tell its administrator.",
)

func because(e *fault.Error, cause error) error {
	with := *e
	with.Cause = cause
	return &with
}

// Rejected reports whether an error says that a token is not accepted, with any cause.
func Rejected(err error) bool {
	return fault.Is(err, errRejected.Code) || fault.Is(err, errExpired.Code)
}

// algorithms are the accepted signature algorithms: those with a public key.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.EdDSA,
}

// checkProvider reads a provider's configuration now, and returns errUnreachable with the cause if the configuration
// can't be used.
func (c *Client) checkProvider(ctx context.Context, issuer string) error {
	c.forget(issuer)
	_, err := c.discover(ctx, issuer)
	return err
}

func (c *Client) forget(issuer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, issuer)
}

func (c *Client) discover(ctx context.Context, issuer string) (discovered, error) {
	c.mu.Lock()
	d, found := c.known[issuer]
	c.mu.Unlock()
	if found && c.now().Before(d.until) {
		return d, nil
	}
	// The provider keeps the context for later calls, which have contexts of their own.
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, c.http), issuer)
	if err == nil {
		d = discovered{until: c.now().Add(knownFor), provider: p}
		err = p.Claims(&d.metadata)
	}
	if err == nil {
		err = d.metadata.check(issuer)
	}
	if err != nil {
		return d, because(errUnreachable, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[issuer] = d
	return d, nil
}

// check rejects metadata that would send people or secrets somewhere unsafe.
func (m metadata) check(issuer string) error {
	for name, text := range map[string]string{"authorization_endpoint": m.Authorization, "token_endpoint": m.Token, "jwks_uri": m.Keys} {
		if err := safeAddress(name, text, issuer); err != nil {
			return err
		}
	}
	return nil
}

func safeAddress(name, text, issuer string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && strings.HasPrefix(issuer, "http://")) {
		return fmt.Errorf("%s is not an https URL", name)
	}
	return nil
}

func (m metadata) algorithms() []string {
	both := slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool {
		return !slices.Contains(m.Algorithms, a)
	})
	if len(both) == 0 {
		return []string{oidc.RS256} // which every provider must support
	}
	return both
}

func (c *Client) oauth(p Provider, d discovered) oauth2.Config {
	style := oauth2.AuthStyleInHeader // supported by a provider that lists none
	if p.Secret == "" || len(d.metadata.ClientAuth) > 0 && !slices.Contains(d.metadata.ClientAuth, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return oauth2.Config{
		ClientID:     p.ClientID,
		ClientSecret: p.Secret,
		RedirectURL:  p.Callback,
		Scopes:       []string{oidc.ScopeOpenID, "email", "profile"},
		Endpoint:     oauth2.Endpoint{AuthURL: d.metadata.Authorization, TokenURL: d.metadata.Token, AuthStyle: style},
	}
}

// Flow binds a sign-in to a browser: State is sent to the provider, Browser is only in the browser's cookie. Nonce and
// PKCE verifier are derived from both, so that none of them is stored, and a state in another browser has no value.
type Flow struct{ State, Browser string }

func (f Flow) derive(what string) string {
	sum := sha256.Sum256([]byte("posthorn " + what + "\x00" + f.State + "\x00" + f.Browser))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Start is the URL at the provider for a person's sign-in. hint is their address, or empty. fresh makes the provider
// authenticate them again.
func (c *Client) Start(ctx context.Context, p Provider, f Flow, hint string, fresh bool) (string, error) {
	d, err := c.discover(ctx, p.Issuer)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.derive("nonce")), oauth2.S256ChallengeOption(f.derive("verifier"))}
	if hint != "" {
		options = append(options, oauth2.SetAuthURLParam("login_hint", hint))
	}
	if fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	o := c.oauth(p, d)
	return o.AuthCodeURL(f.State, options...), nil
}

// Answer is the query with which a provider redirects back.
type Answer struct{ Code, Error, Issuer string }

// Finish exchanges a code for an ID token and returns its claims, once all of it is verified. Otherwise the error is
// errRejected or errUnreachable.
func (c *Client) Finish(ctx context.Context, p Provider, f Flow, a Answer) (claims sso.Claims, err error) {
	d, err := c.discover(ctx, p.Issuer)
	if err != nil {
		return claims, err
	}
	switch {
	case a.Issuer != "" && a.Issuer != p.Issuer, a.Issuer == "" && d.metadata.SendsIssuer:
		return claims, because(errRejected, errors.New("the response is another issuer's (RFC 9207)"))
	case a.Error != "":
		return claims, because(errRejected, fmt.Errorf("the provider responded with the error %q", shorten(a.Error)))
	case a.Code == "":
		return claims, because(errRejected, errors.New("the response has no code"))
	}
	ctx = oidc.ClientContext(ctx, c.http)
	o := c.oauth(p, d)
	token, err := o.Exchange(ctx, a.Code, oauth2.VerifierOption(f.derive("verifier")))
	if err != nil {
		return claims, exchangeFault(err)
	}
	raw, _ := token.Extra("id_token").(string)
	keys := newKeySet(ctx, d)
	id, err := c.verifier(p, d, keys).Verify(ctx, raw)
	if err != nil {
		return claims, keys.fault(err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.derive("nonce"))) != 1 {
		return claims, because(errRejected, errors.New("the nonce is another one's"))
	}
	said := map[string]any{}
	if err := id.Claims(&said); err != nil {
		return claims, because(errRejected, err)
	}
	if azp, _ := said["azp"].(string); azp != p.ClientID && (azp != "" || len(id.Audience) > 1) {
		return claims, because(errRejected, errors.New("the token was issued to another client (azp)"))
	}
	if claims, err = read(said, p.RoleClaim); err != nil {
		return claims, because(errRejected, err)
	}
	if claims.Email == "" || claims.Gap != "" {
		return c.complete(ctx, p, d, token, said)
	}
	return claims, nil
}

// complete adds the claims that only the provider's userinfo endpoint returns. The ID token's claims have priority.
func (c *Client) complete(ctx context.Context, p Provider, d discovered, token *oauth2.Token, said map[string]any) (sso.Claims, error) {
	if d.provider.UserInfoEndpoint() == "" {
		return read(said, p.RoleClaim)
	}
	more := map[string]any{}
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err == nil {
		err = info.Claims(&more)
	}
	if err != nil {
		return sso.Claims{}, because(errUnreachable, err)
	}
	if info.Subject == "" || info.Subject != said["sub"] { // OpenID Connect Core, section 5.3.2
		return sso.Claims{}, because(errRejected, errors.New("the userinfo is another subject's"))
	}
	if _, has := said["email"]; has { // address and its verification come from one place
		delete(more, "email_verified")
	}
	for name, value := range said {
		more[name] = value
	}
	claims, err := read(more, p.RoleClaim)
	if err != nil {
		return claims, because(errRejected, err)
	}
	return claims, nil
}

func (c *Client) verifier(p Provider, d discovered, keys *keySet) *oidc.IDTokenVerifier {
	return oidc.NewVerifier(p.Issuer, keys, &oidc.Config{
		ClientID:             p.ClientID,
		SupportedSigningAlgs: d.metadata.algorithms(),
		Now:                  func() time.Time { return c.now().Add(-leeway) },
	})
}

// leeway is by how much a provider's clock can be behind before its tokens count as expired. The library adds five
// minutes of its own to the time before which a token isn't valid, so that four are left of them.
const leeway = time.Minute

// keySet are a provider's keys, fetched again for each token: a withdrawn key is rejected immediately.
type keySet struct {
	remote  *oidc.RemoteKeySet
	missing error // why they could not be fetched
}

func newKeySet(ctx context.Context, d discovered) *keySet {
	return &keySet{remote: oidc.NewRemoteKeySet(ctx, d.metadata.Keys)}
}

// VerifySignature notes whether there were keys at all, which the library's verifier does not tell.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys ") {
		k.missing = err
	}
	return payload, err
}

// fault distinguishes a provider whose keys can't be fetched, a token that has expired, and one that is not accepted
// at all.
func (k *keySet) fault(err error) error {
	if k.missing != nil {
		return because(errUnreachable, k.missing)
	}
	if expired := new(oidc.TokenExpiredError); errors.As(err, &expired) {
		return because(errExpired, err)
	}
	return because(errRejected, err)
}

// exchangeFault distinguishes a provider that rejects a code from one that can't be reached. The body of its response
// is kept out of the log.
func exchangeFault(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return because(errUnreachable, err)
	}
	status := 0
	if refused.Response != nil {
		status = refused.Response.StatusCode
	}
	cause := fmt.Errorf("the token endpoint responded with status %d and error %q", status, shorten(refused.ErrorCode))
	if status >= http.StatusInternalServerError {
		return because(errUnreachable, cause)
	}
	return because(errRejected, cause)
}

// Logout verifies a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6).
func (c *Client) Logout(ctx context.Context, p Provider, raw string) (sso.Logout, error) {
	d, err := c.discover(ctx, p.Issuer)
	if err != nil {
		return sso.Logout{}, err
	}
	ctx = oidc.ClientContext(ctx, c.http)
	keys := newKeySet(ctx, d)
	token, err := c.verifier(p, d, keys).VerifyLogout(ctx, raw)
	if err != nil {
		return sso.Logout{}, keys.fault(err)
	}
	if !storable(token.TokenID, token.Subject, token.SessionID) {
		return sso.Logout{}, because(errRejected, errNUL)
	}
	return sso.Logout{ID: token.TokenID, Subject: token.Subject, SessionID: token.SessionID}, nil
}

// read converts claims to those that Posthorn uses.
func read(said map[string]any, roleClaim string) (sso.Claims, error) {
	raw, err := json.Marshal(said)
	if err != nil {
		return sso.Claims{}, err
	}
	var in struct {
		Subject  string          `json:"sub"`
		Email    string          `json:"email"`
		Verified json.RawMessage `json:"email_verified"`
		Name     any             `json:"name"`
		SID      any             `json:"sid"`
		AuthTime any             `json:"auth_time"`
		Ends     any             `json:"session_expiry"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return sso.Claims{}, err
	}
	if in.Subject == "" {
		return sso.Claims{}, errors.New("the token has no subject")
	}
	if !storable(in.Subject, in.Email) {
		return sso.Claims{}, errNUL
	}
	out := sso.Claims{Subject: in.Subject, Email: in.Email}
	// A sign-in works without these. The end of the provider's session is a limit that must be understood.
	out.Name, _ = in.Name.(string)
	out.Name = characters.Cleaned(out.Name)
	if out.SessionID, _ = in.SID.(string); !storable(out.SessionID) {
		return out, errNUL
	}
	out.SignedIn, _ = moment(in.AuthTime)
	var ok bool
	if out.Ends, ok = moment(in.Ends); !ok {
		return out, errors.New("the claim session_expiry is no time")
	}
	switch strings.Trim(string(in.Verified), `"`) { // some providers write a string
	case "", "null":
	case "true":
		yes := true
		out.EmailVerified = &yes
	default:
		no := false
		out.EmailVerified = &no
	}
	if roleClaim != "" {
		out.Values, out.Gap = sso.Groups(said, roleClaim)
	}
	return out, nil
}

// moment reads a time in seconds since 1970, as a number or as a text. It is zero if it is missing or out of range.
func moment(claim any) (at time.Time, ok bool) {
	var seconds float64
	switch v := claim.(type) {
	case nil:
		return at, true
	case float64:
		seconds = v
	case string:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return at, false
		}
		seconds = n
	default:
		return at, false
	}
	if !(seconds >= 1 && seconds <= 1e11) {
		return at, true
	}
	return time.Unix(int64(seconds), 0), true
}

// errNUL is a claim that identifies somebody, and that the database can't hold. Other claims are cleaned.
var errNUL = errors.New("a claim that identifies the person, or the session, contains a NUL or is not UTF-8")

func storable(claims ...string) bool {
	return !slices.ContainsFunc(claims, func(text string) bool {
		return strings.Contains(text, "\x00") || !utf8.ValidString(text)
	})
}

func shorten(s string) string { return strings.ToValidUTF8(s[:min(len(s), 100)], "?") }
