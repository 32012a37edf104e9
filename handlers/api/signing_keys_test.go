package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// keys lists a tenant's signing keys, newest first, as "signing", "next" and so on.
func (w *world) keyStates(tn tenant) string {
	w.t.Helper()
	var states []string
	for _, k := range w.do("GET", "/api/v1/signing-keys", tn.key, nil).want(http.StatusOK).get("data").([]any) {
		states = append(states, k.(map[string]any)["state"].(string))
	}
	return strings.Join(states, ", ")
}

func TestASigningKeyIsPublishedBeforeItSigns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("a"), w.tenant("b")
	if got := w.keyStates(tn); got != "" {
		t.Errorf("at first: %s", got)
	}
	ep := w.endpoint(tn, nil)
	if got := ep.text("public_signature"); got != "none" {
		t.Errorf("the default is %s", got)
	}
	path := "/api/v1/endpoints/" + ep.text("id")
	if got := w.do("PATCH", path, tn.key, `{"public_signature":"both"}`).want(http.StatusOK).text("public_signature"); got != "both" {
		t.Errorf("it is %s", got)
	}
	if got := w.keyStates(tn); got != "signing" {
		t.Errorf("with the first endpoint: %s", got)
	}
	const rotate = "/api/v1/signing-keys/rotate"
	made := w.do("POST", rotate, tn.key, nil).want(http.StatusCreated)
	if made.text("state") != "next" || !strings.HasPrefix(made.text("public_key"), "whpk_") || !strings.HasPrefix(made.text("id"), "sgk_") {
		t.Errorf("it is %s", made.Body)
	}
	if got := w.keyStates(tn); got != "next, signing" {
		t.Errorf("after a rotation: %s", got)
	}
	w.do("POST", rotate, tn.key, `{"starts_in_seconds":60}`).problem(http.StatusConflict, "key_pending")
	w.do("POST", rotate, tn.key, `{"starts_in_seconds":604801}`).problem(http.StatusBadRequest, "key_start_range", "starts_in_seconds")
	w.SQL("UPDATE signing_keys SET starts_at = now() WHERE expires_at IS NULL")
	if got := w.keyStates(tn); got != "signing, retired" {
		t.Errorf("when the new one signs: %s", got)
	}
	w.SQL("UPDATE signing_keys SET expires_at = now() WHERE expires_at IS NOT NULL")
	if got := w.keyStates(tn); got != "signing" {
		t.Errorf("when the old one has ended: %s", got)
	}
	for range 9 {
		w.do("POST", rotate, tn.key, `{"starts_in_seconds":1}`).want(http.StatusCreated)
		w.SQL("UPDATE signing_keys SET starts_at = now() WHERE starts_at > now()")
	}
	w.do("POST", rotate, tn.key, nil).problem(http.StatusConflict, "signing_keys_limit")
	w.do("POST", rotate, tn.key, `{"starts_in_seconds":0}`).want(http.StatusCreated)
	if got := w.keyStates(tn); got != "signing" || one[int](w, "SELECT count(*)::int FROM signing_keys") != 1 {
		t.Errorf("after a leak: %s", got)
	}
	if w.audited(tn, "signing_key.rotate") != 11 {
		t.Error("rotations are audited")
	}
	if got := w.keyStates(other); got != "" {
		t.Errorf("another tenant sees %s", got)
	}
}

func TestAPublicSignatureThatHasNoRoomIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	for _, c := range []struct{ body, code string }{
		{`{"url":"` + hook + `","public_signature":"jws"}`, "public_signature_unknown"},
		{`{"url":"` + hook + `","format":"raw","public_signature":"v1a"}`, "public_signature_unwanted"},
		{`{"kind":"kafka","kafka":{"bootstrap_servers":["broker.example.com:9092"],"topic":"a"},"public_signature":"rfc9421"}`, "public_signature_unwanted"},
		{`{"url":"` + hook + `","public_signature":"rfc9421","wire":{"header_names":{"signature":"Signature"}}}`, "public_signature_unwanted"},
	} {
		w.do("POST", "/api/v1/endpoints", tn.key, c.body).problem(http.StatusBadRequest, c.code, "public_signature")
	}
	w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`","custom_headers":{"Content-Digest":"x"}}`).
		problem(http.StatusBadRequest, "custom_header_refused", "custom_headers.Content-Digest")
}
