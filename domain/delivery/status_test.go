package delivery_test

import (
	"encoding/json"
	"testing"

	"posthorn/domain/delivery"
)

// What is stored must never change its meaning, nor what the API says its spelling.
func TestStoredNumbersAndWordsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	statuses := []string{"pending", "retrying", "delivered", "failed", "canceled", "held"}
	for i, want := range statuses {
		s, ok := delivery.ParseStatus(want)
		if !ok || int(s) != i || s.String() != want {
			t.Errorf("status %q: %d, %v, %q", want, s, ok, s)
		}
	}
	reasons := []string{"", "exhausted", "rejected", "gone", "expired", "endpoint_deleted", "internal", "expunged"}
	for i, want := range reasons {
		if got := delivery.Reason(i).String(); got != want {
			t.Errorf("reason %d: %q, want %q", i, got, want)
		}
	}
	failures := []string{"", "dns_error", "connect_error", "tls_error", "timeout", "reset", "blocked_address", "protocol_error", "internal_error", "token_error", "proxy_error"}
	for i, want := range failures {
		f, ok := delivery.ParseFailure(want)
		if !ok || int(f) != i || f.String() != want {
			t.Errorf("failure %q: %d, %v, %q", want, f, ok, f)
		}
	}
	classes := []string{"neutral", "success", "unhealthy", "auth", "throttled"}
	for i, want := range classes {
		if got := delivery.Class(i).String(); got != want {
			t.Errorf("class %d: %q, want %q", i, got, want)
		}
	}
}

func TestUnknownWordsAndNumbersAreNamedNotGuessed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "Pending", "sent", "pending "} {
		if s, ok := delivery.ParseStatus(text); ok {
			t.Errorf("ParseStatus(%q) = %s", text, s)
		}
	}
	if _, ok := delivery.ParseFailure("dns"); ok {
		t.Error("parsed a failure that does not exist")
	}
	for _, got := range []string{delivery.Status(9).String(), delivery.Status(-1).String()} {
		if got != "status_9" && got != "status_-1" {
			t.Errorf("unknown status prints as %q", got)
		}
	}
}

func TestStatesAreWordsInJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(map[string]any{"s": delivery.Held, "r": delivery.EndpointDeleted, "f": delivery.FailBlocked})
	if want := `{"f":"blocked_address","r":"endpoint_deleted","s":"held"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
