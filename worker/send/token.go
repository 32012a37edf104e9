package send

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// The bounds of access tokens.
const (
	tokenTimeout    = 5 * time.Second  // of a request to a token endpoint
	tokenMargin     = time.Minute      // a token is renewed a tenth of its life before its end, and at most this long
	tokenLife       = 10 * time.Minute // of a token whose response does not say it
	tokenRetry      = 5 * time.Second  // after a failure, the next request waits this long; the attempts until then share the failure
	rejectedTooLong = time.Minute      // a rejected token that was renewed in vain is kept this long
	maxToken        = 8 << 10
	maxSources      = 10_000
)

// tokenSources have the access tokens of this process. Endpoints with the same credentials share a token.
type tokenSources struct {
	client *http.Client // for token endpoints with the usual TLS

	mu sync.Mutex
	by map[[sha256.Size]byte]*tokenSource
}

// of returns the source for an endpoint's credentials. own makes the client of an endpoint that has TLS settings or a
// proxy.
func (ts *tokenSources) of(settings endpoint.Settings, proxy *egress.Proxy, own func() (*http.Client, error)) (*tokenSource, error) {
	a, t := settings.Auth, settings.TLS.Connects()
	text, err := json.Marshal([]any{a, t, proxy.Identity()})
	if err != nil {
		return nil, errors.New("the endpoint's authentication can't be read")
	}
	name := sha256.Sum256(text)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if s := ts.by[name]; s != nil {
		return s, nil
	}
	s := &tokenSource{auth: a.Clone(), client: ts.client, now: time.Now}
	if t != nil || proxy != nil {
		if s.client, err = own(); err != nil {
			return nil, err
		}
	}
	if a.SecretField() == "private_key" {
		var refusal string
		if s.key, _, refusal = endpoint.PrivateKey(a.Secret); refusal != "" {
			return nil, errors.New("the private key of the endpoint's authentication can't be read")
		}
	}
	if len(ts.by) >= maxSources {
		for other := range ts.by { // any one: it costs its endpoint a request for a token
			delete(ts.by, other)
			break
		}
	}
	if ts.by == nil {
		ts.by = map[[sha256.Size]byte]*tokenSource{}
	}
	ts.by[name] = s
	return s, nil
}

func (ts *tokenSources) close() {
	ts.client.CloseIdleConnections()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, s := range ts.by {
		s.client.CloseIdleConnections()
	}
}

// tokenSource has the access token for one client of an authorization server, and gets the next one. One request at a
// time is sent to the token endpoint.
type tokenSource struct {
	auth   *endpoint.Auth
	key    crypto.Signer // of endpoint.PrivateKeyJWT
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	current  *accessToken  // nil: none
	fetching chan struct{} // closed when the request under way has ended; nil: none is
	failed   *tokenError   // of the last request
	retryAt  time.Time     // when failed is over
	renewed  bool          // a rejected token was renewed, and no receiver has accepted one since
}

type accessToken struct {
	header           string
	fetched          time.Time
	renewAt, expires time.Time
}

// tokenError says why there is no token. The text is for tenants and contains neither a secret nor an address.
type tokenError struct {
	text    string
	failure delivery.Failure // zero: delivery.FailToken
}

func (e *tokenError) Error() string { return e.text }

// token returns a token that has not expired, a new one if need be.
func (s *tokenSource) token(ctx context.Context) (*accessToken, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		now, t := s.now(), s.current
		usable := t != nil && now.Before(t.expires)
		switch {
		case usable && (now.Before(t.renewAt) || s.fetching != nil || now.Before(s.retryAt)):
			s.mu.Unlock()
			return t, nil
		case s.fetching != nil:
			ended := s.fetching
			s.mu.Unlock()
			select {
			case <-ended:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case now.Before(s.retryAt):
			defer s.mu.Unlock()
			return nil, s.failed
		}
		s.fetching = make(chan struct{})
		s.mu.Unlock()
		fresh, err := s.fetch(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.fetching)
		s.fetching = nil
		var failed *tokenError
		switch {
		case err == nil:
			s.current, s.failed, s.retryAt = fresh, nil, time.Time{}
			return fresh, nil
		case errors.As(err, &failed):
			s.failed, s.retryAt = failed, s.now().Add(tokenRetry)
		}
		if usable {
			return t, nil // it is only about to expire
		}
		return nil, err
	}
}

// rejected notes that the receiver responded with 401 to a token, and reports whether the next attempt has another one.
// A token is renewed once, until a receiver accepts one.
func (s *tokenSource) rejected(t *accessToken) (another bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current != t:
		return true
	case !s.renewed:
		s.renewed, s.current = true, nil
		return true
	case s.now().Sub(t.fetched) > rejectedTooLong:
		s.current = nil // the server possibly grants more now
	}
	return false
}

// accepted notes that the receiver took a token.
func (s *tokenSource) accepted() {
	s.mu.Lock()
	s.renewed = false
	s.mu.Unlock()
}

// fetch requests a token. The error is a *tokenError, unless the context was canceled.
func (s *tokenSource) fetch(ctx context.Context) (*accessToken, error) {
	c := s.auth.Client
	config := clientcredentials.Config{
		ClientID:       c.ID,
		ClientSecret:   s.auth.Secret,
		TokenURL:       c.TokenURL,
		Scopes:         c.Scopes,
		EndpointParams: map[string][]string{},
		AuthStyle:      oauth2.AuthStyleInHeader,
	}
	if c.Audience != "" {
		config.EndpointParams.Set("audience", c.Audience)
	}
	if c.Resource != "" {
		config.EndpointParams.Set("resource", c.Resource)
	}
	began := s.now()
	switch c.Auth {
	case endpoint.ClientSecretPost:
		config.AuthStyle = oauth2.AuthStyleInParams
	case endpoint.TLSClientAuth:
		config.AuthStyle, config.ClientSecret = oauth2.AuthStyleInParams, ""
	case endpoint.PrivateKeyJWT:
		config.AuthStyle, config.ClientSecret = oauth2.AuthStyleInParams, ""
		assertion, err := assertion(s.key, c, began)
		if err != nil {
			return nil, &tokenError{text: "the private key could not sign the assertion for the token endpoint"}
		}
		config.EndpointParams.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		config.EndpointParams.Set("client_assertion", assertion)
	}
	bounded, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, s.client), tokenTimeout)
	defer cancel()
	got, err := config.Token(bounded)
	if err != nil {
		if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
			return nil, cause
		}
		if isOf(err, delivery.FailProxy) {
			return nil, &tokenError{clientText(err), delivery.FailProxy}
		}
		return nil, &tokenError{text: delivery.Clip(tokenText(err, s.auth), maxCause)}
	}
	return newAccessToken(got, began)
}

func newAccessToken(got *oauth2.Token, began time.Time) (*accessToken, error) {
	switch text := got.AccessToken; {
	case !strings.EqualFold(got.Type(), "Bearer"):
		return nil, &tokenError{text: "the token endpoint returned a token of another type than Bearer"}
	case len(text) > maxToken || !isPlainText(text):
		return nil, &tokenError{text: "the token endpoint returned a token that can't be sent in a header"}
	}
	life := tokenLife
	if !got.Expiry.IsZero() {
		life = time.Until(got.Expiry)
	}
	return &accessToken{
		header:  "Bearer " + got.AccessToken,
		fetched: began,
		renewAt: began.Add(life - min(life/10, tokenMargin)),
		expires: began.Add(life),
	}, nil
}

// tokenText says why a token endpoint gave no token. A server can repeat what it was sent.
func tokenText(err error, a *endpoint.Auth) string {
	var said *oauth2.RetrieveError
	if !errors.As(err, &said) {
		if strings.HasPrefix(err.Error(), "oauth2: ") {
			return "the token endpoint's response has no access token"
		}
		return "the token endpoint was not reached: " + clientText(err)
	}
	text := fmt.Sprintf("the token endpoint returned %d", said.Response.StatusCode)
	for _, part := range []string{said.ErrorCode, said.ErrorDescription} {
		if part = strings.Join(strings.FieldsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f }), " "); part != "" {
			text += ": " + part
		}
	}
	basic := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(a.Client.ID) + ":" + url.QueryEscape(a.Secret)))
	if strings.Contains(text, "eyJ") || len(a.Secret) >= 4 && (strings.Contains(text, a.Secret) || strings.Contains(text, basic)) {
		return fmt.Sprintf("the token endpoint returned %d, with a text that repeats the credentials", said.Response.StatusCode)
	}
	return text
}

// deliver sends a request with a token. A 401 for a token that can be renewed says nothing about the delivery, which is
// repeated at once with the next token: each request is an attempt of its own.
func (s *tokenSource) deliver(
	ctx context.Context,
	p *request,
	a *queue.Attempt,
	exchange func() (delivery.Result, http.Header),
) (delivery.Result, http.Header) {
	began := time.Now()
	t, err := s.token(ctx)
	if err != nil {
		a.Total = int32(max(time.Since(began).Microseconds(), 1))
		return noToken(err, a), nil
	}
	p.headers = append(p.headers, signature.Header{Name: "Authorization", Value: t.header})
	r, answer := exchange()
	switch {
	case r.Failure != delivery.FailNone:
	case r.Status != http.StatusUnauthorized:
		s.accepted()
	case s.rejected(t):
		r.Stale, a.Error = true, "the receiver rejected the access token; the delivery is repeated with a new one"
	}
	return r, answer
}

// noToken is the result of an attempt without a token.
func noToken(err error, a *queue.Attempt) delivery.Result {
	var failed *tokenError
	if !errors.As(err, &failed) {
		a.Error = "interrupted: this worker was stopped before a response arrived"
		return delivery.Result{Failure: delivery.FailReset}
	}
	a.Error = failed.text
	return delivery.Result{Failure: cmp.Or(failed.failure, delivery.FailToken)}
}
