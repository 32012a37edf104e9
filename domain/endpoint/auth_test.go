package endpoint_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
)

func receiver(t testing.TB, url string, given map[string]string) (endpoint.Settings, error) {
	t.Helper()
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL = url
	return patched(s, given)
}

func patched(s endpoint.Settings, given map[string]string) (endpoint.Settings, error) {
	raw := map[string]json.RawMessage{}
	for name, text := range given {
		raw[name] = json.RawMessage(text)
	}
	if err := s.Patch(raw); err != nil {
		return s, err
	}
	return s.Check(egress.Policy{})
}

// newKey is a private key in PEM and a certificate of it.
func newKey(t testing.TB, ends time.Time) (key, certificate string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "posthorn"}, NotBefore: ends.Add(-time.Hour), NotAfter: ends}
	signed, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
}

func quoted(text string) string { return string(must(json.Marshal(text))) }

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

const (
	hook  = "https://hooks.example.com/in"
	oauth = `{"type":"oauth2","token_url":"https://login.example.com/token","client_id":"posthorn","client_secret":"canary"%s}`
)

func TestEachWayToAuthenticateIsSetShownAndSent(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t, time.Now())
	for _, c := range []struct{ auth, name, value, shown, fields string }{
		{`{"type":"bearer","token":"canary"}`, "Authorization", "Bearer canary", "Bearer ***", `{"type":"bearer"}`},
		{`{"type":"basic","username":"ada","password":"canary"}`, "Authorization", "Basic YWRhOmNhbmFyeQ==", "Basic ***", `{"type":"basic","username":"ada"}`},
		{`{"type":"api_key","header":"X-Api-Key","key":"canary 1"}`, "X-Api-Key", "canary 1", "***", `{"type":"api_key","header":"X-Api-Key"}`},
		{
			fmt.Sprintf(oauth, `,"scopes":["a","a"],"audience":"b"`), "Authorization", "", "Bearer ***",
			`{"type":"oauth2","token_url":"https://login.example.com/token","client_id":"posthorn","client_auth":"client_secret_basic","scopes":["a"],"audience":"b"}`,
		},
		{
			fmt.Sprintf(oauth, `,"scopes":[]`), "Authorization", "", "Bearer ***",
			`{"type":"oauth2","token_url":"https://login.example.com/token","client_id":"posthorn","client_auth":"client_secret_basic"}`,
		},
		{
			`{"type":"oauth2","token_url":"https://login.example.com/token","client_id":"posthorn","client_auth":"private_key_jwt","key_id":"1","private_key":` + quoted(key) + `}`,
			"Authorization", "", "Bearer ***",
			`{"type":"oauth2","token_url":"https://login.example.com/token","client_id":"posthorn","client_auth":"private_key_jwt","key_id":"1"}`,
		},
	} {
		s, err := receiver(t, hook, map[string]string{"auth": c.auth})
		if err != nil {
			t.Errorf("%s: %v %+v", c.auth, err, fault.As(err))
			continue
		}
		if s.Auth.HeaderName() != c.name || s.Auth.HeaderShown() != c.shown || c.value != "" && s.Auth.HeaderValue() != c.value {
			t.Errorf("%s: %s: %s", c.auth, s.Auth.HeaderName(), s.Auth.HeaderValue())
		}
		text, _ := json.Marshal(s.Shown()["auth"])
		if string(text) != c.fields {
			t.Errorf("shown as %s, want %s", text, c.fields)
		}
		if printed := fmt.Sprintf("%v %+v %#v %s", s, s.Auth, *s.Auth, s.Auth); strings.Contains(printed, "canary") || strings.Contains(printed, "PRIVATE") {
			t.Errorf("prints its secret: %s", printed)
		}
		var stored endpoint.Auth
		if err := json.Unmarshal(must(json.Marshal(s.Auth)), &stored); err != nil || !reflect.DeepEqual(&stored, s.Auth) {
			t.Errorf("%s is stored as something else: %v", c.auth, err)
		}
		if same := s.Diff(s.Clone()); len(same) > 0 || s.Clone().Auth == s.Auth {
			t.Errorf("a copy differs: %v", same)
		}
	}
}

func TestAMalformedAuthenticationIsRejectedByField(t *testing.T) {
	t.Parallel()
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(small)
	if err != nil {
		t.Fatal(err)
	}
	weak := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	jwt := func(key string) string {
		return `{"type":"oauth2","token_url":"https://login.example.com/token","client_id":"a","client_auth":"private_key_jwt","private_key":` + quoted(key) + `}`
	}
	for _, c := range []struct{ auth, headers, field, code string }{
		{`{"type":"digest"}`, "", "auth.type", "auth_type_unknown"},
		{`{}`, "", "auth.type", "auth_type_unknown"},
		{`"bearer"`, "", "auth", "body_malformed"},
		{`{"type":"bearer"}`, "", "auth.token", "auth_malformed"},
		{`{"type":"bearer","token":"***"}`, "", "auth.token", "auth_malformed"},
		{`{"type":"bearer","token":"Bearer x"}`, "", "auth.token", "auth_malformed"},
		{`{"type":"bearer","token":"a\r\nX-B: c"}`, "", "auth.token", "auth_malformed"},
		{`{"type":"bearer","token":"` + strings.Repeat("a", 8193) + `"}`, "", "auth.token", "auth_malformed"},
		{`{"type":"bearer","token":"a","username":"b"}`, "", "auth.username", "auth_field_unwanted"},
		{`{"type":"basic","username":"a:b","password":"c"}`, "", "auth.username", "auth_malformed"},
		{`{"type":"basic","username":"a"}`, "", "auth.password", "auth_malformed"},
		{`{"type":"api_key","header":"Content-Length","key":"a"}`, "", "auth.header", "auth_malformed"},
		{`{"type":"api_key","header":"Webhook-Signature","key":"a"}`, "", "auth.header", "auth_malformed"},
		{`{"type":"api_key","header":"X A","key":"a"}`, "", "auth.header", "auth_malformed"},
		{`{"type":"api_key","header":"X-A","key":"a"}`, `{"x-a":"b"}`, "custom_headers.x-a", "custom_header_refused"},
		{`{"type":"bearer","token":"a"}`, `{"authorization":"b"}`, "custom_headers.authorization", "custom_header_refused"},
		{strings.Replace(fmt.Sprintf(oauth, ""), "login.example.com", "10.0.0.1", 1), "", "auth.token_url", "auth_token_url_refused"},
		{strings.Replace(fmt.Sprintf(oauth, ""), "login.example.com", "169.254.169.254", 1), "", "auth.token_url", "auth_token_url_refused"},
		{strings.Replace(fmt.Sprintf(oauth, ""), "https", "http", 1), "", "auth.token_url", "auth_token_url_refused"},
		{fmt.Sprintf(oauth, `,"client_auth":"none"`), "", "auth.client_auth", "auth_client_auth_unknown"},
		{fmt.Sprintf(oauth, `,"client_auth":"tls_client_auth"`), "", "auth.client_secret", "auth_field_unwanted"},
		{strings.Replace(fmt.Sprintf(oauth, `,"client_auth":"tls_client_auth"`), `,"client_secret":"canary"`, "", 1), "", "auth.client_auth", "auth_malformed"},
		{fmt.Sprintf(oauth, `,"scopes":["a b"]`), "", "auth.scopes", "auth_malformed"},
		{fmt.Sprintf(oauth, `,"audience":"a\u0000"`), "", "auth.audience", "auth_malformed"},
		{fmt.Sprintf(oauth, `,"private_key":"a"`), "", "auth.private_key", "auth_field_unwanted"},
		{jwt("canary"), "", "auth.private_key", "private_key_refused"},
		{jwt(weak), "", "auth.private_key", "private_key_refused"},
		{jwt("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), "", "auth.private_key", "private_key_refused"},
	} {
		given := map[string]string{"auth": c.auth}
		if c.headers != "" {
			given["custom_headers"] = c.headers
		}
		_, err := receiver(t, hook, given)
		f := fault.As(err)
		if f == nil || len(f.Fields) != 1 || f.Fields[0].Name != c.field || f.Fields[0].Code != c.code || strings.Contains(f.Fields[0].Detail, "canary") {
			t.Errorf("%.90s: %+v", c.auth, f)
		}
	}
	s, _ := topic()
	s.Auth = &endpoint.Auth{Type: endpoint.Bearer, Secret: "a"}
	s.TLS = &endpoint.ClientTLS{CA: "a"}
	if _, err := s.Check(egress.Policy{}); !strings.Contains(fmt.Sprint(fault.As(err).Fields), "auth_unwanted") || !strings.Contains(fmt.Sprint(fault.As(err).Fields), "tls_unwanted") {
		t.Errorf("a topic: %+v", fault.As(err).Fields)
	}
}

// Who can change an endpoint but not see its secret must not learn it by sending it elsewhere.
func TestAStoredSecretIsSentToNobodyElse(t *testing.T) {
	t.Parallel()
	bearer, err := receiver(t, hook, map[string]string{"auth": `{"type":"bearer","token":"canary"}`})
	if err != nil {
		t.Fatal(err)
	}
	client, err := receiver(t, hook, map[string]string{"auth": fmt.Sprintf(oauth, "")})
	if err != nil {
		t.Fatal(err)
	}
	bare := func(more string) string {
		return strings.Replace(fmt.Sprintf(oauth, more), `,"client_secret":"canary"`, "", 1)
	}
	for _, c := range []struct {
		name  string
		from  endpoint.Settings
		given map[string]string
		keeps bool
	}{
		{"another path", bearer, map[string]string{"url": `"https://hooks.example.com/other?a=b"`}, true},
		{"the same port, written out", bearer, map[string]string{"url": `"https://hooks.example.com:443/in"`}, true},
		{"another host", bearer, map[string]string{"url": `"https://evil.example.com/in"`}, false},
		{"another port", bearer, map[string]string{"url": `"https://hooks.example.com:8443/in"`}, false},
		{"another host, the same auth", bearer, map[string]string{"url": `"https://evil.example.com/in"`, "auth": `{"type":"bearer"}`}, false},
		{"another host, the marker", bearer, map[string]string{"url": `"https://evil.example.com/in"`, "auth": `{"type":"bearer","token":"***"}`}, false},
		{"the same auth", bearer, map[string]string{"auth": `{"type":"bearer","token":"***"}`}, true},
		{"another type", bearer, map[string]string{"auth": `{"type":"api_key","header":"X-A"}`}, false},
		{"something else", bearer, map[string]string{"description": `"x"`}, true},
		{"other scopes", client, map[string]string{"auth": bare(`,"scopes":["b"],"resource":"c"`)}, true},
		{"another token URL", client, map[string]string{"auth": strings.Replace(bare(""), "login", "evil", 1)}, false},
		{"another client", client, map[string]string{"auth": strings.Replace(bare(""), `"posthorn"`, `"other"`, 1)}, false},
		{"another host of the receiver", client, map[string]string{"url": `"https://evil.example.com/in"`}, false},
	} {
		s, err := patched(c.from, c.given)
		if f := fault.As(err); c.keeps != (err == nil) || err != nil && (f == nil || f.Fields[0].Code != "auth_secret_needed") {
			t.Errorf("%s: %+v", c.name, f)
		}
		if err == nil && s.Auth.Secret != "canary" {
			t.Errorf("%s: %q is kept", c.name, s.Auth.Secret)
		}
	}
	if s, err := patched(bearer, map[string]string{"url": `"https://evil.example.com/in"`, "auth": `{"type":"bearer","token":"new"}`}); err != nil || s.Auth.Secret != "new" {
		t.Errorf("given again: %v", err)
	}
	if s, err := patched(bearer, map[string]string{"url": `"https://evil.example.com/in"`, "auth": `null`}); err != nil || s.Auth != nil {
		t.Errorf("removed: %v", err)
	}
}

func TestACertificateIsInstalledRenewedAndRemoved(t *testing.T) {
	t.Parallel()
	ends := time.Date(2030, 5, 4, 3, 2, 1, 0, time.UTC)
	key, certificate := newKey(t, ends)
	other, _ := newKey(t, ends)
	s, err := receiver(t, hook, map[string]string{"tls": `{"client_certificate":` + quoted("mine:\r\n"+certificate) + `,"private_key":` + quoted(key) + `}`})
	if err != nil {
		t.Fatalf("%+v", fault.As(err))
	}
	shown, _ := json.Marshal(s.Shown()["tls"])
	want := `{"client_certificate":` + quoted(certificate) + `,"subject":"CN=posthorn","expires_at":"2030-05-04T03:02:01Z","ca_certificate":null,"certificate_request":null}`
	if string(shown) != want || !s.TLS.Ends().Equal(ends) {
		t.Errorf("shown as %s", shown)
	}
	if printed := fmt.Sprintf("%+v %#v %v", s, *s.TLS, s.TLS); strings.Contains(printed, "PRIVATE") {
		t.Errorf("prints its key: %s", printed)
	}
	again, err := patched(s, map[string]string{"tls": `{"ca_certificate":` + quoted(certificate) + `,"private_key":"***"}`})
	if err != nil || again.TLS.Key != s.TLS.Key || again.TLS.CA != certificate {
		t.Errorf("an authority beside it: %+v", fault.As(err))
	}
	for _, c := range []struct{ tls, field, code string }{
		{`{"client_certificate":` + quoted(certificate) + `,"private_key":` + quoted(other) + `}`, "tls.private_key", "private_key_refused"},
		{`{"private_key":"x"}`, "tls.private_key", "private_key_refused"},
		{`{"client_certificate":"x"}`, "tls.client_certificate", "client_certificate_refused"},
		{`{"client_certificate":` + quoted(certificate+key) + `}`, "tls.client_certificate", "client_certificate_refused"},
		{`{"ca_certificate":"x"}`, "tls.ca_certificate", "ca_certificate_refused"},
		{`[]`, "tls", "body_malformed"},
	} {
		_, err := patched(s, map[string]string{"tls": c.tls})
		if f := fault.As(err); f == nil || f.Fields[0].Name != c.field || f.Fields[0].Code != c.code {
			t.Errorf("%.60s: %+v", c.tls, f)
		}
	}
	if _, err := receiver(t, hook, map[string]string{"tls": `{"client_certificate":` + quoted(certificate) + `}`}); err == nil || fault.As(err).Fields[0].Name != "tls.private_key" {
		t.Errorf("without a key: %v", err)
	}
	for _, none := range []string{`null`, `{"client_certificate":null}`} {
		if s, err := patched(s, map[string]string{"tls": none}); err != nil || s.TLS != nil {
			t.Errorf("%s: %v", none, err)
		}
	}
}

func TestWhatWasRequestedIsInstalledWithoutItsKey(t *testing.T) {
	t.Parallel()
	s, err := receiver(t, hook, nil)
	if err != nil {
		t.Fatal(err)
	}
	requested, err := s.RequestCertificate(rand.Reader, " Acme Ltd ")
	if err == nil {
		requested, err = requested.Check(egress.Policy{})
	}
	if err != nil || requested.TLS.Connects() != nil || s.TLS != nil {
		t.Fatalf("%v %v", err, s.TLS)
	}
	block, _ := pem.Decode([]byte(requested.TLS.Request))
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil || request.Subject.CommonName != "Acme Ltd" {
		t.Fatalf("%+v %v", request, err)
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: request.Subject}, ca, request.PublicKey, authority)
	if err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	_, strange := newKey(t, time.Now())
	if _, err := patched(requested, map[string]string{"tls": `{"client_certificate":` + quoted(strange) + `}`}); err == nil {
		t.Error("another's certificate is installed")
	}
	installed, err := patched(requested, map[string]string{"tls": `{"client_certificate":` + quoted(certificate) + `}`})
	if err != nil || installed.TLS.Request != "" || installed.TLS.RequestKey != "" || installed.TLS.Key != requested.TLS.RequestKey {
		t.Fatalf("%+v", fault.As(err))
	}
	again, err := installed.RequestCertificate(rand.Reader, "")
	if err != nil || again.TLS.Certificate != certificate || again.TLS.Key != installed.TLS.Key || *again.TLS.Connects() != *installed.TLS.Connects() {
		t.Errorf("the next request changes what is in use: %v", err)
	}
	if _, err := s.RequestCertificate(rand.Reader, strings.Repeat("a", 65)); fault.As(err) == nil || fault.As(err).Fields[0].Name != "common_name" {
		t.Errorf("a long name: %v", err)
	}
}

func TestHowAnEndpointAuthenticatesIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	for _, way := range endpoint.AuthTypes() {
		if got := (endpoint.Settings{Auth: &endpoint.Auth{Type: way, Secret: "canary"}}).Authenticates(); len(got) != 1 || got[0] == "" || strings.Contains(got[0], "canary") {
			t.Errorf("%s: %q", way, got)
		}
	}
	if got := (endpoint.Settings{}).Authenticates(); got != nil {
		t.Errorf("without any: %q", got)
	}
	for _, p := range []endpoint.PublicSignature{endpoint.RFC9421, endpoint.V1a, endpoint.BothPublic, endpoint.NoPublic, ""} {
		if (p.Label() != "") != p.Signed() {
			t.Errorf("%s: %q", p, p.Label())
		}
	}
}
