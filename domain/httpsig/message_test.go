package httpsig

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/domain/signature"
)

// The key test-key-ed25519 of RFC 9421 appendix B.1.4.
const testSeed = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"

func testKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString(testSeed)
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

// The components of test-request of RFC 9421 appendix B.2, by name.
var testRequest = map[string]string{
	"date":           "Tue, 20 Apr 2021 02:07:55 GMT",
	"content-type":   "application/json",
	"content-digest": "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
	"content-length": "18",
	"@method":        "POST",
	"@path":          "/foo",
	"@query":         "?param=Value&Pet=dog",
	"@authority":     "example.com",
}

func covered(names ...string) (all []Component) {
	for _, name := range names {
		bare, params, _ := strings.Cut(name, ";")
		if params != "" {
			params = ";" + params
		}
		all = append(all, Component{Name: bare, Params: params, Value: testRequest[bare]})
	}
	return all
}

func TestTheVectorsOfRFC9421(t *testing.T) {
	t.Parallel()
	at := time.Unix(1618884473, 0)
	query := covered("@query-param;name=\"Pet\"")
	query[0].Value = "dog"
	for _, v := range []struct {
		section string
		covered []Component
		params  Params
		base    string
	}{
		{
			"B.2.1",
			nil,
			Params{Created: at, KeyID: "test-key-rsa-pss", Nonce: "b3k2pp5k7z-50gnwp.yemd"},
			`"@signature-params": ();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`,
		},
		{
			"B.2.2",
			append(covered("@authority", "content-digest"), query...),
			Params{Created: at, KeyID: "test-key-rsa-pss", Tag: "header-example"},
			"\"@authority\": example.com\n" +
				"\"content-digest\": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:\n" +
				"\"@query-param\";name=\"Pet\": dog\n" +
				`"@signature-params": ("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"`,
		},
		{
			"B.2.3",
			covered("date", "@method", "@path", "@query", "@authority", "content-type", "content-digest", "content-length"),
			Params{Created: at, KeyID: "test-key-rsa-pss"},
			"\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@method\": POST\n\"@path\": /foo\n\"@query\": ?param=Value&Pet=dog\n" +
				"\"@authority\": example.com\n\"content-type\": application/json\n" +
				"\"content-digest\": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:\n" +
				"\"content-length\": 18\n" +
				`"@signature-params": ("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"`,
		},
		{
			"B.2.5",
			covered("date", "@authority", "content-type"),
			Params{Created: at, KeyID: "test-shared-secret"},
			"\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@authority\": example.com\n\"content-type\": application/json\n" +
				`"@signature-params": ("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
		},
	} {
		if got := string(base(v.covered, input(v.covered, v.params))); got != v.base {
			t.Errorf("%s: the base is\n%s\nnot\n%s", v.section, got, v.base)
		}
	}
	signed := Sign("sig-b26", testKey(t), covered("date", "@method", "@path", "@authority", "content-type", "content-length"),
		Params{Created: at, KeyID: "test-key-ed25519"})
	headers := Headers([]Signature{signed})
	if want := `sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`; headers[0].Value != want {
		t.Errorf("B.2.6: Signature-Input is %s, not %s", headers[0].Value, want)
	}
	if want := "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"; headers[1].Value != want {
		t.Errorf("B.2.6: Signature is %s, not %s", headers[1].Value, want)
	}
}

// The vectors of RFC 8037 appendix A.3, RFC 9530 appendix D, and the drafts of Web Bot Auth.
func TestDigestsAndThumbprintsAreThoseOfTheirStandards(t *testing.T) {
	t.Parallel()
	raw, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	if got := Thumbprint(raw); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("the thumbprint is %s", got)
	}
	if got := Digest([]byte(`{"hello": "world"}` + "\n")); got != "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:" {
		t.Errorf("the digest is %s", got)
	}
}

func TestARequestIsSignedOverAllThatAReceiverActsOn(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	signer := NewSigner([ed25519.SeedSize]byte(testKey(t).Seed()), Span{StartsAt: at})
	for _, c := range []struct{ url, authority, path, query string }{
		{"https://Example.COM:443/in", "example.com", "/in", ""},
		{"https://example.com:8443/a%20b?x=1&y", "example.com:8443", "/a%20b", "?x=1&y"},
		{"http://example.com:80", "example.com", "/", ""},
		{"http://example.com/in?", "example.com", "/in", "?"},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		signed, digest := signer.Webhook(Request{
			Method:  "POST",
			URL:     u,
			Body:    []byte("{}"),
			Type:    "application/json",
			Headers: []signature.Header{{Name: "webhook-id", Value: "evt_1"}},
			ID:      "webhook-id",
			At:      at,
		})
		want := "\"@method\": POST\n\"@authority\": " + c.authority + "\n\"@path\": " + c.path + "\n"
		names := `("@method" "@authority" "@path"`
		if c.query != "" {
			want, names = want+"\"@query\": "+c.query+"\n", names+` "@query"`
		}
		want += "\"content-digest\": " + digest + "\n\"content-type\": application/json\n\"webhook-id\": evt_1\n" +
			"\"@signature-params\": " + signed.Input
		value, err := base64.StdEncoding.DecodeString(strings.Trim(signed.Value, ":"))
		if err != nil || !strings.HasPrefix(signed.Input, names) || !ed25519.Verify(testKey(t).Public().(ed25519.PublicKey), []byte(want), value) {
			t.Errorf("%s: %s does not sign\n%s", c.url, signed.Input, want)
		}
	}
}

func TestAKeyIsNeverPrinted(t *testing.T) {
	t.Parallel()
	signer := NewSigner([ed25519.SeedSize]byte(testKey(t).Seed()), Span{})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, value := range []any{signer, &signer, []Signer{signer}, Bot{Signers: []Signer{signer}}} {
			if text := fmt.Sprintf(verb, value); !strings.Contains(text, "redacted") || strings.Contains(text, "159") {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
}

func TestANewKeyIsPublishedBeforeItSigns(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	end := now.Add(48 * time.Hour)
	old, next := Span{StartsAt: now.Add(-time.Hour), ExpiresAt: &end}, Span{StartsAt: now.Add(24 * time.Hour)}
	keys := []Span{next, old}
	for _, c := range []struct {
		at        time.Time
		next, old State
	}{
		{now, Next, Signing},
		{now.Add(24 * time.Hour), Signing, Retired},
	} {
		if got := StateOf(keys, 0, c.at); got != c.next {
			t.Errorf("at %s the new key is %s, not %s", c.at, got, c.next)
		}
		if got := StateOf(keys, 1, c.at); got != c.old {
			t.Errorf("at %s the old key is %s, not %s", c.at, got, c.old)
		}
	}
	for _, seconds := range []int{-1, MaxStart + 1} {
		if CheckStart(seconds) == nil {
			t.Errorf("a key can start in %d seconds", seconds)
		}
	}
}
