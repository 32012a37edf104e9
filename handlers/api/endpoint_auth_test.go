package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
)

// certificateAndKey are a client certificate and its key, in PEM.
func certificateAndKey(t testing.TB, ends time.Time) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "posthorn"}, NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8)
}

func TestNobodySeesWhatAnEndpointAuthenticatesWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	certificate, key := certificateAndKey(t, time.Now().Add(400*24*time.Hour))
	secretPart := strings.Split(key, "\n")[1]
	for name, auth := range map[string]map[string]any{
		"bearer":  {"type": "bearer", "token": "canary-secret"},
		"basic":   {"type": "basic", "username": "ada", "password": "canary-secret"},
		"api_key": {"type": "api_key", "header": "X-Api-Key", "key": "canary-secret"},
		"oauth2":  {"type": "oauth2", "token_url": "https://login.example.com/token", "client_id": "a", "client_secret": "canary-secret", "scopes": []string{"b"}},
	} {
		body := map[string]any{"url": "https://hooks.example.com/" + name, "auth": auth, "tls": map[string]any{"client_certificate": certificate, "private_key": key}}
		made := w.do("POST", "/api/v1/endpoints", tn.key, body).want(http.StatusCreated)
		ep := made.text("id")
		path := "/api/v1/endpoints/" + ep
		read := w.do("GET", path, tn.key, nil).want(http.StatusOK)
		described := w.do("PATCH", path, tn.key, map[string]any{"description": "x"}).want(http.StatusOK)
		list := w.do("GET", "/api/v1/endpoints", tn.key, nil).want(http.StatusOK)
		for _, a := range []*answer{made, read, described} {
			if a.text("auth.type") != name || a.text("tls.client_certificate") != certificate || a.text("tls.subject") != "CN=posthorn" || a.text("tls.expires_at") == "" {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		audit := w.do("GET", "/api/v1/audit-log", tn.key, nil)
		for _, a := range []*answer{made, read, described, list, audit} {
			if strings.Contains(string(a.Body), "canary") || strings.Contains(string(a.Body), secretPart) {
				t.Errorf("%s: shows a secret: %s", name, a.Body)
			}
		}
		const sealed = "SELECT count(*)::int FROM endpoints WHERE id = $1 AND credentials IS NOT NULL AND certificate_ends_at > now() AND position('canary'::bytea IN credentials) = 0"
		if n := one[int](w, sealed, w.uuid(id.Endpoint, ep)); n != 1 {
			t.Errorf("%s: the credentials are not sealed", name)
		}
		moved := w.do("PATCH", path, tn.key, map[string]any{"url": "https://evil.example.com/"}).want(http.StatusBadRequest)
		if moved.text("code") != "auth_secret_needed" || strings.Contains(string(moved.Body), "canary") {
			t.Errorf("%s: another host: %s", name, moved.Body)
		}
		if a := w.do("PATCH", path, tn.key, map[string]any{"auth": nil, "tls": nil}).want(http.StatusOK); a.get("auth") != nil || a.get("tls") != nil {
			t.Errorf("%s: removed: %s", name, a.Body)
		}
		w.do("PATCH", path, tn.key, map[string]any{"auth": auth, "tls": map[string]any{"client_certificate": certificate, "private_key": key}}).want(http.StatusOK)
		w.do("DELETE", path, tn.key, nil).want(http.StatusNoContent)
		if n := one[int](w, "SELECT count(*)::int FROM endpoints WHERE id = $1 AND credentials IS NULL AND certificate_ends_at IS NULL", w.uuid(id.Endpoint, ep)); n != 1 {
			t.Errorf("%s: a deleted endpoint keeps its secrets", name)
		}
	}
}

func TestAnInvalidAuthenticationIsRejectedByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	for _, tt := range []struct {
		body        map[string]any
		code, field string
	}{
		{map[string]any{"auth": map[string]any{"type": "digest"}}, "auth_type_unknown", "auth.type"},
		{map[string]any{"auth": map[string]any{"type": "bearer"}}, "auth_malformed", "auth.token"},
		{map[string]any{"auth": map[string]any{"type": "bearer", "token": "a", "color": "b"}}, "unknown_field", "auth.color"},
		{
			map[string]any{"auth": map[string]any{"type": "oauth2", "token_url": "https://10.0.0.1/", "client_id": "a", "client_secret": "b"}},
			"auth_token_url_refused",
			"auth.token_url",
		},
		{map[string]any{"tls": map[string]any{"ca_certificate": "a"}}, "ca_certificate_refused", "tls.ca_certificate"},
		{map[string]any{"tls": map[string]any{"client_certificate": "a", "private_key": "canary"}}, "client_certificate_refused", "tls.client_certificate"},
	} {
		tt.body["url"] = "https://hooks.example.com/"
		a := w.do("POST", "/api/v1/endpoints", tn.key, tt.body)
		a.problem(http.StatusBadRequest, tt.code, tt.field)
		if strings.Contains(string(a.Body), "canary") {
			t.Errorf("repeats a secret: %s", a.Body)
		}
	}
}

func TestTheExamplesOfThePageAuthenticateAnEndpoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/receiver-auth.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	tn := w.tenant("a")
	path := "/api/v1/endpoints/" + w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"url": "https://hooks.example.com/"}).want(http.StatusCreated).text("id")
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, example := range examples {
		if a := w.do("PATCH", path, tn.key, example[1]).want(http.StatusOK); a.text("auth.type") == "" {
			t.Errorf("%s: %s", example[1], a.Body)
		}
	}
	if len(examples) != 4 {
		t.Errorf("%d examples", len(examples))
	}
}
