package openid

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"

	"posthorn/domain/fault"
)

// A claim that identifies somebody is stored. What the database can't hold is rejected, and other claims are cleaned.
func TestAClaimWithANULIsRejected(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sub", "email", "sid"} {
		said := map[string]any{"sub": "1", "email": "a@example.com", "sid": "s"}
		if _, err := read(said, ""); err != nil {
			t.Fatalf("an ordinary token: %v", err)
		}
		said[name] = "a\x00b"
		if _, err := read(said, ""); !errors.Is(err, errNUL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	claims, err := read(map[string]any{"sub": "1", "name": "A\x00\x1bB"}, "")
	if err != nil || claims.Name != "A B" {
		t.Errorf("a name: %q, %v", claims.Name, err)
	}
}

// Keys that can't be fetched are not a fault of the token.
func TestKeysThatCannotBeFetchedAreUnreachable(t *testing.T) {
	t.Parallel()
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	token := part(`{"alg":"RS256"}`) + "." + part(`{}`) + "." + part("signature")
	for body, want := range map[string]error{"": errUnreachable, `{"keys":[]}`: errRejected} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body == "" {
				w.WriteHeader(http.StatusBadGateway)
			}
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		ctx := oidc.ClientContext(context.Background(), server.Client())
		keys := &keySet{remote: oidc.NewRemoteKeySet(ctx, server.URL)}
		_, err := keys.VerifySignature(ctx, token)
		if err == nil || fault.As(keys.fault(err)).Code != fault.As(want).Code {
			t.Errorf("keys %q: %v, want %v", body, keys.fault(err), want)
		}
	}
}
