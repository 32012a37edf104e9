package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"posthorn/client"
)

// twice is a receiver that records for each event how its two signatures verify.
type twice struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
}

func (r *twice) of(id string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[id]
}

// TestASecondSignatureLastsUntilItsDate sends to an endpoint with a second signature by the old format and secret,
// until a date: before it both signatures verify, and after it only the first. A rotation changes only the first. The
// keys of the first are HMAC keys, and ed25519 keys.
func TestASecondSignatureLastsUntilItsDate(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	for _, kind := range []string{"hmac", "ed25519"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := moving{d, t, "also-" + kind}
			r := &twice{seen: map[string]map[string]bool{}}
			var keys []string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				stamp := req.Header.Get("X-Webhook-Timestamp")
				r.mu.Lock()
				defer r.mu.Unlock()
				got := map[string]bool{
					"second":  req.Header.Get("X-Webhook-Signature") != "",
					"old way": recent(stamp) && same(req.Header.Get("X-Webhook-Signature"), "v1="+digest("the old one", stamp+"."+string(body))),
				}
				for i, key := range keys {
					got[fmt.Sprint(i)] = client.Verify(key, req.Header, body) == nil
				}
				r.seen[req.Header.Get("webhook-id")] = got
			}))
			t.Cleanup(server.Close)
			var made struct {
				Secret string
				Public *string `json:"public_key"`
			}
			learn := func(text []byte) {
				t.Helper()
				made.Public = nil
				if err := json.Unmarshal(text, &made); err != nil {
					t.Fatal(err)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				if made.Public != nil {
					made.Secret = *made.Public // what a receiver has
				}
				keys = append(keys, made.Secret)
			}
			until := time.Now().Add(4 * time.Second).UTC()
			m.api("PUT", "", "{}")
			learn(m.api("POST", "/endpoints", fmt.Sprintf(`{"external_id":"hook","url":%q,"assume_verified":true,"secret_type":%q,
				"wire":{"also_sign":{"format":"x-webhook","secret":"the old one","until":%q}}}`, server.URL, kind, until.Format(time.RFC3339Nano))))
			sent := func(id string) map[string]bool {
				t.Helper()
				m.emit(id)
				eventually(t, id+" arrives", func() bool { return r.of(id) != nil })
				return r.of(id)
			}
			if got := sent("before"); time.Now().Before(until) && (!got["old way"] || !got["0"]) {
				t.Errorf("before the date: %v", got)
			}
			learn(m.api("POST", "/endpoints/hook/rotate-secret", "{}"))
			rotated := 0
			eventually(t, "the new secret signs beside the old one", func() bool {
				rotated++
				got := sent(fmt.Sprintf("rotating-%d", rotated))
				if !got["0"] || time.Now().Before(until) && !got["old way"] {
					t.Errorf("during the rotation: %v", got)
				}
				return got["1"]
			})
			eventually(t, "the date passes", func() bool { return time.Now().After(until) })
			if got := sent("after"); got["second"] || !got["0"] || !got["1"] {
				t.Errorf("after the date: %v", got)
			}
		})
	}
}
