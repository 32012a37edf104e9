package signature_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/signature"
)

// TestPublishedVectorsOfOtherSendersPass checks requests that their own documentation shows.
func TestPublishedVectorsOfOtherSendersPass(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/presets.json") // the SDKs of other languages read it too
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Vectors []struct {
			Name, Preset, Secret, Body string
			Headers                    map[string]string
			At                         int64
		}
	}
	if err := json.Unmarshal(text, &published); err != nil || len(published.Vectors) < 4 {
		t.Fatalf("%d vectors, %v", len(published.Vectors), err)
	}
	for _, v := range published.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			p, ok := signature.PresetNamed(v.Preset)
			if !ok {
				t.Fatal("no such preset")
			}
			h := http.Header{}
			for name, value := range v.Headers {
				h.Set(name, value)
			}
			now := time.Unix(v.At, 0)
			if err := p.Wire().Verify(h.Get, []byte(v.Body), []string{v.Secret}, now, signature.DefaultTolerance); err != nil {
				t.Error(err)
			}
			if err := p.Wire().Verify(h.Get, []byte(v.Body+" "), []string{v.Secret}, now, signature.DefaultTolerance); !fault.Is(err, signature.CodeMismatch) {
				t.Errorf("another body: %v", err)
			}
		})
	}
}

func signing(t *testing.T, w signature.Wire, secret string) signature.Signing {
	t.Helper()
	key, err := w.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := signature.Signing{Format: w.Format, Prefix: w.Prefix, Shape: w.Shape, Keys: []signature.Key{key}}
	s.Prepare()
	if w.Shape != nil && w.Shape.AlsoSign != nil {
		also := signing(t, w.Shape.AlsoSign.Wire(), secret)
		s.Also = &also
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryPresetVerifiesWhatItSendsAndIsShownAsItWasSent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	secret := signature.NewSecret([32]byte{3})
	m := signature.Message{EventID: "evt_1", DeliveryID: "dlv_1", EndpointID: "ep_1", Type: "order.completed", CreatedAt: at, Data: []byte(`{"a" : 1.0}`)}
	for _, name := range signature.PresetNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := signature.PresetNamed(name)
			w := p.Wire()
			if err := w.Shape.Check(w.Format, w.Prefix); err != nil {
				t.Fatal(err)
			}
			s := signing(t, w, secret)
			m := m
			m.Bare = w.Bare()
			body := signature.AppendBody(nil, w.Format, m)
			if m.Bare && string(body) != string(m.Data) {
				t.Errorf("the body is %s", body)
			}
			send := signature.Send{At: at, Attempt: 1}
			headers := s.Headers(nil, m, body, send)
			h := http.Header{}
			for _, one := range headers {
				if h.Get(one.Name) != "" {
					t.Errorf("%s is set twice", one.Name)
				}
				h.Set(one.Name, one.Value)
			}
			if err := w.Verify(h.Get, body, []string{"whsec_" + strings.Repeat("A", 32), secret}, at, signature.DefaultTolerance); err != nil {
				t.Error(err)
			}
			if findings, good := w.Debug(h.Get, body, secret, at, signature.DefaultTolerance); !good ||
				len(findings) < 4 {
				t.Errorf("debug: %v", findings)
			}
			again := signature.ParseWire(w.String(), w.Prefix)
			shown := signature.SentHeaders(again, m, s.Kept(headers), send)
			if len(shown) != len(headers) {
				t.Fatalf("sent %v, shown %v", headers, shown)
			}
			for i := range shown {
				if shown[i] != headers[i] {
					t.Errorf("sent %v, shown %v", headers[i], shown[i])
				}
			}
			if again.Bare() != w.Bare() {
				t.Error("the kept wire renders another body")
			}
		})
	}
}

func TestASecondSignatureIsOfItsOwnAlgorithm(t *testing.T) {
	t.Parallel()
	p, _ := signature.PresetNamed("github")
	s := signing(t, p.Wire(), "It's a Secret to Everybody")
	signed := time.Unix(1_700_000_000, 0)
	h := http.Header{}
	for _, one := range s.Headers(nil, signature.Message{EventID: "evt_1", DeliveryID: "dlv_1", Type: "push"}, []byte("Hello, World!"),
		signature.Send{At: signed, Attempt: 1}) {
		h.Set(one.Name, one.Value)
	}
	if got := h.Get("X-Hub-Signature-256"); got != "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17" {
		t.Errorf("SHA-256: %s", got)
	}
	also := p.Shape.AlsoSign.Wire()
	if err := also.Verify(h.Get, []byte("Hello, World!"), []string{"It's a Secret to Everybody"}, signed, 0); err != nil {
		t.Errorf("SHA-1: %v", err)
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Webhook-") {
			t.Errorf("a request to GitHub's receivers has %s", name)
		}
	}
	if h.Get("X-GitHub-Event") != "push" || h.Get("X-GitHub-Delivery") != "dlv_1" || len(h.Get("X-Hub-Signature")) != len("sha1=")+40 {
		t.Errorf("headers: %v", h)
	}
}

func TestAShapeThatCannotBeSentIsRefusedByName(t *testing.T) {
	t.Parallel()
	template := &signature.Template{Value: "{hex}", Content: "{body}"}
	for _, c := range []struct {
		name, field string
		format      signature.Format
		shape       signature.Shape
	}{
		{"a body", "wire.body", signature.Standard, signature.Shape{Body: "xml"}},
		{"a prefix", "wire.header_prefix", signature.Standard, signature.Shape{HeaderPrefix: "a b"}},
		{"a role", "wire.header_names", signature.Standard, signature.Shape{HeaderNames: map[string]string{"host": "X"}}},
		{"a name of HTTP", "wire.header_names.id", signature.Standard, signature.Shape{HeaderNames: map[string]string{"id": "Content-Length"}}},
		{"no signature", "wire.header_names.signature", signature.Standard, signature.Shape{HeaderNames: map[string]string{"signature": ""}}},
		{"no template", "wire.signature", signature.Templated, signature.Shape{}},
		{"a template elsewhere", "wire.signature", signature.Raw, signature.Shape{Signature: template}},
		{"no digest", "wire.signature", signature.Templated, signature.Shape{Signature: &signature.Template{Value: "x", Content: "{body}"}}},
		{"no body signed", "wire.signature", signature.Templated, signature.Shape{Signature: &signature.Template{Value: "{hex}", Content: "{ts}"}}},
		{"an unknown placeholder", "wire.signature", signature.Templated, signature.Shape{Signature: &signature.Template{Value: "{hex}{x}", Content: "{body}"}}},
		{"no text between", "wire.signature", signature.Templated, signature.Shape{Signature: &signature.Template{Value: "{ts}{hex}", Content: "{body}"}}},
		{"an algorithm", "wire.signature", signature.Templated, signature.Shape{Signature: &signature.Template{Value: "{hex}", Content: "{body}", Algorithm: "md5"}}},
		{"one header for two", "wire.also_sign.header_names", signature.Standard, signature.Shape{AlsoSign: &signature.AlsoSign{Format: signature.Standard}}},
	} {
		err := fault.As(c.shape.Check(c.format, ""))
		if err == nil || err.Fields[0].Name != c.field {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	also := signature.Shape{AlsoSign: &signature.AlsoSign{Format: signature.Standard, HeaderPrefix: "svix-"}}
	if err := also.Check(signature.Standard, ""); err != nil {
		t.Error(err)
	}
}
