package client_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/client"
)

const (
	secret = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
	paid   = `{"type":"invoice.paid","timestamp":"2026-01-02T03:04:05.678901Z","data":{"id":"inv_1","amount":1250}}`
)

// signedPaid are the headers of paid under secret, as the specification's own libraries make them.
func signedPaid() http.Header {
	return http.Header{
		"Webhook-Id":        {"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"},
		"Webhook-Timestamp": {"1700000000"},
		"Webhook-Signature": {"v1,wp6vdYhzfYxt4p5UcvB0o8yICTSmkjc3RrOACvT/2Lk="},
	}
}

func at(unix int64) func() time.Time { return func() time.Time { return time.Unix(unix, 0) } }

func TestOnlyWhatWasSignedIsTrusted(t *testing.T) {
	t.Parallel()
	good := client.Verifier{Secrets: []string{secret}, Now: at(1700000000)}
	if err := good.Verify(signedPaid(), []byte(paid)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*client.Verifier, http.Header, *[]byte)
		code   string
		header string
	}{
		{"another body", func(_ *client.Verifier, _ http.Header, body *[]byte) {
			*body = bytes.Replace(*body, []byte("1250"), []byte("9250"), 1)
		}, "signature_mismatch", "webhook-signature"},
		{"another secret", func(v *client.Verifier, _ http.Header, _ *[]byte) {
			v.Secrets = []string{"whsec_" + strings.Repeat("AQID", 8)}
		}, "signature_mismatch", "webhook-signature"},
		{"no secret", func(v *client.Verifier, _ http.Header, _ *[]byte) { v.Secrets = nil }, "secret_refused", ""},
		{"an empty secret", func(v *client.Verifier, _ http.Header, _ *[]byte) { v.Secrets = []string{""} }, "secret_refused", ""},
		{"no signature", func(_ *client.Verifier, h http.Header, _ *[]byte) { h.Del("webhook-signature") }, "header_missing", "webhook-signature"},
		{"a format that reads the header otherwise", func(v *client.Verifier, _ http.Header, _ *[]byte) { v.Format = client.FormatTV1 }, "timestamp_malformed", "Webhook-Signature"},
		{"too old", func(v *client.Verifier, _ http.Header, _ *[]byte) { v.Now = at(1700000301) }, "timestamp_too_old", "webhook-timestamp"},
		{"another format", func(v *client.Verifier, _ http.Header, _ *[]byte) { v.Format = client.FormatXWebhook }, "header_missing", "X-Webhook-Signature"},
		{"no format", func(v *client.Verifier, _ http.Header, _ *[]byte) { v.Format = "unheard-of" }, "format_unknown", ""},
	} {
		v, h, body := good, signedPaid(), []byte(paid)
		c.change(&v, h, &body)
		var e *client.SignatureError
		err := v.Verify(h, body)
		if !errors.As(err, &e) || e.Code != c.code || e.Header != c.header || e.Detail == "" {
			t.Errorf("%s: %v (%+v)", c.name, err, e)
		}
	}
	late := good
	late.Now, late.Tolerance = at(1800000000), -1
	if err := late.Verify(signedPaid(), []byte(paid)); err != nil {
		t.Errorf("without a tolerance: %v", err)
	}
	if err := client.Verify(secret, signedPaid(), []byte(paid)); err == nil {
		t.Error("a signature of 2023 is taken today")
	}
}

// TestTheVerifierKnowsPresetsAndWireSettings verifies requests that other senders publish, and one of an endpoint's own
// notation.
func TestTheVerifierKnowsPresetsAndWireSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../domain/signature/testdata/presets.json")
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
		h := http.Header{}
		for name, value := range v.Headers {
			h.Set(name, value)
		}
		known := client.Verifier{Preset: v.Preset, Secrets: []string{v.Secret}, Now: at(v.At)}
		if err := known.Verify(h, []byte(v.Body)); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		var e *client.SignatureError
		if err := known.Verify(h, []byte(v.Body+" ")); !errors.As(err, &e) || e.Code != "signature_mismatch" {
			t.Errorf("%s, another body: %v", v.Name, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"n": 1}`))
	m := hmac.New(sha512.New, []byte("a secret"))
	m.Write([]byte(`1700000000,{"n": 1}`))
	r.Header = http.Header{"X-Convoy-Signature": {"t=1700000000,v1=" + hex.EncodeToString(m.Sum(nil))}, "X-Convoy-Idempotency-Key": {"order-1"}, "X-Topic": {"order.paid"}}
	var wire client.WireSettings
	settings := `{"body":"payload","header_names":{"signature":"X-Convoy-Signature","id":"X-Convoy-Idempotency-Key","event":"X-Topic"},` +
		`"signature":{"value":"t={ts},v1={hex}","content":"{ts},{body}","algorithm":"hmac-sha512"}}`
	if err := json.Unmarshal([]byte(settings), &wire); err != nil {
		t.Fatal(err)
	}
	w, err := client.Verifier{Format: "template", Wire: &wire, Secrets: []string{"another", "a secret"}, Now: at(1700000000)}.Read(r)
	if err != nil || w.ID != "order-1" || w.Type != "order.paid" || string(w.Data) != `{"n": 1}` {
		t.Errorf("wire settings: %+v, %v", w, err)
	}
}

func TestReadRefusesALargeBodyAndAnUnsignedOne(t *testing.T) {
	t.Parallel()
	v := client.Verifier{Secrets: []string{secret}, Now: at(1700000000), MaxBody: 10}
	var e *client.SignatureError
	if _, err := v.Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(paid))); !errors.As(err, &e) ||
		e.Code != "body_too_large" {
		t.Errorf("got %v", err)
	}
	v.MaxBody = 0
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(paid))
	if _, err := v.Read(r); !errors.As(err, &e) || e.Code != "header_missing" {
		t.Errorf("got %v", err)
	}
	r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(paid))
	r.Header = signedPaid()
	w, err := v.Read(r)
	if err != nil || w.Type != "invoice.paid" || string(w.Data) != `{"id":"inv_1","amount":1250}` || w.Timestamp.Year() != 2026 || w.Challenge() != "" {
		t.Errorf("got %+v, %v", w, err)
	}
}
