package publickeys_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/handlers"
	"posthorn/handlers/publickeys"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const base = "https://posthorn.example.com"

func server(t *testing.T, d *db.DB, ring *seal.Ring, publicURL string) func(path string) *httptest.ResponseRecorder {
	t.Helper()
	kit := handlers.New(handlers.Config{Log: slog.New(slog.DiscardHandler), Now: time.Now, BaseURL: publicURL})
	engine := kit.NewEngine()
	kit.Mount(engine, publickeys.Routes(publickeys.Deps{DB: d, Keys: ring, BaseURL: publicURL, Now: time.Now}))
	return func(path string) *httptest.ResponseRecorder {
		t.Helper()
		res := httptest.NewRecorder()
		engine.ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), http.MethodGet, publicURL+path, nil))
		return res
	}
}

func opened(t *testing.T) (d *db.DB, tenant, other id.UUID, ring *seal.Ring) {
	t.Helper()
	d, _, tenant, other = schematest.Tenants(t, 4)
	ring, err := seal.NewRing(seal.Generate([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return d, tenant, other, ring
}

func keySet(t *testing.T, res *httptest.ResponseRecorder) (set httpsig.JWKS) {
	t.Helper()
	if err := json.Unmarshal(res.Body.Bytes(), &set); err != nil || res.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", res.Code, res.Body, err)
	}
	if strings.Contains(res.Body.String(), `"d"`) || res.Header().Get("Cache-Control") != "public, max-age=3600" || res.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%v %s", res.Header(), res.Body)
	}
	return set
}

func TestATenantsKeysArePublic(t *testing.T) {
	t.Parallel()
	d, tenant, other, ring := opened(t)
	get := server(t, d, ring, base)
	by := endpoints.Editor{Keys: ring, By: db.Author{Kind: "command"}}
	for range 2 {
		if err := d.Tenant(t.Context(), tenant, func(q *db.Tx) error {
			_, err := by.RotateSigningKeys(t.Context(), q, tenant, 60)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	res := get(httpsig.KeysPath(id.Tenant.Format(tenant)))
	set := keySet(t, res)
	if len(set.Keys) != 2 || set.Keys[0].ID == set.Keys[1].ID || set.Keys[0].Expires != 0 || set.Keys[1].Expires == 0 || res.Header().Get("Content-Type") != "application/jwk-set+json" {
		t.Errorf("%+v", set)
	}
	for _, k := range set.Keys {
		raw, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || httpsig.Thumbprint(raw) != k.ID {
			t.Errorf("%+v: %v", k, err)
		}
	}
	for _, path := range []string{httpsig.KeysPath(id.Tenant.Format(other)), httpsig.KeysPath(id.Tenant.Format(id.UUID{1})), httpsig.KeysPath(id.Tenant.Format(id.None)), httpsig.KeysPath(id.Tenant.Format(endpoints.Platform)), httpsig.KeysPath("x")} {
		if res := get(path); res.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, res.Code, res.Body)
		}
	}
}

// The directory is signed for the public host with each of its keys (draft-ietf-webbotauth-httpsig-protocol-01).
func TestTheDirectoryProvesItsKeys(t *testing.T) {
	t.Parallel()
	d, _, _, ring := opened(t)
	if res := server(t, d, ring, base)(httpsig.DirectoryPath); res.Code != http.StatusNotFound {
		t.Errorf("off: %d", res.Code)
	}
	change := accounts.PlatformChange{Texts: map[string]string{settings.BotSignature: "on"}}
	if _, err := accounts.ChangePlatform(t.Context(), d, change, db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	if res := server(t, d, ring, "http://posthorn.example.com")(httpsig.DirectoryPath); res.Code != http.StatusNotFound {
		t.Errorf("without TLS: %d", res.Code)
	}
	res := server(t, d, ring, base)(httpsig.DirectoryPath)
	set := keySet(t, res)
	if len(set.Keys) != 1 || res.Header().Get("Content-Type") != httpsig.DirectoryType {
		t.Fatalf("%+v, %v", set, res.Header())
	}
	digest := httpsig.Digest(res.Body.Bytes())
	params, is := strings.CutPrefix(res.Header().Get("Signature-Input"), "binding0=")
	signed := "\"@authority\";req: posthorn.example.com\n\"content-digest\": " + digest + "\n\"@signature-params\": " + params
	value, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(res.Header().Get("Signature"), "binding0=:"), ":"))
	key, _ := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	if err != nil || !is || res.Header().Get("Content-Digest") != digest || !ed25519.Verify(key, []byte(signed), value) {
		t.Errorf("%v does not sign %s", res.Header(), signed)
	}
	for _, part := range []string{`("@authority";req "content-digest")`, `keyid="` + set.Keys[0].ID + `"`, `tag="http-message-signatures-directory"`, ";created=", ";expires="} {
		if !strings.Contains(params, part) {
			t.Errorf("%s lacks %s", params, part)
		}
	}
}
