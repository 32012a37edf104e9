package signature

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

func TestAnAttemptsHeadersAreRebuiltAsTheyWereSent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	m := Message{EventID: "evt_1", DeliveryID: "dlv_1", EndpointID: "ep_1", Type: "a.b", CreatedAt: at.Add(-time.Hour), Data: []byte(`{"a":1}`)}
	for _, f := range Formats() {
		for _, prefix := range []string{"", "Acme"} {
			secret := "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
			key, err := ParseKey(f, secret)
			if err != nil {
				t.Fatal(err)
			}
			s := Signing{Format: f, Prefix: prefix, Keys: []Key{key}}
			send := Send{At: at, Attempt: 2, Replayed: true}
			sent := s.Headers(nil, m, AppendBody(nil, f, m), send)
			var kept string
			for _, h := range sent {
				if strings.HasSuffix(strings.ToLower(h.Name), "signature") {
					kept = h.Value
				}
			}
			if got := SentHeaders(ParseWire(s.Wire(m).String(), "Other"), m, kept, send); !slices.Equal(got, sent) {
				t.Errorf("%s %q: %v, was %v", f, prefix, got, sent)
			}
		}
	}
}

func TestACommandSendsTheExactBytes(t *testing.T) {
	t.Parallel()
	shell := need.Program(t, "sh")
	body := `{"a":"it's $HOME` + "`id`" + ` \\n \"x\"","b":"@file"}` + "\n"
	headers := append(FixedHeaders(ContentType), Header{"X-Odd", `a'b "c" $(id)`})
	command := Curl("PUT", "https://example.com/hook?a=***&b=1", headers, []byte(body))
	out, err := exec.CommandContext(t.Context(), shell, "-c", strings.Replace(command, "curl ", "printf '%s\\0' ", 1)).Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	want := []string{"-sS", "-X", "PUT", "https://example.com/hook?a=***&b=1"}
	for _, h := range headers {
		want = append(want, "-H", h.Name+": "+h.Value)
	}
	if want = append(want, "--data-raw", body); !slices.Equal(words, want) {
		t.Errorf("the shell reads %q, want %q", words, want)
	}
}
