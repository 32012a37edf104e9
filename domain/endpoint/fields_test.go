package endpoint_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// Each row of the table sets its setting from JSON, shows it again, and is what differs afterwards.
func TestEachFieldOfTheTableIsSetAndShown(t *testing.T) {
	t.Parallel()
	samples := map[string]string{
		"url":                   `"https://other.example.com/hook"`,
		"external_id":           `"customer-42"`,
		"description":           `"north"`,
		"event_types":           `["order.*"]`,
		"filter":                `"data.total < 5"`,
		"channels":              `["a"]`,
		"prefix":                `"Acme"`,
		"format":                `"t-v1"`,
		"type_field":            `"both"`,
		"rotation_signatures":   `"all"`,
		"public_signature":      `"rfc9421"`,
		"wire":                  `{"header_prefix":"X-Acme-"}`,
		"retry_policy":          `{"name":"custom","delays":[60,120],"jitter":1,"spread":"full"}`,
		"retry_client_errors":   `true`,
		"expires_after_seconds": `600`,
		"batch_max_events":      `100`,
		"batch_max_wait_ms":     `250`,
		"batch_max_bytes":       `65536`,
		"timeout_seconds":       `7`,
		"max_in_flight":         `9`,
		"rate_limit":            `11`,
		"burst":                 `13`,
		"ordering":              `"key"`,
		"payload_version":       `"2026-01-31"`,
		"accept_conflict":       `true`,
		"circuit_breaker":       `false`,
		"send_traceparent":      `true`,
		"verification":          `"simple"`,
		"when_held":             `"drop"`,
		"large_payloads":        `"link"`,
		"transformation":        `{"kind":"cel","expression":"{\"text\": event.type}","method":"PUT"}`,
		"custom_headers":        `{"X-Team":"payments"}`,
		"metadata":              `{"a":"b"}`,
	}
	others := []string{"preset", "kafka", "rabbitmq", "sqs", "s3", "sensitive_headers", "auth", "tls"} // written only, of another kind, a part of custom_headers, with secrets
	for _, f := range endpoint.Fields() {
		sample, known := samples[f.Name]
		if !known {
			if !slices.Contains(others, f.Name) {
				t.Errorf("%s has no sample", f.Name)
			}
			continue
		}
		before := endpoint.ReadDefaults(50, nil, nil).Settings
		before.SetFormat(signature.XWebhook)
		after := before.Clone()
		if err := after.Patch(map[string]json.RawMessage{f.Name: json.RawMessage(sample)}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if differs := after.Diff(before); !slices.Equal(differs, []string{f.Name}) {
			t.Errorf("%s: %v differ", f.Name, differs)
		}
		var want, got any
		text, err := json.Marshal(after.Shown()[f.Name])
		if err != nil || json.Unmarshal(text, &got) != nil || json.Unmarshal([]byte(sample), &want) != nil {
			t.Fatal(f.Name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is shown as %s, want %s", f.Name, text, sample)
		}
		if f.Type == endpoint.Special || f.Name == "filter" || f.Name == "url" {
			continue
		}
		again := before.Clone()
		raw, err := f.Parse(f.Text(after))
		if err == nil {
			err = again.Patch(map[string]json.RawMessage{f.Name: raw})
		}
		if err != nil || len(again.Diff(after)) > 0 {
			t.Errorf("%s as text, %q, comes back as another: %v, %v", f.Name, f.Text(after), again.Diff(after), err)
		}
	}
}

func TestAPatchChangesNothingThatOthersHold(t *testing.T) {
	t.Parallel()
	before := endpoint.ReadDefaults(50, nil, nil).Settings
	after := before
	patch := map[string]json.RawMessage{"rate_limit": json.RawMessage("3"), "event_types": json.RawMessage(`["a.b"]`)}
	if err := after.Patch(patch); err != nil {
		t.Fatal(err)
	}
	if *before.RateLimit != 50 || before.EventTypes[0] != "*" {
		t.Errorf("the settings before the patch are %d and %v", *before.RateLimit, before.EventTypes)
	}
}

// A receiver of t-v1 that knew its secret before reads a single v1.
func TestAMigratedReceiverGetsOneSignature(t *testing.T) {
	t.Parallel()
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	if s.SetFormat(signature.TV1); s.SignsOne() || !s.Migrating().SignsOne() {
		t.Error("a t-v1 endpoint signs with each secret, and with one if it was migrated")
	}
	if s.Rotation = signature.SignAll; s.Migrating().SignsOne() {
		t.Error("who asks for all signatures gets them")
	}
	if s.SetFormat(signature.Standard); s.Migrating().SignsOne() {
		t.Error("receivers of the standard read every signature")
	}
}
