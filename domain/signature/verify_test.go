package signature_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/domain/fault"
	"posthorn/domain/signature"
)

// request is a signed request whose parts a test may spoil.
type request struct {
	format  signature.Format
	prefix  string
	headers map[string]string
	body    []byte
	secrets []string
	now     time.Time
}

func signed(t testing.TB, f signature.Format, prefix string) *request {
	t.Helper()
	secret := plainSecret
	if f == signature.Standard {
		secret = signature.NewSecret([32]byte{1})
	}
	s := signature.Signing{Format: f, Prefix: prefix, Keys: keys(t, f, secret)}
	r := &request{format: f, prefix: prefix, headers: map[string]string{}, secrets: []string{secret}, now: sentAt}
	r.body = signature.AppendBody(nil, f, message())
	for _, h := range s.Headers(nil, message(), r.body, signature.Send{At: sentAt, Attempt: 1}) {
		r.headers[strings.ToLower(h.Name)] = h.Value
	}
	return r
}

func (r *request) verify(tolerance time.Duration) error {
	find := func(name string) string { return r.headers[strings.ToLower(name)] }
	return signature.Wire{Format: r.format, Prefix: r.prefix}.Verify(find, r.body, r.secrets, r.now, tolerance)
}

func (r *request) set(name, value string) { r.headers[strings.ToLower(name)] = value }

func TestARefusalNamesThePartThatFailed(t *testing.T) {
	t.Parallel()
	std, pub := signature.Standard, "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
	tests := []struct {
		name   string
		format signature.Format
		spoil  func(r *request)
		code   string
		field  string
	}{
		{"no signature", std, func(r *request) { r.set("webhook-signature", "") }, "header_missing", "webhook-signature"},
		{"no id", std, func(r *request) { r.set("webhook-id", "") }, "header_missing", "webhook-id"},
		{"no timestamp", std, func(r *request) { r.set("webhook-timestamp", "") }, "header_missing", "webhook-timestamp"},
		{"dotted id", std, func(r *request) { r.set("webhook-id", "evt_01.5") }, "id_malformed", "webhook-id"},
		{"other id", std, func(r *request) { r.set("webhook-id", "evt_02") }, "signature_mismatch", "webhook-signature"},
		{"a date", std, func(r *request) { r.set("webhook-timestamp", "2026-03-05") }, "timestamp_malformed", "webhook-timestamp"},
		{"a signed number", std, func(r *request) { r.set("webhook-timestamp", "+1772701201") }, "timestamp_malformed", "webhook-timestamp"},
		{"20 digits", std, func(r *request) { r.set("webhook-timestamp", strings.Repeat("9", 20)) }, "timestamp_malformed", "webhook-timestamp"},
		{"12 digits", std, func(r *request) { r.set("webhook-timestamp", strings.Repeat("9", 12)) }, "timestamp_too_new", "webhook-timestamp"},
		{"old", std, func(r *request) { r.now = sentAt.Add(301 * time.Second) }, "timestamp_too_old", "webhook-timestamp"},
		{"new", std, func(r *request) { r.now = sentAt.Add(-301 * time.Second) }, "timestamp_too_new", "webhook-timestamp"},
		{"later timestamp", std, func(r *request) { r.set("webhook-timestamp", "1772701202") }, "signature_mismatch", "webhook-signature"},
		{"another scheme", std, func(r *request) { r.set("webhook-signature", "v2,AAAA") }, "signature_scheme_unknown", "webhook-signature"},
		{"truncated", std, func(r *request) { r.set("webhook-signature", r.headers["webhook-signature"][:20]) }, "signature_mismatch", "webhook-signature"},
		{"nothing after the mark", std, func(r *request) { r.set("webhook-signature", "v1,") }, "signature_mismatch", "webhook-signature"},
		{"changed body", std, func(r *request) { r.body[0] = ' ' }, "signature_mismatch", "webhook-signature"},
		{"no body", std, func(r *request) { r.body = nil }, "signature_mismatch", "webhook-signature"},
		{"no secret", std, func(r *request) { r.secrets = nil }, "secret_refused", "secret"},
		{"empty secret", std, func(r *request) { r.secrets = []string{""} }, "secret_refused", "secret"},
		{"other secret", std, func(r *request) { r.secrets[0] = signature.NewSecret([32]byte{2}) }, "signature_mismatch", "webhook-signature"},
		{"a public key alone", std, func(r *request) { r.secrets[0] = pub }, "signature_mismatch", "webhook-signature"},
		{"a broken public key", std, func(r *request) { r.secrets[0] = pub[:30] }, "secret_refused", "secret"},
		{"an HMAC as ed25519", std, func(r *request) {
			r.secrets[0] = pub
			r.set("webhook-signature", "v1a,"+strings.TrimPrefix(r.headers["webhook-signature"], "v1,"))
		}, "signature_mismatch", "webhook-signature"},

		{"no t", signature.TV1, func(r *request) { r.set("webhook-signature", "v1=00") }, "timestamp_malformed", "Webhook-Signature"},
		{"no v1", signature.TV1, func(r *request) { r.set("webhook-signature", "t=1772701201") }, "signature_scheme_unknown", "Webhook-Signature"},
		{"v0 alone", signature.TV1, func(r *request) {
			r.set("webhook-signature", strings.Replace(r.headers["webhook-signature"], "v1=", "v0=", 1))
		}, "signature_scheme_unknown", "Webhook-Signature"},
		{"old", signature.TV1, func(r *request) { r.now = sentAt.Add(301 * time.Second) }, "timestamp_too_old", "Webhook-Signature"},
		{"changed body", signature.TV1, func(r *request) { r.body[0] = ' ' }, "signature_mismatch", "Webhook-Signature"},

		{"no timestamp", signature.XWebhook, func(r *request) { r.set("x-webhook-timestamp", "") }, "header_missing", "X-Webhook-Timestamp"},
		{"no mark", signature.XWebhook, func(r *request) {
			r.set("x-webhook-signature", strings.TrimPrefix(r.headers["x-webhook-signature"], "v1="))
		}, "signature_scheme_unknown", "X-Webhook-Signature"},
		{"other secret", signature.XWebhook, func(r *request) { r.secrets[0] = oldSecret }, "signature_mismatch", "X-Webhook-Signature"},

		{"changed body", signature.BodyHex, func(r *request) { r.body[0] = ' ' }, "signature_mismatch", "X-Webhook-Signature"},
		{"another format's mark", signature.BodyHex, func(r *request) { r.set("x-webhook-signature", "v1=00") }, "signature_scheme_unknown", "X-Webhook-Signature"},
		{"no timestamp", signature.Raw, func(r *request) { r.set("x-webhook-timestamp", "") }, "header_missing", "X-Webhook-Timestamp"},
		{"later timestamp", signature.Raw, func(r *request) { r.set("x-webhook-timestamp", "1772701202") }, "signature_mismatch", "X-Webhook-Signature"},
		{"other prefix", signature.Raw, func(r *request) { r.prefix = "Acme" }, "header_missing", "X-Acme-Signature"},
		{"unknown format", "stripe", func(*request) {}, "format_unknown", "format"},
	}
	for _, tt := range tests {
		t.Run(string(tt.format)+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			f := tt.format
			if !f.Valid() {
				f = signature.Raw
			}
			r := signed(t, f, "")
			if err := r.verify(signature.DefaultTolerance); err != nil {
				t.Fatalf("the unspoilt request is refused: %v", err)
			}
			r.format = tt.format
			tt.spoil(r)
			got := fault.As(r.verify(signature.DefaultTolerance))
			if got == nil || got.Code != tt.code || got.Fields[0].Name != tt.field || got.Detail == "" {
				t.Fatalf("got %v, want %s of %s", got, tt.code, tt.field)
			}
			for _, s := range r.secrets {
				if len(s) > 8 && strings.Contains(got.Detail, s) {
					t.Error("the error shows the secret")
				}
			}
		})
	}
}

func TestTheToleranceIncludesItsLastSecondAndMayBeSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, f := range []signature.Format{signature.Standard, signature.XWebhook, signature.TV1, signature.Raw} {
		r := signed(t, f, "")
		for _, off := range []time.Duration{-300 * time.Second, 300 * time.Second} {
			r.now = sentAt.Add(off)
			if err := r.verify(signature.DefaultTolerance); err != nil {
				t.Errorf("%s at %s: %v", f, off, err)
			}
		}
		r.now = sentAt.Add(10 * 365 * 24 * time.Hour)
		if err := r.verify(-1); err != nil {
			t.Errorf("%s with no tolerance: %v", f, err)
		}
		r.body[0] ^= 1
		if r.verify(-1) == nil {
			t.Errorf("%s: a changed body passes", f)
		}
	}
}

func TestWhatIsSignedVerifiesAndAnySingleChangeDoesNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(signature.Formats()).Draw(t, "format")
		secret := signature.NewSecret([32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "secret")))
		if f == signature.Standard && rapid.Bool().Draw(t, "ed25519") {
			secret, _ = signature.NewKeyPair([32]byte{3})
		}
		k, err := signature.ParseKey(f, secret)
		if err != nil {
			t.Fatal(err)
		}
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		when := time.Unix(rapid.Int64Range(0, 1e11).Draw(t, "at"), 0)
		s := signature.Signing{Format: f, Prefix: "Acme", Keys: []signature.Key{k}}
		headers := s.Headers(nil, message(), body, signature.Send{At: when, Attempt: 1})
		find := func(name string) string { return get(headers, name) }
		verify := func(body []byte) error {
			return signature.Wire{Format: f, Prefix: "Acme"}.Verify(find, body, []string{secret}, when, 0)
		}
		if err := verify(body); err != nil {
			t.Fatal(err)
		}
		longer := append(body[:len(body):len(body)], 'x')
		if verify(longer) == nil {
			t.Fatal("a longer body passes")
		}
		if len(body) > 0 {
			i := rapid.IntRange(0, len(body)-1).Draw(t, "i")
			body[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			if verify(body) == nil {
				t.Fatal("a changed body passes")
			}
		}
	})
}

func FuzzVerifyNeverPanicsNorAcceptsAForgery(f *testing.F) {
	f.Add("standard", "v1,abc", "1772701201", "evt_01", []byte("{}"))
	f.Add("t-v1", "t=1,v1=00,v1=", "1", "", []byte(""))
	f.Add("raw", strings.Repeat("0", 64), "1772701201", "", []byte("x"))
	f.Fuzz(func(t *testing.T, format, sig, stamp, id string, body []byte) {
		find := func(name string) string {
			switch name = strings.ToLower(name); {
			case strings.HasSuffix(name, "signature"):
				return sig
			case strings.HasSuffix(name, "timestamp"):
				return stamp
			}
			return id
		}
		secret := signature.NewSecret([32]byte{99})
		for _, tolerance := range []time.Duration{-1, 0, signature.DefaultTolerance} {
			if (signature.Wire{Format: signature.Format(format)}).Verify(find, body, []string{secret}, sentAt, tolerance) == nil {
				t.Errorf("accepted %q", sig)
			}
		}
	})
}
