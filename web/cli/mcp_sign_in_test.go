package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"posthorn/client"
	"posthorn/db/subscriptions"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/tools/webtest"
)

// authority is an authorization server as RFC 8414 and RFC 9068 describe it.
type authority struct {
	t       *testing.T
	url     string
	key     *ecdsa.PrivateKey
	kid     string
	fetched atomic.Int32 // how often its keys were
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.rotate("first")
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	a.url = s.URL + "/tenant"
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/tenant", func(rw http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(rw).Encode(map[string]string{"issuer": a.url, "jwks_uri": s.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(rw http.ResponseWriter, _ *http.Request) {
		a.fetched.Add(1)
		_ = json.NewEncoder(rw).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: a.key.Public(), KeyID: a.kid, Algorithm: "ES256", Use: "sig"}}})
	})
	return a
}

func (a *authority) rotate(kid string) {
	a.key, a.kid = must[*ecdsa.PrivateKey](a.t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), kid
}

// token signs claims over those of an ordinary token.
func (a *authority) token(audience string, with map[string]any) string {
	claims := map[string]any{"iss": a.url, "aud": []string{"else", audience}, "sub": "auth0|ada", "exp": time.Now().Add(time.Hour).Unix(), "org": []string{"x", "acme"}}
	maps.Copy(claims, with)
	return a.sign(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: a.key, KeyID: a.kid}}, claims)
}

func (a *authority) sign(key jose.SigningKey, claims map[string]any) string {
	a.t.Helper()
	signer := must[jose.Signer](a.t)(jose.NewSigner(key, (&jose.SignerOptions{}).WithType("at+jwt")))
	signed := must[*jose.JSONWebSignature](a.t)(signer.Sign(must[[]byte](a.t)(json.Marshal(claims))))
	return must[string](a.t)(signed.CompactSerialize())
}

// people makes an agent of a person of the product, who has a token.
func (d desk) people(token string) agent {
	return agent{w: d.w, key: token, below: "/" + id.Tenant.Format(d.tenant)}
}

func (d desk) opens(in client.MCPAccessPatch) client.MCPAccess {
	d.w.t.Helper()
	return must[client.MCPAccess](d.w.t)(d.w.platform().UpdateMCPAccess(d.w.t.Context(), id.Tenant.Format(d.tenant), in))
}

// A person of the product connects with a token of its authorization server, which the client finds by itself.
func TestPeopleOfAProductSubscribeWithItsTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, from, hook := w.desk(), newAuthority(t), newCallback(t)
	path := "/" + id.Tenant.Format(d.tenant)
	about := func() (status int, fields map[string]any) {
		res := must[*http.Response](t)(http.Get(w.url + mcp.MetadataPath(path[1:]))) //nolint:noctx // a local server
		defer res.Body.Close()
		_ = json.NewDecoder(res.Body).Decode(&fields)
		return res.StatusCode, fields
	}
	if status, said := about(); status != http.StatusNotFound || said["code"] != "mcp_sign_in_off" {
		t.Errorf("without an issuer: %d %v", status, said)
	}
	ada := d.people(from.token(publicURL+"/mcp"+path, nil))
	if res := ada.post("events/list", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without an issuer a token gets %d", res.StatusCode)
	}
	shown := d.opens(client.MCPAccessPatch{Issuer: client.Value(from.url)})
	if shown.Resource != publicURL+"/mcp"+path || shown.Audience != shown.Resource {
		t.Errorf("%+v", shown)
	}
	status, said := about()
	if status != http.StatusOK || said["resource"] != shown.Resource || !slices.Equal(said["authorization_servers"].([]any), []any{from.url}) {
		t.Errorf("%d %v", status, said)
	}
	eventually(t, "the change applies", func() bool {
		res := ada.post("events/list", nil)
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	nobody := d.people("")
	res := nobody.post("events/list", nil)
	if want := `resource_metadata="` + publicURL + mcp.MetadataPath(path[1:]) + `"`; res.StatusCode != http.StatusUnauthorized || !strings.Contains(res.Header.Get("WWW-Authenticate"), want) {
		t.Errorf("without a token: %d %v", res.StatusCode, res.Header)
	}

	made := ada.good("events/subscribe", hook.params(firstSecret))
	if made["id"] != mcp.ID("auth0|ada", hook.url, "incident.created", `{"severity":"P1"}`) {
		t.Errorf("the principal is not the token's subject: %v", made)
	}
	d.emit(map[string]any{"severity": "P1", "n": 1})
	hook.wait(1)
	bob := d.people(from.token(shown.Audience, map[string]any{"sub": "auth0|bob"}))
	if r := bob.call("events/unsubscribe", hook.params(firstSecret)); r.code() != -32011 {
		t.Errorf("another person ends the subscription: %+v", r)
	}
	params := map[string]any{"name": "incident.created", "cursor": nil}
	before := ada.good("events/poll", params)
	d.emit(map[string]any{"severity": "P1", "n": 2})
	params["cursor"] = before["cursor"]
	eventually(t, "the event is read", func() bool {
		read := ada.good("events/poll", params)["events"].([]any)
		return len(read) > 0 && read[len(read)-1].(map[string]any)["data"].(map[string]any)["n"] == 2.0
	})

	tools := ada.good("tools/list", nil)["tools"].([]any)
	if len(tools) != 1 || tools[0].(map[string]any)["name"] != "get_recent_events" {
		t.Errorf("people are offered %v", tools)
	}
	for _, tool := range []string{"get_event", "write_pause_endpoint"} {
		if r := ada.call("tools/call", map[string]any{"name": tool, "arguments": map[string]any{}}); r.code() != -32602 {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	ada.good("tools/call", map[string]any{"name": "get_recent_events", "arguments": map[string]any{"event": "incident.created"}})
	if n := webtest.One[int](w.World, "SELECT count(*)::int FROM audit_log WHERE action = 'mcp.call' AND actor_kind = 'principal' AND actor_id = 'auth0|ada'"); n != 1 {
		t.Errorf("the audit log names the person %d times", n)
	}
	if n := from.fetched.Load(); n > 2 {
		t.Errorf("the keys were fetched %d times", n)
	}
	from.rotate("second")
	d.people(from.token(shown.Audience, nil)).good("events/unsubscribe", hook.params(firstSecret))
	if res := ada.post("events/list", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token of a withdrawn key gets %d", res.StatusCode)
	}
}

// Only tokens of the issuer, for this server, of the right customer, and in time are accepted. None opens another
// tenant or the API.
func TestOtherTokensAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, from, other := w.desk(), newAuthority(t), newAuthority(t)
	shown := d.opens(client.MCPAccessPatch{Issuer: client.Value(from.url), Claim: client.Value("org"), ClaimValue: client.Value("acme")})
	good := func() string { return from.token(shown.Audience, nil) }
	eventually(t, "the change applies", func() bool {
		res := d.people(good()).post("events/list", nil)
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	claims := map[string]any{"iss": from.url, "aud": shown.Audience, "sub": "auth0|ada", "exp": time.Now().Add(time.Hour).Unix(), "org": "acme"}
	symmetric := jose.SigningKey{Algorithm: jose.HS256, Key: []byte("01234567890123456789012345678901")}
	d.people(from.token(shown.Audience, map[string]any{"org": "acme"})).good("events/list", nil)
	for name, token := range map[string]string{
		"another issuer's":      other.token(shown.Audience, nil),
		"another's, named as":   other.token(shown.Audience, map[string]any{"iss": from.url}),
		"for another audience":  from.token("https://posthorn.example.com/mcp/ten_x", nil),
		"expired":               from.token(shown.Audience, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"without an end":        from.token(shown.Audience, map[string]any{"exp": nil}),
		"of another customer":   from.token(shown.Audience, map[string]any{"org": "other"}),
		"of no customer":        from.token(shown.Audience, map[string]any{"org": nil}),
		"without a subject":     from.token(shown.Audience, map[string]any{"sub": ""}),
		"of a subject of lines": from.token(shown.Audience, map[string]any{"sub": "a\nb"}),
		"signed by a secret":    from.sign(symmetric, claims),
		"cut off":               good()[:len(good())-8],
		"no token":              "abc",
	} {
		res := d.people(token).post("events/list", nil)
		text := must[string](t)(readAll(res))
		if res.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "token_rejected") || strings.Contains(text, from.url) {
			t.Errorf("a token %s gets %d %s", name, res.StatusCode, text)
		}
	}
	tenant, _ := w.Tenant("Other")
	elsewhere := agent{w: w, key: good(), below: "/" + id.Tenant.Format(tenant)}
	unknown := agent{w: w, key: good(), below: "/nobody"}
	plain := agent{w: w, key: good()}
	for _, a := range []agent{elsewhere, unknown, plain} {
		if res := a.post("events/list", nil); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q gets %d", a.below, res.StatusCode)
		}
	}
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/api/v1/tenants/"+id.Tenant.Format(d.tenant)+"/events", nil))
	r.Header.Set("Authorization", "Bearer "+good())
	if res := must[*http.Response](t)(http.DefaultClient.Do(r)); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API gets %d", res.StatusCode)
	}
	for name, in := range map[string]client.MCPAccessPatch{
		"a private address":     {Issuer: client.Value("https://10.0.0.1")},
		"no issuer there":       {Issuer: client.Value(from.url + "/else")},
		"a claim without value": {Claim: client.Value("org"), ClaimValue: client.Null[string]()},
		"a host with a scheme":  {MessageIDHosts: &[]string{"https://agent.example.com"}},
	} {
		if _, err := w.platform().UpdateMCPAccess(t.Context(), id.Tenant.Format(d.tenant), in); err == nil || !strings.Contains(err.Error(), "mcp_access_invalid") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A tenant that does not exist has no settings.
func TestAnUnknownTenantHasNoSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nobody := id.Tenant.Format(id.UUID{1})
	_, read := w.platform().GetMCPAccess(t.Context(), nobody)
	_, changed := w.platform().UpdateMCPAccess(t.Context(), nobody, client.MCPAccessPatch{Audience: client.Value("a")})
	for _, err := range []error{read, changed} {
		if err == nil || !strings.Contains(err.Error(), "not_found") {
			t.Error(err)
		}
	}
}

func readAll(res *http.Response) (string, error) {
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// A host that wants the id of the message gets it. All others get the event's.
func TestAHostCanGetTheIDOfTheMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, hook := w.desk(), newCallback(t)
	d.opens(client.MCPAccessPatch{MessageIDHosts: &[]string{"127.0.0.1"}})
	d.good("events/subscribe", hook.params(firstSecret))
	d.emit(map[string]any{"severity": "P1"})
	got := hook.wait(1)[0]
	if err := got.verify(firstSecret); err != nil || !strings.HasPrefix(got.header.Get("Webhook-Id"), "dlv_") || !strings.HasPrefix(got.fields["eventId"].(string), "evt_") {
		t.Errorf("%v: %v %v", err, got.header, got.fields)
	}
}

// A client is told once that an event was not delivered, with a cursor from which it can read it, and its next refresh
// says so too.
func TestAClientIsToldOfAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, hook := w.desk(), newCallback(t)
	made := d.good("events/subscribe", hook.params(firstSecret))
	hook.responds(http.StatusRequestEntityTooLarge)
	d.emit(map[string]any{"severity": "P1", "n": 1})
	hook.wait(1)
	tell := func() {
		t.Helper()
		if err := subscriptions.TellGaps(t.Context(), w.db, w.Ring, publicURL, w.tester.Post, 10); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the failure is stored", func() bool {
		w.SQL("UPDATE dead_letters SET failed_at = failed_at - interval '10 seconds' WHERE failed_at > now() - interval '5 seconds'")
		w.SQL("UPDATE subscriptions SET told_until = now() - interval '1 minute' WHERE NOT missed")
		tell()
		hook.mu.Lock()
		defer hook.mu.Unlock()
		return len(hook.got) == 2
	})
	tell()
	got := hook.wait(2)
	if gap := got[1]; gap.fields["type"] != "gap" || gap.fields["cursor"] != made["cursor"] || gap.verify(firstSecret) != nil || !strings.HasPrefix(gap.header.Get("Webhook-Id"), "msg_gap_") {
		t.Errorf("%v %v, want a gap after %v", gap.header, gap.fields, made["cursor"])
	}
	if len(got) != 2 {
		t.Errorf("the client was told %d times", len(got)-1)
	}
	missed := map[string]any{"name": "incident.created", "arguments": map[string]any{"severity": "P1"}, "cursor": made["cursor"]}
	eventually(t, "the event is behind the cursor", func() bool { return len(d.good("events/poll", missed)["events"].([]any)) == 1 })
	if again := d.good("events/subscribe", hook.params(firstSecret)); again["truncated"] != true {
		t.Errorf("the refresh: %v", again)
	}
	if again := d.good("events/subscribe", hook.params(firstSecret)); again["truncated"] != false {
		t.Errorf("the refresh after that: %v", again)
	}
}
