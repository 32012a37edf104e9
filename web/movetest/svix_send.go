package movetest

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// svixMessage takes a message as Svix's server does: it gives it an id of its own and sends it under that id, whatever
// the eventId is, to each endpoint that is not disabled.
func (s *Server) svixMessage(w http.ResponseWriter, r *http.Request, app int) {
	var in struct {
		EventType string          `json:"eventType"`
		EventID   *string         `json:"eventId"`
		Payload   json.RawMessage `json:"payload"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	id := "msg_" + base62(27)
	for i := range PerTenant(app) {
		if endpoint := fmt.Sprintf("ep_%d_%d", app, i); i != 2 && !s.Disabled(endpoint) {
			if err := s.svixSend(r, s.url(app, i), Secret(endpoint), id, in.Payload); err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "eventId": in.EventID, "eventType": in.EventType, "payload": in.Payload, "timestamp": time.Now()})
}

func (s *Server) svixSend(r *http.Request, url, secret, id string, payload []byte) error {
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s.%s.%s", id, stamp, payload)
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Svix-Id", id)
	req.Header.Set("Svix-Timestamp", stamp)
	req.Header.Set("Svix-Signature", "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

const base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func base62(n int) string {
	text := make([]byte, n)
	_, _ = rand.Read(text) // never fails
	for i, b := range text {
		text[i] = base62Digits[int(b)%len(base62Digits)]
	}
	return string(text)
}
