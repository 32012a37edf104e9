package worker

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/tools/optest"
)

// A token endpoint that is down is not the receiver's fault: its breaker stays closed, and what waited is delivered.
func TestAMissingTokenHoldsNothingAgainstTheReceiver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var mu sync.Mutex
	var logged bytes.Buffer
	h.log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(p)
	}), nil))
	op := optest.New(t, "https://unused.example.com/")
	op.Secret = "canary-client-secret"
	var tokens []string
	r := newReceiver(t, func(a arrival) int {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, strings.TrimPrefix(a.header.Get("Authorization"), "Bearer "))
		if !op.Accepts(a.header.Get("Authorization")) {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays = endpoint.Custom, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
		s.Auth = &endpoint.Auth{
			Type:   endpoint.OAuth2,
			Secret: op.Secret,
			Client: &endpoint.OAuthClient{TokenURL: op.URL + "/oauth/token", ID: op.ClientID, Auth: endpoint.ClientSecretPost},
		}
	})
	op.Break(`{"error":"temporarily_unavailable","error_description":"Maintenance"}`)
	h.emitN(tenant, 15) // more than what opens a breaker
	h.worker(true)
	eventually(t, 15*time.Second, "each was tried", func() bool {
		return h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1 AND failure = $2 AND error LIKE '%500: temporarily_unavailable: Maintenance'", ep, int16(delivery.FailToken)) >= 15
	})
	if n := len(r.seen()); n != 0 {
		t.Errorf("%d requests without a token", n)
	}
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND (breaker_state <> 0 OR consecutive_failures > 0 OR auth_streak > 0)", ep); n != 0 {
		t.Error("the receiver's health counts them")
	}
	op.Break("")
	h.settled(30*time.Second, delivery.Delivered, 15)
	// A token that is withdrawn is renewed, and the delivery uses up no retry.
	op.RevokeAll()
	dlv := h.deliveryOf(h.emitN(tenant, 1)[0])
	h.settled(15*time.Second, delivery.Delivered, 16)
	if _, _, attempts := h.state(dlv); attempts != 2 {
		t.Errorf("%d attempts, want the rejected one and the delivered one", attempts)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, secret := range append(tokens, "canary") {
		if secret != "" && strings.Contains(logged.String(), secret) {
			t.Errorf("the log has a secret: %s", secret)
		}
	}
	h.balanced()
}
