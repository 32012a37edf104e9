package inbox

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/domain/signature"
)

func TestAVerificationIsEchoedInEveryFormat(t *testing.T) {
	t.Parallel()
	for _, f := range signature.Formats() {
		body := signature.AppendBody(nil, f, signature.Message{
			EventID:   "evt_1",
			Type:      verificationType,
			CreatedAt: time.Unix(1, 0),
			Data:      []byte(`{"challenge":"ABC234"}`),
		})
		if got := Challenge(verificationType, body); got != "ABC234" {
			t.Errorf("%s: %q of %s", f, got, body)
		}
		other := signature.AppendBody(nil, f, signature.Message{
			EventID:   "evt_1",
			Type:      "order.paid",
			CreatedAt: time.Unix(1, 0),
			Data:      []byte(`{"challenge":"ABC234"}`),
		})
		if got := Challenge("order.paid", other); got != "" {
			t.Errorf("%s: an event's own data is echoed: %q", f, got)
		}
	}
	for _, odd := range []string{"<script>", "a b", strings.Repeat("a", 129), "ä"} {
		if Plain(odd) != "" {
			t.Errorf("%q is echoed", odd)
		}
	}
}

func TestASignatureIsVerifiedWithEverySecret(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	secrets := []string{"whsec_" + strings.Repeat("QUFB", 8), "whsec_" + strings.Repeat("QkJC", 8)}
	body := []byte(`{"id":"evt_1"}`)
	for i, secret := range secrets {
		key, err := signature.ParseKey(signature.Standard, secret)
		if err != nil {
			t.Fatal(err)
		}
		s := signature.Signing{Format: signature.Standard, Keys: []signature.Key{key}}
		h := http.Header{}
		for _, one := range s.Headers(nil, signature.Message{EventID: "evt_1"}, body, signature.Send{At: now, Attempt: 1}) {
			h.Set(one.Name, one.Value)
		}
		if v := CheckSignature(signature.Wire{Format: signature.Standard, Prefix: ""}, h, body, secrets, now); !v.Good ||
			v.Secret != i || v.Code != "" {
			t.Errorf("secret %d: %+v", i, v)
		}
		if v := CheckSignature(signature.Wire{Format: signature.Standard, Prefix: ""}, h, append(body, ' '), secrets,
			now); v.Good || v.Secret != -1 || v.Code != signature.CodeMismatch {
			t.Errorf("another body: %+v", v)
		}
		if v := CheckSignature(signature.Wire{Format: signature.Standard, Prefix: ""}, h, body, secrets,
			now.Add(time.Hour)); v.Code != signature.CodeTimestampTooOld {
			t.Errorf("an hour later: %+v", v)
		}
	}
	if v := CheckSignature(signature.Wire{Format: signature.Standard, Prefix: ""}, http.Header{}, body, nil, now); v.Good || v.Detail == "" {
		t.Errorf("without a secret: %+v", v)
	}
}

func TestKeptHeadersHideWhatIsWriteOnly(t *testing.T) {
	t.Parallel()
	h := http.Header{"Webhook-Signature": {"v1,abc"}, "Authorization": {"Bearer canary"}, "X-Team": {"canary"}, "X-Plain": {"shown\x00"}, "X-Big": {strings.Repeat("b", maxHead)}}
	got := Head(h, func(name string) bool { return name == "X-Team" })
	if strings.Contains(got, "canary") || !strings.Contains(got, "Webhook-Signature: v1,abc\n") || strings.Contains(got, "\x00") || len(got) > maxHead {
		t.Errorf("%q", got)
	}
}

func TestAnswersAreReadByTheirNames(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"200": 200, "500": 500, "410": 410, "slow": 200} {
		if a, err := ParseAnswer(name); err != nil || a.Status() != status {
			t.Errorf("%s: %q %v", name, a, err)
		}
	}
	for _, name := range []string{"", "201", "SLOW"} {
		if _, err := ParseAnswer(name); err == nil {
			t.Errorf("%q is an answer", name)
		}
	}
	if CheckRoom(maxPerTenant-1) != nil || CheckRoom(maxPerTenant) == nil {
		t.Error("the room of a tenant")
	}
}
