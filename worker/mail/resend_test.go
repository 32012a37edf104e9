package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/mail"
)

const resendKey = "re_canary_0123456789"

// fakeResend is Resend's API as its documentation has it: bearer key, JSON, one mail for an idempotency key within a day,
// typed errors, rate limit headers.
type fakeResend struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	mails []sentMail
	byKey map[string]*sentMail
	calls int
	// answer refuses a call before it is looked at; nil takes all.
	answer func(w http.ResponseWriter, call int) bool
	// taken runs after a mail was taken and before the answer.
	taken func()
}

type sentMail struct {
	ID, Key string
	Body    []byte
	From    string            `json:"from"`
	To      []string          `json:"to"`
	Subject string            `json:"subject"`
	HTML    string            `json:"html"`
	Text    string            `json:"text"`
	Headers map[string]string `json:"headers"`
}

func newFakeResend(t *testing.T) *fakeResend {
	t.Helper()
	f := &fakeResend{t: t, byKey: map[string]*sentMail{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Server.Close)
	return f
}

func refuse(w http.ResponseWriter, status int, name, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"statusCode":%d,"name":%q,"message":%q}`, status, name, message)
}

func (f *fakeResend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls++
	call, answer := f.calls, f.answer
	f.mu.Unlock()
	w.Header().Set("RateLimit-Limit", "2")
	w.Header().Set("RateLimit-Remaining", "1")
	w.Header().Set("RateLimit-Reset", "1")
	if answer != nil && answer(w, call) {
		return
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/emails":
		refuse(w, 404, "not_found", "The requested endpoint does not exist.")
		return
	case r.Header.Get("Authorization") == "":
		refuse(w, 401, "missing_api_key", "Missing API Key in the authorization header.")
		return
	case r.Header.Get("Authorization") != "Bearer "+resendKey:
		refuse(w, 403, "invalid_api_key", "API key is invalid: "+r.Header.Get("Authorization"))
		return
	case r.Header.Get("Content-Type") != "application/json", r.Header.Get("User-Agent") == "":
		refuse(w, 422, "invalid_parameter", "The request is not JSON, or lacks a User-Agent.")
		return
	}
	key := r.Header.Get("Idempotency-Key")
	body, _ := io.ReadAll(r.Body)
	m := sentMail{Key: key, Body: body}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	switch {
	case len(key) < 1 || len(key) > 256:
		refuse(w, 400, "invalid_idempotency_key", "The key must be between 1-256 chars.")
		return
	case decoder.Decode(&m) != nil, m.From == "", len(m.To) == 0, m.Subject == "", m.HTML == "" && m.Text == "":
		refuse(w, 422, "missing_required_field", "The request body is missing one or more required fields.")
		return
	case !strings.Contains(m.To[0], "@"):
		refuse(w, 422, "validation_error", "Invalid `to` field.")
		return
	}
	f.mu.Lock()
	before := f.byKey[key]
	if before == nil {
		m.ID = fmt.Sprintf("mail-%d", len(f.mails)+1)
		f.mails = append(f.mails, m)
		f.byKey[key] = &m
		before = &m
	}
	taken := f.taken
	f.mu.Unlock()
	if !bytes.Equal(before.Body, body) {
		refuse(w, 409, "invalid_idempotent_request", "Same idempotency key used with a different request payload.")
		return
	}
	if taken != nil {
		taken()
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":%q}`, before.ID)
}

func (f *fakeResend) sent() []sentMail {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]sentMail(nil), f.mails...)
}

func (f *fakeResend) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *fakeResend) driver(key string) Driver {
	f.t.Helper()
	d, err := NewResend(key, f.URL) // without a slash at the end
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func message(key string) Message {
	return Message{
		ID: id.New(time.Now(), [10]byte{1}), Key: key, Kind: mail.Notice, From: "Posthorn <hooks@posthorn.example>", To: "ada@acme.example",
		Subject: "Subject", HTML: "<p>grüße</p>", Text: "grüße", At: time.Date(2031, 3, 9, 14, 5, 0, 0, time.UTC),
		Headers: map[string]string{"List-Unsubscribe": "<https://posthorn.example/u/x>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"},
	}
}

func TestResendGetsAMailOnceForItsKey(t *testing.T) {
	t.Parallel()
	f := newFakeResend(t)
	d := f.driver(resendKey)
	first, err := d.Send(t.Context(), message("a"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Send(t.Context(), message("a"))
	if err != nil || again != first {
		t.Errorf("%q, %v; want %q again", again, err, first)
	}
	other := message("a")
	other.Text = "another text"
	if _, err := d.Send(t.Context(), other); verdict(err) != mail.Taken {
		t.Errorf("another body under the same key: %v", err)
	}
	if long, err := d.Send(t.Context(), message(strings.Repeat("k", 300))); err != nil || long == first {
		t.Errorf("a long key: %q, %v", long, err)
	}
	sent := f.sent()
	if len(sent) != 2 || sent[0].From != "Posthorn <hooks@posthorn.example>" || sent[0].To[0] != "ada@acme.example" || sent[0].Text != "grüße" ||
		sent[0].Headers["List-Unsubscribe-Post"] != "List-Unsubscribe=One-Click" {
		t.Errorf("%+v", sent)
	}
}

func verdict(err error) mail.Verdict {
	var r *Refusal
	if !errors.As(err, &r) {
		return -1
	}
	return r.Verdict
}

func TestResendsRefusalsKeepTheirStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		key   string
		to    string
		spoil func(w http.ResponseWriter, call int) bool
		want  mail.Verdict
		wait  time.Duration
		says  string
	}{
		{name: "no key", key: "wrong", want: mail.Retry, says: "403 invalid_api_key"},
		{name: "a bad recipient", to: "nobody", want: mail.Refused, says: "422 validation_error"},
		{name: "too fast", spoil: func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Retry-After", "7")
			refuse(w, 429, "rate_limit_exceeded", "Too many requests.")
			return true
		}, want: mail.Throttled, wait: 7 * time.Second, says: "429 rate_limit_exceeded"},
		{name: "too fast, without Retry-After", spoil: func(w http.ResponseWriter, _ int) bool {
			refuse(w, 429, "daily_quota_exceeded", "Too much.")
			return true
		}, want: mail.Throttled, wait: time.Second, says: "daily_quota_exceeded"},
		{name: "down", spoil: func(w http.ResponseWriter, _ int) bool {
			w.Header().Del("RateLimit-Reset")
			http.Error(w, "<h1>bad gateway</h1>", http.StatusBadGateway)
			return true
		}, want: mail.Retry, says: "502"},
		{name: "forbidden", spoil: func(w http.ResponseWriter, _ int) bool {
			w.Header().Del("RateLimit-Reset")
			refuse(w, 403, "validation_error", "You can only send testing emails to your own email address.")
			return true
		}, want: mail.Refused, says: "403 validation_error"},
		{name: "elsewhere", spoil: func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, want: mail.Retry, says: "307"},
		{name: "no JSON", spoil: func(w http.ResponseWriter, _ int) bool { fmt.Fprint(w, "fine"); return true }, want: mail.Retry},
		{name: "hung up", spoil: func(http.ResponseWriter, int) bool { panic(http.ErrAbortHandler) }, want: mail.Retry},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeResend(t)
			f.answer = tt.spoil
			key, m := resendKey, message("a")
			if tt.key != "" {
				key = tt.key
			}
			if tt.to != "" {
				m.To = tt.to
			}
			_, err := f.driver(key).Send(t.Context(), m)
			var r *Refusal
			if !errors.As(err, &r) || r.Verdict != tt.want || tt.wait > 0 && r.RetryAfter != tt.wait || !strings.Contains(r.Detail, tt.says) {
				t.Errorf("%#v", err)
			}
			if err != nil && (strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("shown to operators: %s", err)
			}
		})
	}
}

func TestASlowProviderIsGivenUpWithTheContext(t *testing.T) {
	t.Parallel()
	f := newFakeResend(t)
	release := make(chan struct{})
	f.answer = func(http.ResponseWriter, int) bool { <-release; return true }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	defer close(release)
	if _, err := f.driver(resendKey).Send(ctx, message("a")); verdict(err) != mail.Retry {
		t.Error(err)
	}
}
