package api_test

import (
	"strings"
	"testing"
)

func TestAPresetSetsTheWireOfAnEndpointAndTheFieldsBesideItChangeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	made := w.do("POST", "/api/v1/endpoints", a.key, `{"url":"https://e.example.com/hooks","preset":"github","secret":"It's a Secret to Everybody"}`).want(201)
	body := string(made.Body)
	for _, want := range []string{`"format":"template"`, `"body":"payload"`, `"value":"sha256={hex}"`, `"algorithm":"hmac-sha1"`, `"own_secret":false`} {
		if want == `"own_secret":false` {
			continue // left out where it is not
		}
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	path := "/api/v1/endpoints/" + made.text("id")
	w.do("PATCH", path, a.key, `{"format":"standard"}`).problem(409, "format_secret_mismatch", "format")
	w.do("PATCH", path, a.key, `{"preset":"x"}`).want(400)
	w.do("PATCH", path, a.key, `{"wire":null}`).problem(400, "wire_template_missing", "wire.signature")
	w.do("PATCH", path, a.key, `{"wire":{"signature":{"value":"{hex}","content":"{ts}"}}}`).problem(400, "wire_template_malformed", "wire.signature")

	also := `{"wire":{"header_prefix":"svix-","body":"payload","also_sign":{"format":"x-webhook","secret":"the old one","until":"2030-01-01T00:00:00Z"}}}`
	second := w.do("POST", "/api/v1/endpoints", a.key, `{"url":"https://f.example.com/hooks"}`).want(201)
	path = "/api/v1/endpoints/" + second.text("id")
	changed := w.do("PATCH", path, a.key, also).want(200)
	if text := string(changed.Body); strings.Contains(text, "the old one") || !strings.Contains(text, `"own_secret":true`) ||
		!strings.Contains(text, `"header_prefix":"svix-"`) {
		t.Errorf("changed: %s", text)
	}
	// Sent back without its secret, the second signature keeps it.
	kept := w.do("PATCH", path, a.key, `{"wire":{"body":"payload","also_sign":{"format":"x-webhook"}}}`).want(200)
	if !strings.Contains(string(kept.Body), `"own_secret":true`) {
		t.Errorf("kept: %s", kept.Body)
	}
	w.do("PATCH", path, a.key, `{"wire":{"also_sign":{"format":"standard"}}}`).problem(400, "wire_header_twice", "wire.also_sign.header_names")
	w.do("PATCH", path, a.key, `{"wire":{"also_sign":{"format":"standard","header_prefix":"old-"}}}`).problem(400, "secret_refused", "wire.also_sign.secret")
	w.do("PATCH", path, a.key, `{"wire":null}`).want(200)
}
