package mail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/resend/resend-go/v2"

	"posthorn/domain/mail"
)

// resendURL is the default address of Resend's API.
const resendURL = "https://api.resend.com/"

// maxIdempotencyKey is the longest key that Resend accepts.
const maxIdempotencyKey = 256

// maxAnswer bounds how much of the provider's response is read.
const maxAnswer = 64 << 10

// NewResend sends with Resend's API. address can be empty.
func NewResend(apiKey, address string) (Driver, error) {
	if address == "" {
		address = resendURL
	}
	// Paths are resolved against the address: without the slash its last part would be replaced.
	base, err := url.Parse(strings.TrimRight(address, "/") + "/")
	if err != nil {
		return nil, fmt.Errorf("address of resend: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = sendTime
	client := resend.NewCustomClient(&http.Client{
		Transport:     &witness{transport},
		Timeout:       sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, apiKey)
	client.BaseURL = base
	return &resendDriver{client: client, key: apiKey}, nil
}

type resendDriver struct {
	client *resend.Client
	key    string
}

func (d *resendDriver) Send(ctx context.Context, m Message) (string, error) {
	var seen answer
	ctx = context.WithValue(ctx, answerKey{}, &seen)
	sent, err := d.client.Emails.SendWithOptions(ctx, &resend.SendEmailRequest{
		From:    m.From,
		To:      []string{m.To},
		Subject: m.Subject,
		Html:    m.HTML,
		Text:    m.Text,
		Headers: m.Headers,
	}, &resend.SendEmailOptions{IdempotencyKey: idempotencyKey(m.Key)})
	if err == nil && seen.status >= 200 && seen.status < 300 && sent.Id != "" {
		return sent.Id, nil
	}
	switch {
	case seen.status == 0:
		return "", &Refusal{Detail: "No response from Resend: " + d.clean(err)}
	case seen.status < 300:
		return "", &Refusal{Detail: "Resend's response couldn't be read."}
	}
	return "", &Refusal{
		Verdict:    mail.Classify(seen.status, seen.Name),
		RetryAfter: seen.retryAfter,
		Detail:     d.clean(fmt.Errorf("Resend returned %d %s: %s", seen.status, seen.Name, seen.Message)),
	}
}

// clean makes an error's text fit for operators: one line, short, without the key.
func (d *resendDriver) clean(err error) string {
	if err == nil {
		return ""
	}
	return short(strings.ReplaceAll(err.Error(), d.key, "***"))
}

// short makes one line of at most 300 bytes of an external text.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

// idempotencyKey is a mail's key in the provider's form.
func idempotencyKey(key string) string {
	if len(key) <= maxIdempotencyKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// answer holds the parts of an error that the library leaves out: it keeps the status only for 429.
type answer struct {
	Name       string `json:"name"`
	Message    string `json:"message"`
	status     int
	retryAfter time.Duration
}

type answerKey struct{}

// witness records the status and the error of each response for its call.
type witness struct{ next http.RoundTripper }

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	seen, ok := r.Context().Value(answerKey{}).(*answer)
	if !ok {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	seen.status = resp.StatusCode
	if resp.StatusCode >= 300 {
		_ = json.Unmarshal(body, seen) // a body that is not JSON adds nothing
		seen.retryAfter = retryAfter(resp.Header)
	}
	return resp, nil
}

// retryAfter reads how long a provider asks us to wait: Retry-After in seconds, or the end of the rate limit's window
// (the IETF draft's RateLimit-Reset, seconds too). These providers send no dates.
func retryAfter(h http.Header) time.Duration {
	for _, name := range []string{"Retry-After", "RateLimit-Reset"} {
		if n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64); err == nil && n > 0 {
			return time.Duration(min(n, 86400) * float64(time.Second))
		}
	}
	return 0
}
