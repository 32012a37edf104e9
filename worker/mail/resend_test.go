package mail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/worker/mail/resendtest"
)

// resendDriverTo sends to a server of resendtest with a key.
func resendDriverTo(t *testing.T, s *resendtest.Server, key string) Driver {
	t.Helper()
	d, err := NewResend(key, s.URL) // without a slash at the end
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func message(key string) Message {
	return Message{
		ID:      id.New(time.Now(), [10]byte{1}),
		Key:     key,
		Kind:    mail.Notice,
		From:    "Posthorn <hooks@posthorn.example>",
		To:      "ada@acme.example",
		Subject: "Subject",
		HTML:    "<p>grüße</p>",
		Text:    "grüße",
		At:      time.Date(2031, 3, 9, 14, 5, 0, 0, time.UTC),
		Headers: map[string]string{"List-Unsubscribe": "<https://posthorn.example/u/x>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"},
	}
}

func TestResendGetsAMailOnceForItsKey(t *testing.T) {
	t.Parallel()
	f := resendtest.New(t)
	d := resendDriverTo(t, f, resendtest.Key)
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
	sent := f.Sent()
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
		{
			name: "too fast",
			spoil: func(w http.ResponseWriter, _ int) bool {
				w.Header().Set("Retry-After", "7")
				resendtest.Refuse(w, 429, "rate_limit_exceeded", "Too many requests.")
				return true
			},
			want: mail.Throttled,
			wait: 7 * time.Second,
			says: "429 rate_limit_exceeded",
		},
		{
			name: "too fast, without Retry-After",
			spoil: func(w http.ResponseWriter, _ int) bool {
				resendtest.Refuse(w, 429, "daily_quota_exceeded", "Too much.")
				return true
			},
			want: mail.Throttled,
			wait: time.Second,
			says: "daily_quota_exceeded",
		},
		{
			name: "down",
			spoil: func(w http.ResponseWriter, _ int) bool {
				w.Header().Del("RateLimit-Reset")
				http.Error(w, "<h1>bad gateway</h1>", http.StatusBadGateway)
				return true
			},
			want: mail.Retry,
			says: "502",
		},
		{
			name: "forbidden",
			spoil: func(w http.ResponseWriter, _ int) bool {
				w.Header().Del("RateLimit-Reset")
				resendtest.Refuse(w, 403, "validation_error", "You can only send testing emails to your own email address.")
				return true
			},
			want: mail.Refused,
			says: "403 validation_error",
		},
		{
			name: "elsewhere",
			spoil: func(w http.ResponseWriter, _ int) bool {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(http.StatusTemporaryRedirect)
				return true
			},
			want: mail.Retry,
			says: "307",
		},
		{name: "no JSON", spoil: func(w http.ResponseWriter, _ int) bool { fmt.Fprint(w, "fine"); return true }, want: mail.Retry},
		{name: "hung up", spoil: func(http.ResponseWriter, int) bool { panic(http.ErrAbortHandler) }, want: mail.Retry},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := resendtest.New(t)
			f.OnCall(tt.spoil)
			key, m := resendtest.Key, message("a")
			if tt.key != "" {
				key = tt.key
			}
			if tt.to != "" {
				m.To = tt.to
			}
			_, err := resendDriverTo(t, f, key).Send(t.Context(), m)
			var r *Refusal
			if !errors.As(err, &r) || r.Verdict != tt.want || tt.wait > 0 && r.RetryAfter != tt.wait ||
				!strings.Contains(r.Detail, tt.says) {
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
	f := resendtest.New(t)
	release := make(chan struct{})
	f.OnCall(func(http.ResponseWriter, int) bool { <-release; return true })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	defer close(release)
	if _, err := resendDriverTo(t, f, resendtest.Key).Send(ctx, message("a")); verdict(err) != mail.Retry {
		t.Error(err)
	}
}
