// Package resendtest is Resend's API for tests, as its documentation describes it: bearer key, JSON without unknown
// fields, one mail for an idempotency key within a day, typed errors, rate limit headers.
package resendtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Key is the only API key that a server accepts.
const Key = "re_canary_0123456789"

// Mail is an accepted mail.
type Mail struct {
	ID, Key string // the provider's id, and the idempotency key
	Body    []byte
	From    string            `json:"from"`
	To      []string          `json:"to"`
	Subject string            `json:"subject"`
	HTML    string            `json:"html"`
	Text    string            `json:"text"`
	Headers map[string]string `json:"headers"`
}

// Server is a fake of Resend. Create it with New.
type Server struct {
	URL string // without a slash at its end

	mu    sync.Mutex
	mails []Mail
	byKey map[string]Mail
	calls int
	call  func(w http.ResponseWriter, call int) bool
	taken func(m Mail, gone <-chan struct{})
}

// New starts a server that runs until the test's end.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{byKey: map[string]Mail{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// OnCall calls fn before each call, counted from 1; true: fn has responded to it. Nil: every call is accepted.
func (s *Server) OnCall(fn func(w http.ResponseWriter, call int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call = fn
}

// OnTaken calls fn after a mail was accepted, or was there already, and before the response. gone is closed when the
// caller disconnects.
func (s *Server) OnTaken(fn func(m Mail, gone <-chan struct{})) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = fn
}

// Sent lists the accepted mails, each once.
func (s *Server) Sent() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Calls is how many calls the server got.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Refuse responds with an error in Resend's form.
func Refuse(w http.ResponseWriter, status int, name, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"statusCode": status, "name": name, "message": message}) // the caller can have hung up
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls++
	n, call := s.calls, s.call
	s.mu.Unlock()
	w.Header().Set("RateLimit-Limit", "2")
	w.Header().Set("RateLimit-Remaining", "1")
	w.Header().Set("RateLimit-Reset", "1")
	if call != nil && call(w, n) {
		return
	}
	if status, name, message := refusal(r); status != 0 {
		Refuse(w, status, name, message)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m := Mail{Key: r.Header.Get("Idempotency-Key"), Body: body}
	if name, message := m.read(); name != "" {
		Refuse(w, http.StatusUnprocessableEntity, name, message)
		return
	}
	m, same, taken := s.take(m)
	if !same {
		Refuse(w, 409, "invalid_idempotent_request", "Same idempotency key used with a different request payload.")
		return
	}
	if taken != nil {
		taken(m, r.Context().Done())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"id": m.ID})
}

// refusal is what is wrong with a request before its body is read; status 0: nothing.
func refusal(r *http.Request) (status int, name, message string) {
	key := r.Header.Get("Idempotency-Key")
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/emails":
		return 404, "not_found", "The requested endpoint does not exist."
	case r.Header.Get("Authorization") == "":
		return 401, "missing_api_key", "Missing API Key in the authorization header."
	case r.Header.Get("Authorization") != "Bearer "+Key:
		return 403, "invalid_api_key", "API key is invalid: " + r.Header.Get("Authorization")
	case r.Header.Get("Content-Type") != "application/json", r.Header.Get("User-Agent") == "":
		return 422, "invalid_parameter", "The request is not JSON, or lacks a User-Agent."
	case len(key) < 1 || len(key) > 256:
		return 400, "invalid_idempotency_key", "The key must be between 1-256 chars."
	}
	return 0, "", ""
}

func (m *Mail) read() (name, message string) {
	decoder := json.NewDecoder(bytes.NewReader(m.Body))
	decoder.DisallowUnknownFields()
	switch {
	case decoder.Decode(m) != nil, m.From == "", len(m.To) == 0, m.Subject == "", m.HTML == "" && m.Text == "":
		return "missing_required_field", "The request body is missing one or more required fields."
	case !strings.Contains(m.To[0], "@"):
		return "validation_error", "Invalid `to` field."
	}
	return "", ""
}

// take stores a mail unless one with its key exists. It then returns the existing one; same: it has the same body.
func (s *Server) take(m Mail) (kept Mail, same bool, taken func(Mail, <-chan struct{})) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, known := s.byKey[m.Key]
	if !known {
		m.ID = fmt.Sprintf("mail-%d", len(s.mails)+1)
		s.mails = append(s.mails, m)
		s.byKey[m.Key], kept = m, m
	}
	return kept, bytes.Equal(kept.Body, m.Body), s.taken
}
