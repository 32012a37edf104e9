package send

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/tools/optest"
)

// tokenWorld is a receiver that accepts only tokens of a provider.
type tokenWorld struct {
	*optest.Provider
	sender   *Sender
	receiver *httptest.Server
	requests atomic.Int64
}

func newTokenWorld(t testing.TB) *tokenWorld {
	t.Helper()
	w := &tokenWorld{Provider: optest.New(t, "https://unused.example.com/"), sender: newTestSender(t)}
	w.receiver = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		if !w.Accepts(r.Header.Get("Authorization")) {
			out.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(w.receiver.Close)
	return w
}

// auth is the client's authentication with its secret.
func (w *tokenWorld) auth() *endpoint.Auth {
	return &endpoint.Auth{
		Type:   endpoint.OAuth2,
		Secret: w.Secret,
		Client: &endpoint.OAuthClient{
			TokenURL: w.URL + "/oauth/token",
			ID:       w.ClientID,
			Auth:     endpoint.ClientSecretBasic,
			Scopes:   []string{"hooks:write", "hooks:read"},
		},
	}
}

func (w *tokenWorld) destination(t testing.TB, a *endpoint.Auth) *Destination {
	t.Helper()
	d := someDestination(t, w.receiver.URL+"/hook")
	to, err := w.sender.transports[endpoint.HTTP].configure(endpoint.Settings{Kind: endpoint.HTTP, URL: w.receiver.URL + "/hook", Auth: a}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.to = to
	return d
}

func (w *tokenWorld) tokens() int { return w.Asked("/oauth/token") }

func (w *tokenWorld) send(t testing.TB, d *Destination) (delivery.Result, *queue.Attempt) {
	t.Helper()
	return w.sender.Deliver(t.Context(), d, someMessage(`{"a":1}`))
}

func pemKey(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestOneTokenServesManyDeliveries(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	a := w.auth()
	d, other := w.destination(t, a), w.destination(t, a.Clone())
	var all sync.WaitGroup
	for i := range 20 {
		to := []*Destination{d, other}[i%2]
		all.Go(func() {
			if r, at := w.send(t, to); r.Status != 200 {
				t.Errorf("%+v %s", r, at.Error)
			}
		})
	}
	all.Wait()
	if r, at := w.sender.Deliver(t.Context(), d, someMessage(`"`+strings.Repeat("x", 2*maxSmall)+`"`)); r.Status != 200 {
		t.Errorf("a large request: %+v %s", r, at.Error)
	}
	if n := w.tokens(); n != 1 {
		t.Errorf("%d requests for a token, want 1", n)
	}
	if got := w.Scopes(); !slices.Equal(got, a.Client.Scopes) {
		t.Errorf("scopes %v", got)
	}
}

func TestEachWayToAuthenticateToATokenEndpointIsAccepted(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{endpoint.ClientSecretBasic: nil, endpoint.ClientSecretPost: nil, "rsa": rsaKey, "ecdsa": ecKey} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTokenWorld(t)
			a := w.auth()
			a.Client.Auth = name
			if key != nil {
				a.Client.Auth, a.Client.KeyID, a.Client.Claimed, a.Secret = endpoint.PrivateKeyJWT, optest.KeyID, w.URL, pemKey(t, key)
				w.TrustKey(key.Public())
			}
			d := w.destination(t, a)
			if r, at := w.send(t, d); r.Status != 200 {
				t.Fatalf("%+v %s", r, at.Error)
			}
			d.to.(*httpAddress).tokens.current = nil
			if r, at := w.send(t, d); r.Status != 200 || w.tokens() != 2 {
				t.Errorf("the next assertion: %+v %s, %d requests", r, at.Error, w.tokens())
			}
		})
	}
}

func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	w.TokensLive(100 * time.Second)
	d := w.destination(t, w.auth())
	source := d.to.(*httpAddress).tokens
	began := time.Now()
	for _, step := range []struct {
		after  time.Duration
		tokens int
		broken string
	}{
		{0, 1, ""},
		{80 * time.Second, 1, ""},
		{92 * time.Second, 1, "down"}, // and counted: the provider counts what it breaks
		{93 * time.Second, 1, ""},     // the failure is shared for some seconds
		{99 * time.Second, 2, ""},
		{250 * time.Second, 3, ""},
	} {
		source.now = func() time.Time { return began.Add(step.after) }
		failures := map[bool]int{true: 1}[step.after > 90*time.Second]
		w.Break(step.broken)
		if r, at := w.send(t, d); r.Status != 200 || w.tokens() != step.tokens+failures {
			t.Errorf("after %s: %+v %s, %d requests for tokens", step.after, r, at.Error, w.tokens())
		}
	}
}

func TestARejectedTokenIsRenewedOnce(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	d := w.destination(t, w.auth())
	w.send(t, d)
	w.RevokeAll()
	r, at := w.send(t, d)
	if !r.Stale || r.Status != 401 || !strings.Contains(at.Error, "access token") {
		t.Errorf("the first: %+v %s", r, at.Error)
	}
	if got := delivery.Decide(delivery.Policy{}, 1, r, 0); !got.Repeat || got.Class != delivery.Neutral {
		t.Errorf("decided %+v", got)
	}
	if r, at := w.send(t, d); r.Status != 200 || w.tokens() != 2 {
		t.Errorf("with a new token: %+v %s", r, at.Error)
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refusing.Close)
	w.receiver.URL = refusing.URL
	a := w.auth()
	a.Client.Audience = "another" // and so another token
	never := w.destination(t, a)
	for i, stale := range []bool{true, false, false} {
		if r, _ := w.send(t, never); r.Status != 401 || r.Stale != stale {
			t.Errorf("attempt %d of a receiver that always responds 401: %+v", i, r)
		}
	}
	if n := w.tokens(); n != 4 {
		t.Errorf("%d requests for tokens, want 4: a receiver can't cause more", n)
	}
}

func TestATokenErrorIsNotTheReceivers(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	const canary = "canary-client-secret"
	for name, c := range map[string]struct {
		change func(*endpoint.Auth)
		broken string
		text   string
	}{
		"another secret":  {func(a *endpoint.Auth) { a.Secret = canary }, "", "the token endpoint returned 4"},
		"another address": {func(a *endpoint.Auth) { a.Client.TokenURL = fmt.Sprintf("http://127.0.0.1:%d/token", unusedPort(t)) }, "", "not reached: connection refused"},
		"a blocked one":   {func(a *endpoint.Auth) { a.Client.TokenURL = "https://10.0.0.1/token" }, "", "not reached: blocked address"},
		"the metadata":    {func(a *endpoint.Auth) { a.Client.TokenURL = "http://169.254.169.254/token" }, "", "not reached: blocked address"},
		"a redirect":      {func(a *endpoint.Auth) { a.Client.TokenURL = w.URL + "/login?id=1" }, "", "the token endpoint returned 302"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.auth()
			c.change(a)
			d := w.destination(t, a)
			before := w.requests.Load()
			r, at := w.send(t, d)
			if r.Failure != delivery.FailToken || r.Status != 0 || !strings.Contains(at.Error, c.text) || strings.Contains(at.Error, canary) || at.Total <= 0 {
				t.Errorf("%+v %q", r, at.Error)
			}
			if got := delivery.Classify(r, false); got != delivery.Neutral {
				t.Errorf("counts as %s", got)
			}
			if w.requests.Load() != before {
				t.Error("something was sent without a token")
			}
			if _, detail, ok := w.sender.Check(t.Context(), d); ok || !strings.HasPrefix(detail, "Nothing was sent: the token endpoint") {
				t.Errorf("a check says %q", detail)
			}
		})
	}
}

func TestATextOfATokenEndpointGivesNoSecretAway(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	for _, said := range []string{
		w.Secret,
		base64.StdEncoding.EncodeToString([]byte(w.ClientID + ":" + w.Secret)),
		"eyJhbGciOiJSUzI1NiJ9.e30.x",
	} {
		body, _ := json.Marshal(map[string]string{"error": "invalid_client", "error_description": "unknown credentials " + said})
		w.Break(string(body))
		a := w.auth()
		a.Client.Resource = said[:3] // another source
		r, at := w.send(t, w.destination(t, a))
		if r.Failure != delivery.FailToken || strings.Contains(at.Error, said) || !strings.Contains(at.Error, "500") {
			t.Errorf("%+v %q", r, at.Error)
		}
	}
	w.Break(`{"error":"invalid_scope","error_description":"The client can't\nhave hooks:write"}`)
	a := w.auth()
	a.Client.Resource = "z"
	if _, at := w.send(t, w.destination(t, a)); at.Error != "the token endpoint returned 500: invalid_scope: The client can't have hooks:write" {
		t.Errorf("%q", at.Error)
	}
}

func TestAStoppedWorkerWaitsForNoToken(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	asked := make(chan struct{}, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client has gone once it has read the request
		select {
		case asked <- struct{}{}:
		default: // one is enough
		}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	a := w.auth()
	a.Client.TokenURL = silent.URL
	d := w.destination(t, a)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if r, at := w.sender.Deliver(ctx, d, someMessage(`{}`)); r.Failure != delivery.FailReset || !strings.Contains(at.Error, "stopped") {
				t.Errorf("%+v %s", r, at.Error)
			}
		})
	}
	<-asked
	stop()
	all.Wait()
}

func TestAVerificationCarriesTheToken(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	w.receiver.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !w.Accepts(r.Header.Get("Authorization")) {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(out, r.URL.Query().Get("challenge"))
	})
	d := w.destination(t, w.auth())
	for _, mode := range []string{"simple", "challenge_get"} {
		for range 2 {
			r := w.sender.ask(d, db.NewID(), endpoint.TestType, json.RawMessage(`{}`), 1, false)
			if status, detail, ok := w.sender.transports[endpoint.HTTP].verify(t.Context(), d, r, challenge{mode: mode, text: "abc"}); !ok {
				t.Errorf("%s: %d %s", mode, status, detail)
			}
			w.RevokeAll() // the next verification renews the token by itself
		}
	}
}

// An endpoint without tokens pays nothing for those that have some.
func TestASignedRequestAllocatesNothingForTokens(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	to, err := s.transports[endpoint.HTTP].configure(endpoint.Settings{Kind: endpoint.HTTP, URL: "https://example.com/"}, nil)
	if err != nil || to.(*httpAddress).tokens != nil {
		t.Errorf("%+v %v", to, err)
	}
	fixed, err := s.transports[endpoint.HTTP].configure(endpoint.Settings{
		Kind: endpoint.HTTP,
		URL:  "https://example.com/",
		Auth: &endpoint.Auth{Type: endpoint.Bearer, Secret: "x"},
	}, nil)
	if err != nil || fixed.(*httpAddress).tokens != nil {
		t.Errorf("a fixed token: %+v %v", fixed, err)
	}
}

func TestATokenEndpointIsJudgedLikeAReceiver(t *testing.T) {
	t.Parallel()
	s := New(egress.Policy{})
	t.Cleanup(s.Close)
	names := newNameServer(t)
	names.set("private.test.example", "203.0.113.1", "10.0.0.1")
	s.guard.resolver = names.resolver()
	source := &tokenSource{
		auth:   &endpoint.Auth{Type: endpoint.OAuth2, Client: &endpoint.OAuthClient{ID: "a", Auth: endpoint.ClientSecretPost}},
		client: s.transports[endpoint.HTTP].(*httpTransport).tokens.client,
		now:    time.Now,
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "10.1.2.3", "192.168.0.1", "169.254.169.254", "[fd00:ec2::254]", "100.64.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "private.test.example"} {
		for _, scheme := range []string{"http", "https"} {
			source.auth.Client.TokenURL = scheme + "://" + host + "/token"
			if _, err := source.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "blocked address") {
				t.Errorf("%s: %v", source.auth.Client.TokenURL, err)
			}
		}
	}
}

func TestAnAssertionProvesTheClientsKey(t *testing.T) {
	t.Parallel()
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[jose.SignatureAlgorithm]crypto.Signer{jose.EdDSA: edKey}
	for algorithm, curve := range map[jose.SignatureAlgorithm]elliptic.Curve{jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521()} {
		if keys[algorithm], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for algorithm, key := range keys {
		c := &endpoint.OAuthClient{TokenURL: "https://login.example.com/token", ID: "posthorn", KeyID: "k1"}
		first, err := assertion(key, c, now)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := assertion(key, c, now)
		parsed, err := jose.ParseSigned(first, []jose.SignatureAlgorithm{algorithm})
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		payload, err := parsed.Verify(key.Public())
		var claims struct {
			Iss, Sub, Aud, Jti string
			Iat, Nbf, Exp      int64
		}
		if err != nil || json.Unmarshal(payload, &claims) != nil || parsed.Signatures[0].Header.KeyID != "k1" || first == second {
			t.Errorf("%s: %s %v", algorithm, payload, err)
		}
		if claims.Iss != c.ID || claims.Sub != c.ID || claims.Aud != c.TokenURL || len(claims.Jti) < 20 || claims.Iat != now.Unix() || claims.Nbf != claims.Iat || claims.Exp-claims.Iat != 60 {
			t.Errorf("%s: %+v", algorithm, claims)
		}
	}
}

// BenchmarkDelivery compares endpoints that have access tokens with plain ones: a token is fetched once.
func BenchmarkDelivery(b *testing.B) {
	w := newTokenWorld(b)
	w.receiver.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, auth := range map[string]*endpoint.Auth{"plain": nil, "oauth2": w.auth()} {
		d := w.destination(b, auth)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r, a := w.sender.Deliver(b.Context(), d, someMessage(`{}`)); r.Status != http.StatusOK {
					b.Fatal(r, a.Error)
				}
			}
		})
	}
}
