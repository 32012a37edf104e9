package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// verifier is a receiver's own code: whether a request was signed with one of its secrets, and the id that it
// deduplicates by.
type verifier func(h http.Header, body []byte, secrets []string) (id string, ok bool)

// oldSender is a company's own code: the request that it sent for an event before it moved.
type oldSender func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte)

func digest(secret, text string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

func anySecret(secrets []string, good func(secret string) bool) bool {
	return slices.ContainsFunc(secrets, good)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func recent(stamp string) bool {
	n, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && time.Since(time.Unix(n, 0)).Abs() < 5*time.Minute
}

// movingIn are the published verifiers of the systems that companies run, with the settings that make Posthorn send
// what they know.
var movingIn = map[string]struct {
	settings string // of the imported endpoint, beside URL and secret
	secrets  [2]string
	verify   verifier
	send     oldSender
	data     func(id string) string // what the producer emits for an event
}{
	// X-Webhook-Signature: v1=<hex> over timestamp.body, an envelope around the data.
	"x-webhook": {
		settings: `"format":"x-webhook"`, secrets: [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			stamp := h.Get("X-Webhook-Timestamp")
			return h.Get("X-Webhook-Id"), recent(stamp) && anySecret(secrets, func(s string) bool {
				return same(strings.Replace(h.Get("X-Webhook-Signature"), "v1=", "", 1), digest(s, stamp+"."+string(body)))
			})
		},
		send: func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"id":%q,"type":%q,"created_at":%q,"data":%s}`, id, typ, at.UTC().Format(time.RFC3339), data)
			stamp := strconv.FormatInt(at.Unix(), 10)
			return http.Header{"X-Webhook-Id": {id}, "X-Webhook-Timestamp": {stamp}, "X-Webhook-Signature": {"v1=" + digest(secret, stamp+"."+string(body))}}, body
		},
	},
	// X-Sellf-Signature: hex over the body alone.
	"body-hex": {
		settings: `"format":"body-hex","prefix":"Sellf"`, secrets: [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			var in struct{ Data struct{ ID string } }
			_ = json.Unmarshal(body, &in)
			return in.Data.ID, anySecret(secrets, func(s string) bool { return same(h.Get("X-Sellf-Signature"), digest(s, string(body))) })
		},
		send: func(_, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"event":%q,"timestamp":%q,"data":%s}`, typ, at.UTC().Format(time.RFC3339), data)
			return http.Header{"X-Sellf-Event": {typ}, "X-Sellf-Timestamp": {at.UTC().Format(time.RFC3339)}, "X-Sellf-Signature": {digest(secret, string(body))}}, body
		},
	},
	// X-Hatched-Signature: hex over timestamp.body, the data as it is. Its dedupe header is given the event's id.
	"raw": {
		settings: `"format":"raw","prefix":"Hatched","wire":{"header_names":{"id":"","delivery":"","endpoint":"","attempt":"X-Hatched-Attempt"}}`,
		secrets:  [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			stamp := h.Get("X-Hatched-Timestamp")
			var in struct{ ID string }
			_ = json.Unmarshal(body, &in)
			return in.ID, recent(stamp) && anySecret(secrets, func(s string) bool { return same(h.Get("X-Hatched-Signature"), digest(s, stamp+"."+string(body))) })
		},
		send: func(_, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			stamp := strconv.FormatInt(at.Unix(), 10)
			return http.Header{"X-Hatched-Event": {typ}, "X-Hatched-Timestamp": {stamp}, "X-Hatched-Signature": {digest(secret, stamp+"."+string(data))}}, data
		},
	},
	// Wf-Signature: t=<unix>,v1=<hex> over t.body; the receiver reads every v1.
	"t-v1": {
		settings: `"format":"t-v1","prefix":"Wf"`, secrets: [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			stamp, signatures := "", []string{}
			for part := range strings.SplitSeq(h.Get("Wf-Signature"), ",") {
				switch name, value, _ := strings.Cut(part, "="); name {
				case "t":
					stamp = value
				case "v1":
					signatures = append(signatures, value)
				}
			}
			return h.Get("Wf-Event-Id"), recent(stamp) && anySecret(secrets, func(s string) bool { return slices.Contains(signatures, digest(s, stamp+"."+string(body))) })
		},
		send: func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"id":%q,"type":%q,"timestamp":%q,"data":%s}`, id, typ, at.UTC().Format(time.RFC3339), data)
			stamp := strconv.FormatInt(at.Unix(), 10)
			return http.Header{"Wf-Event-Id": {id}, "Wf-Signature": {"t=" + stamp + ",v1=" + digest(secret, stamp+"."+string(body))}}, body
		},
	},
	// svix-signature, verified by the official library of Standard Webhooks, which signs as Svix does.
	"svix": {
		settings: `"preset":"svix"`,
		secrets:  [2]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			renamed := http.Header{}
			for _, name := range []string{"id", "timestamp", "signature"} {
				renamed.Set("webhook-"+name, h.Get("svix-"+name))
			}
			return h.Get("svix-id"), anySecret(secrets, func(s string) bool {
				w, err := standardwebhooks.NewWebhook(s)
				return err == nil && w.Verify(body, renamed) == nil
			})
		},
		send: func(id, _ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
			stamp := strconv.FormatInt(at.Unix(), 10)
			m := hmac.New(sha256.New, raw)
			fmt.Fprintf(m, "%s.%s.%s", id, stamp, data)
			return http.Header{"Svix-Id": {id}, "Svix-Timestamp": {stamp}, "Svix-Signature": {"v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))}}, data
		},
	},
}

// customer is a receiver with a verifier, which keeps the ids that it has handled.
type customer struct {
	mu      sync.Mutex
	secrets []string
	handled map[string]int // by id, how often it arrived
	newest  int            // arrivals that verify with the newest secret alone
	wrong   []string
}

func (c *customer) handler(verify verifier) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		id, ok := verify(r.Header, body, c.secrets)
		if !ok || id == "" {
			c.wrong = append(c.wrong, fmt.Sprintf("%v %s", r.Header, body))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		c.handled[id]++
		if _, ok := verify(r.Header, body, c.secrets[len(c.secrets)-1:]); ok {
			c.newest++
		}
	})
}

func (c *customer) arrivals(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handled[id]
}

// TestReceiversOfOtherSystemsNoticeNothingOfTheMove takes each published verifier through a move: its old sender alone,
// both side by side, Posthorn alone, and a rotation. What it knows its events by stays, so it recognizes the event that
// both sent.
func TestReceiversOfOtherSystemsNoticeNothingOfTheMove(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	for name, system := range movingIn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := *d
			d.t = t
			who := &customer{secrets: []string{system.secrets[0]}, handled: map[string]int{}}
			receiver := httptest.NewServer(who.handler(system.verify))
			t.Cleanup(receiver.Close)
			old := func(id string) {
				t.Helper()
				h, body := system.send(id, "order.completed", fmt.Appendf(nil, `{"id":%q,"total":1.50}`, id), system.secrets[0], time.Now())
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.URL, strings.NewReader(string(body)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = h
				res, err := http.DefaultClient.Do(r)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("the old sender: %v %v", res, err)
				}
				_ = res.Body.Close()
			}
			api := func(method, path, body string) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), method, d.url+"/api/v1/tenants/"+name+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+d.platformKey())
				r.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if text, _ := io.ReadAll(res.Body); res.StatusCode/100 != 2 {
					t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
				}
			}
			emit := func(id string) {
				t.Helper()
				api("POST", "/events", fmt.Sprintf(`{"type":"order.completed","event_id":%q,"create_tenant":true,"data":{"id":%q,"total":1.50}}`, id, id))
			}
			arrives := func(id string, times int) {
				t.Helper()
				eventually(t, "event "+id+" arrives", func() bool { return who.arrivals(id) >= times })
			}

			old("before-1")
			api("PUT", "", `{}`)
			api("POST", "/endpoints", fmt.Sprintf(`{"external_id":"hook","url":%q,"assume_verified":true,"secret":%q,%s}`, receiver.URL, system.secrets[0], system.settings))
			old("during-1")
			emit("during-1")
			arrives("during-1", 2) // twice, under one id: the receiver handles it once
			emit("after-1")
			arrives("after-1", 1)

			// The receiver learns the new secret beside the old one, and the endpoint switches to it. A worker that has
			// read the endpoint before can sign with the old secret a moment longer.
			api("POST", "/endpoints/hook/rotate-secret", fmt.Sprintf(`{"secret":%q}`, system.secrets[1]))
			emit("rotating-1")
			arrives("rotating-1", 1) // with the old secret alone
			who.mu.Lock()
			who.secrets, who.newest = system.secrets[:], 0
			who.mu.Unlock()
			api("POST", "/endpoints/hook/switch-secret", "")
			rotated := 0
			eventually(t, "an event is signed with the new secret", func() bool {
				rotated++
				id := fmt.Sprintf("rotated-%d", rotated)
				emit(id)
				arrives(id, 1)
				who.mu.Lock()
				defer who.mu.Unlock()
				return who.newest > 0
			})

			who.mu.Lock()
			defer who.mu.Unlock()
			if len(who.wrong) != 0 {
				t.Errorf("rejected: %q", who.wrong)
			}
			if len(who.handled) != 4+rotated {
				t.Errorf("handled: %v", who.handled)
			}
		})
	}
}

// platformKey is the key of a desk that acts for any tenant.
func (d *desk) platformKey() string {
	for _, variable := range d.environ {
		if text, ok := strings.CutPrefix(variable, "POSTHORN_API_KEY="); ok {
			return text
		}
	}
	return ""
}
