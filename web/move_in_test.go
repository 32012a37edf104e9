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
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	svix "github.com/svix/svix-webhooks/go"

	"posthorn/web/movetest"
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

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// bodyID is the id in a body, at its top or in its data.
func bodyID(body []byte) (top, inData string) {
	var in struct {
		ID   string
		Data struct{ ID string }
	}
	_ = json.Unmarshal(body, &in)
	return in.ID, in.Data.ID
}

// timestampedHex verifies X-Webhook-Signature: v1=<hex> over timestamp.body, which two of the systems publish.
func timestampedHex(h http.Header, body []byte, secrets []string) (string, bool) {
	stamp := h.Get("X-Webhook-Timestamp")
	id, _ := bodyID(body)
	return id, recent(stamp) && anySecret(secrets, func(s string) bool {
		return same(strings.Replace(h.Get("X-Webhook-Signature"), "v1=", "", 1), digest(s, stamp+"."+string(body)))
	})
}

// movingIn are the systems that companies run, S0 to S4 and Svix: the published verifier of each, what its sender sent,
// and the settings of docs/migrate.md that make Posthorn send what the verifier knows.
var movingIn = map[string]struct {
	settings string // of the imported endpoint, beside URL and secret
	secrets  [2]string
	verify   verifier
	send     oldSender
}{
	// S0: an envelope with the type in type.
	"s0": {
		settings: `"format":"x-webhook"`,
		secrets:  [2]string{"old-secret", "new-secret"},
		verify:   timestampedHex,
		send: func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"id":%q,"type":%q,"created_at":%q,"data":%s}`, id, typ, at.UTC().Format(time.RFC3339), data)
			return http.Header{"X-Webhook-Id": {id}, "X-Webhook-Timestamp": {unix(at)}, "X-Webhook-Signature": {"v1=" + digest(secret, unix(at)+"."+string(body))}}, body
		},
	},
	// S1: hex over the body without a timestamp. It has no id, so its receivers know events by a field of their data.
	"s1": {
		settings: `"format":"body-hex","prefix":"Sellf"`,
		secrets:  [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			_, id := bodyID(body)
			return id, anySecret(secrets, func(s string) bool { return same(h.Get("X-Sellf-Signature"), digest(s, string(body))) })
		},
		send: func(_, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"event":%q,"timestamp":%q,"data":%s}`, typ, at.UTC().Format(time.RFC3339), data)
			return http.Header{"X-Sellf-Event": {typ}, "X-Sellf-Timestamp": {at.UTC().Format(time.RFC3339)}, "X-Sellf-Signature": {digest(secret, string(body))}}, body
		},
	},
	// S2: the data as it is; hex over timestamp.body; receivers deduplicate by the delivery's id.
	"s2": {
		settings: `"format":"raw","prefix":"Hatched","wire":{"header_names":{"id":"X-Hatched-Delivery","delivery":""}}`,
		secrets:  [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			stamp := h.Get("X-Hatched-Timestamp")
			return h.Get("X-Hatched-Delivery"), recent(stamp) && anySecret(secrets,
				func(s string) bool { return same(h.Get("X-Hatched-Signature"), digest(s, stamp+"."+string(body))) })
		},
		send: func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			return http.Header{
				"X-Hatched-Event":     {typ},
				"X-Hatched-Delivery":  {id},
				"X-Hatched-Timestamp": {unix(at)},
				"X-Hatched-Signature": {digest(secret, unix(at)+"."+string(data))},
			}, data
		},
	},
	// S3: an envelope with the type in event. X-Webhook-ID is random; the idempotency key is the id in the body.
	"s3": {
		settings: `"format":"x-webhook","type_field":"event"`,
		secrets:  [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			id, ok := timestampedHex(h, body, secrets)
			var in struct{ Event string }
			return id, ok && json.Unmarshal(body, &in) == nil && in.Event != ""
		},
		send: func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"id":%q,"event":%q,"created_at":%q,"data":%s}`, id, typ, at.UTC().Format(time.RFC3339), data)
			return http.Header{"X-Webhook-Id": {"random"}, "X-Webhook-Timestamp": {unix(at)}, "X-Webhook-Signature": {"v1=" + digest(secret, unix(at)+"."+string(body))}}, body
		},
	},
	// S4: t=<unix>,v1=<hex> over t.body; the receiver keeps one v1 of the header.
	"s4": {
		settings: `"format":"t-v1","prefix":"Wf"`,
		secrets:  [2]string{"old-secret", "new-secret"},
		verify: func(h http.Header, body []byte, secrets []string) (string, bool) {
			parts := map[string]string{}
			for part := range strings.SplitSeq(h.Get("Wf-Signature"), ",") {
				name, value, _ := strings.Cut(part, "=")
				parts[name] = value
			}
			return h.Get("Wf-Event-Id"), recent(parts["t"]) && anySecret(secrets,
				func(s string) bool { return same(parts["v1"], digest(s, parts["t"]+"."+string(body))) })
		},
		send: func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
			body := fmt.Appendf(nil, `{"id":%q,"type":%q,"timestamp":%q,"data":%s}`, id, typ, at.UTC().Format(time.RFC3339), data)
			return http.Header{"Wf-Event-Id": {id}, "Wf-Signature": {"t=" + unix(at) + ",v1=" + digest(secret, unix(at)+"."+string(body))}}, body
		},
	},
	"svix": {
		settings: `"preset":"svix"`,
		secrets:  [2]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
		verify:   svixVerifies,
		send:     svixSends,
	},
}

// svixVerifies is a receiver with Svix's own library.
func svixVerifies(h http.Header, body []byte, secrets []string) (string, bool) {
	return h.Get("svix-id"), anySecret(secrets, func(s string) bool {
		w, err := svix.NewWebhook(s)
		return err == nil && w.Verify(body, h) == nil
	})
}

func svixSends(id, _ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	m := hmac.New(sha256.New, raw)
	fmt.Fprintf(m, "%s.%s.%s", id, unix(at), data)
	return http.Header{"Svix-Id": {id}, "Svix-Timestamp": {unix(at)}, "Svix-Signature": {"v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))}}, data
}

// customer is a receiver with a verifier. It handles each id once.
type customer struct {
	mu       sync.Mutex
	secrets  []string
	handled  []string
	arrivals map[string]int
	newest   int // arrivals that verify with the newest secret alone
	wrong    []string
}

func (c *customer) handler(verify verifier) http.Handler {
	c.arrivals = map[string]int{}
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
		if c.arrivals[id]++; c.arrivals[id] == 1 {
			c.handled = append(c.handled, id)
		}
		if _, ok := verify(r.Header, body, c.secrets[len(c.secrets)-1:]); ok {
			c.newest++
		}
	})
}

func (c *customer) trust(secrets ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets, c.newest = secrets, 0
}

func (c *customer) arrived(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrivals[id]
}

func (c *customer) verifiedNewest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest > 0
}

// check compares what the receiver handled with what it was to handle, each id once.
func (c *customer) check(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) != 0 {
		t.Errorf("rejected: %q", c.wrong)
	}
	if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(c.handled)), want) {
		t.Errorf("handled %q, want %q", c.handled, want)
	}
}

// moving is a tenant on its way in.
type moving struct {
	*desk
	t      *testing.T
	tenant string
}

// api makes a request as the platform and returns the body of a 2xx.
func (m moving) api(method, path, body string) []byte {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), method, m.url+"/api/v1/tenants/"+m.tenant+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+m.platformKey())
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode/100 != 2 {
		m.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
	return text
}

func dataOf(id string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"total":1.50,"amount":100,"customer":{"tier":"premium"}}`, id)
}

func (m moving) emit(id string) {
	m.t.Helper()
	m.api("POST", "/events", fmt.Sprintf(`{"type":"order.completed","event_id":%q,"create_tenant":true,"data":%s}`, id, dataOf(id)))
}

// old sends an event as the company did before it moved.
func (m moving) old(send oldSender, url, id, secret string) {
	m.t.Helper()
	h, body := send(id, "order.completed", dataOf(id), secret, time.Now())
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		m.t.Fatal(err)
	}
	r.Header = h
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusOK {
		m.t.Fatalf("the old sender: %v %v", res, err)
	}
	_ = res.Body.Close()
}

func (m moving) arrives(who *customer, id string, times int) {
	m.t.Helper()
	eventually(m.t, "event "+id+" arrives", func() bool { return who.arrived(id) >= times })
}

// TestReceiversOfOtherSystemsNoticeNothingOfTheMove takes each published verifier through a move: only its old sender,
// both in parallel, only Posthorn, a rotation, and the way back. The receiver verifies every request, and handles each
// event once.
func TestReceiversOfOtherSystemsNoticeNothingOfTheMove(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	for name, system := range movingIn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := moving{d, t, name}
			who := &customer{}
			receiver := httptest.NewServer(who.handler(system.verify))
			t.Cleanup(receiver.Close)
			who.trust(system.secrets[0])
			old := func(id string) { m.old(system.send, receiver.URL, id, system.secrets[0]) }

			old("before")
			m.api("POST", "/import", fmt.Sprintf(`{"create_tenant":true,"endpoints":[{"external_id":"hook","url":%q,"assume_verified":true,"secret":%q,%s}]}`,
				receiver.URL, system.secrets[0], system.settings))
			old("during")
			m.emit("during")
			m.arrives(who, "during", 2) // under one id
			m.emit("after")
			m.arrives(who, "after", 1)

			// The receiver gets the new secret in addition to the old one, and the endpoint switches to it, unless
			// every active secret signs. A worker that has read the endpoint before can sign with the old secret a
			// moment longer.
			m.api("POST", "/endpoints/hook/rotate-secret", fmt.Sprintf(`{"secret":%q}`, system.secrets[1]))
			m.emit("rotating")
			m.arrives(who, "rotating", 1) // the receiver has the old secret alone
			who.trust(system.secrets[:]...)
			if name != "svix" {
				m.api("POST", "/endpoints/hook/switch-secret", "")
			}
			want := []string{"before", "during", "after", "rotating", "rotated", "back"}
			eventually(t, "an event is signed with the new secret", func() bool {
				id := fmt.Sprintf("switching-%d", len(want))
				want = append(want, id)
				m.emit(id)
				m.arrives(who, id, 1)
				return who.verifiedNewest()
			})
			who.trust(system.secrets[1])
			m.emit("rotated")
			m.arrives(who, "rotated", 1)

			// Back to the old sender, which gets the receiver's present secret. A delivery that has started when the
			// endpoint is paused goes on: the receiver knows it by its id.
			m.api("POST", "/endpoints/hook/pause", "")
			m.emit("back")
			m.old(system.send, receiver.URL, "back", system.secrets[1])
			m.arrives(who, "back", 1)
			who.check(t, want...)
		})
	}
}

// TestTheRunbooksOfOtherSendersMoveATenantAndTakeItBack follows docs/migrate.md with Svix, Outpost and Convoy: both
// senders get every event, under one id, and the receiver verifies each request as the sender's documentation says.
func TestTheRunbooksOfOtherSendersMoveATenantAndTakeItBack(t *testing.T) {
	t.Parallel()
	outpost := func(h http.Header, body []byte, secrets []string) (string, bool) {
		return h.Get("x-outpost-event-id"), h.Get("x-outpost-topic") != "" && h.Get("x-team") != "" && h.Get("x-outpost-region") == "eu" &&
			anySecret(secrets, func(s string) bool {
				listed, ok := strings.CutPrefix(h.Get("x-outpost-signature"), "v0=")
				_, err := time.Parse(time.RFC3339, h.Get("x-outpost-timestamp"))
				return ok && err == nil && slices.Contains(strings.Split(listed, ","), digest(s, string(body)))
			})
	}
	convoy := func(h http.Header, body []byte, secrets []string) (string, bool) {
		return h.Get("X-Convoy-Idempotency-Key"), h.Get("X-Key") != "" && anySecret(secrets, func(s string) bool {
			given := h.Get("X-Convoy-Signature")
			parts := map[string]string{}
			for part := range strings.SplitSeq(given, ",") {
				name, value, _ := strings.Cut(part, "=")
				parts[name] = value
			}
			return same(given, digest(s, string(body))) || recent(parts["t"]) &&
				same(parts["v1"], digest(s, parts["t"]+","+string(body)))
		})
	}
	for name, sender := range map[string]struct {
		tenant    string
		endpoints [2]string
		verify    verifier
		send      func(endpoint string) oldSender // nil: the server itself
	}{
		"svix": {"customer-0", [2]string{"ep_0_0", "ep_0_1"}, svixVerifies, nil},
		"outpost": {"tenant_0", [2]string{"des_0_0", "des_0_1"}, outpost, func(endpoint string) oldSender {
			return func(id, typ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
				return http.Header{
					"X-Outpost-Event-Id":  {id},
					"X-Outpost-Topic":     {typ},
					"X-Outpost-Timestamp": {at.UTC().Format(time.RFC3339)},
					"X-Team":              {endpoint},
					"X-Outpost-Region":    {"eu"},
					"X-Outpost-Signature": {"v0=" + digest(secret, string(data))},
				}, data
			}
		}},
		"convoy": {"owner_0", [2]string{"end_0_0", "end_0_1"}, convoy, func(endpoint string) oldSender {
			return func(id, _ string, data []byte, secret string, at time.Time) (http.Header, []byte) {
				signature := digest(secret, string(data))
				if strings.HasSuffix(endpoint, "_1") {
					signature = "t=" + unix(at) + ",v1=" + digest(secret, unix(at)+","+string(data))
				}
				return http.Header{"X-Convoy-Signature": {signature}, "X-Convoy-Idempotency-Key": {id}, "X-Key": {"k-" + endpoint}}, data
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := moving{newPlatformDesk(t), t, sender.tenant}
			from := movers(t, 1)[name]
			var receivers [2]*customer
			mux := http.NewServeMux()
			for i, endpoint := range sender.endpoints {
				receivers[i] = &customer{}
				mux.Handle(fmt.Sprintf("/0/%d", i), receivers[i].handler(sender.verify))
				receivers[i].trust(movetest.Secret(endpoint))
			}
			receiver := httptest.NewServer(mux)
			t.Cleanup(receiver.Close)
			from.Receiver, from.Types = receiver.URL, []string{"order.completed"}
			// both emits an event to both senders; the other one sends to the endpoints that are not disabled there.
			var ids []string
			both := func(id string) {
				t.Helper()
				if sender.send == nil {
					id = m.bothSvix(from.Server, sender.tenant, id)
				} else {
					for i, endpoint := range sender.endpoints {
						if !from.Disabled(endpoint) {
							m.old(sender.send(endpoint), fmt.Sprintf("%s/0/%d", receiver.URL, i), id, movetest.Secret(endpoint))
						}
					}
					m.emit(id)
				}
				ids = append(ids, id)
				for _, who := range receivers {
					m.arrives(who, id, 1)
				}
			}
			both("before")
			line := from.line + " --verified"
			m.run(line + " --dry-run")
			m.ok(nil, line+" --cut-over 2999-01-01T00:00:00Z")
			both("beside")
			m.ok(nil, line+" --cut-over 2020-01-01T00:00:00Z")
			both("after")
			m.ok(nil, from.line+" --back")
			both("back")
			for _, who := range receivers {
				who.check(t, slices.Clone(ids)...)
				for _, id := range slices.Sorted(maps.Keys(who.arrivals)) {
					if n := who.arrived(id); n != 1 {
						t.Errorf("%s was sent %d times", id, n)
					}
				}
			}
		})
	}
}

// bothSvix sends a message to Svix, and to Posthorn's Svix API with the id that Svix gave it. It returns that id.
func (m moving) bothSvix(from *movetest.Server, app, name string) string {
	m.t.Helper()
	message := func(eventID string) string {
		return fmt.Sprintf(`{"eventType":"order.completed","eventId":%q,"payload":%s}`, eventID, dataOf(name))
	}
	var made struct{ ID string }
	for made.ID == "" { // the server is busy at times
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/api/v1/app/"+strings.Replace(app, "customer-", "app_", 1)+"/msg", strings.NewReader(message(name))).WithContext(m.t.Context())
		r.Header.Set("Authorization", "Bearer "+movetest.Token)
		from.ServeHTTP(w, r)
		_ = json.Unmarshal(w.Body.Bytes(), &made)
	}
	if got := ask(m.t, "POST", m.url+"/svix/api/v1/app/"+app+"/msg", m.platformKey(), strings.Replace(message(made.ID), "{", `{"application":{"name":"Moved"},`, 1)); got.status != http.StatusAccepted {
		m.t.Fatalf("the Svix API: %d %s", got.status, got.body)
	}
	return made.ID
}

// TestAReceiverSeesOneIDFromSvixAndFromPosthorn sends messages through both at the same time. Svix names each by its
// own id, whatever its eventId is. A receiver that deduplicates handles a message once where Posthorn gets that id.
func TestAReceiverSeesOneIDFromSvixAndFromPosthorn(t *testing.T) {
	t.Parallel()
	m := moving{newPlatformDesk(t), t, "customer-0"}
	from := movers(t, 1)["svix"]
	who := &customer{}
	receiver := httptest.NewServer(who.handler(svixVerifies))
	t.Cleanup(receiver.Close)
	from.Receiver = receiver.URL
	who.trust(movetest.Secret("ep_0_0"), movetest.Secret("ep_0_1"))
	api := func(method, path, body string) answer {
		t.Helper()
		got := ask(t, method, m.url+"/svix/api/v1"+path, m.platformKey(), body)
		if got.status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
		}
		return got
	}
	api("POST", "/app", `{"name":"C","uid":"customer-0"}`)
	api("POST", "/app/customer-0/endpoint", fmt.Sprintf(`{"url":%q,"secret":%q}`, receiver.URL, movetest.Secret("ep_0_0")))

	id := m.bothSvix(from.Server, "customer-0", "parallel")
	m.arrives(who, id, 3) // Svix has two endpoints of this receiver
	if got := api("GET", "/app/customer-0/msg/"+id, ""); !strings.Contains(got.body, id) {
		t.Errorf("found by the id of Svix: %s", got.body)
	}
	var plain struct{ ID string }
	if err := json.Unmarshal([]byte(api("POST", "/app/customer-0/msg", `{"eventType":"order.completed","eventId":"order.1","payload":{}}`).body), &plain); err != nil {
		t.Fatal(err)
	}
	m.arrives(who, plain.ID, 1) // its own id, as from Svix
	who.check(t, id, plain.ID)
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
