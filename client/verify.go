package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"posthorn/client/internal/fault"
	"posthorn/client/internal/signature"
)

// Verify checks a webhook in the standard format: that it was signed with the endpoint's secret (whsec_..., or the
// public key whpk_...), over exactly this body, within the last five minutes. body is the received body before any
// parsing. The error is a [*SignatureError].
func Verify(secret string, header http.Header, body []byte) error {
	return Verifier{Secrets: []string{secret}}.Verify(header, body)
}

// Verifier checks webhooks of one endpoint. Zero fields mean the defaults of an endpoint.
type Verifier struct {
	Format Format // empty: standard
	Prefix string // {P} in the format's header names; empty: Webhook
	// of the endpoint (svix, stripe, github, shopify, slack, ...); Format and Prefix are left out then
	Preset  string
	Wire    *WireSettings // of the endpoint, as the API shows it; nil: none
	Secrets []string      // each of them can have signed: during a rotation, list the old and the new one
	// Tolerance is how far the signature's time can be from this machine's clock; 0: five minutes, less: any time.
	// The format body-hex signs no time.
	Tolerance time.Duration
	Now       func() time.Time // nil: time.Now
	MaxBody   int64            // bytes that Read reads at most; 0: 2 MiB
}

// SignatureError says why a webhook is not authentic. Respond with 401 or 400, and log it.
type SignatureError struct {
	Code   string // stable, such as signature_mismatch or timestamp_too_old
	Header string // the header, if one is wrong
	Detail string // the problem and its fix, for people
}

func (e *SignatureError) Error() string { return "posthorn: " + e.Code + ": " + e.Detail }

// Verify checks the signature of a body under a request's headers.
func (v Verifier) Verify(header http.Header, body []byte) error {
	now, tolerance := time.Now, v.Tolerance
	if v.Now != nil {
		now = v.Now
	}
	if tolerance == 0 {
		tolerance = signature.DefaultTolerance
	}
	wire, err := v.wire()
	if err == nil {
		err = wire.Verify(header.Get, body, v.Secrets, now(), tolerance)
	}
	failure := fault.As(err)
	if failure == nil {
		return err
	}
	e := &SignatureError{Code: failure.Code, Detail: failure.Detail}
	if len(failure.Fields) > 0 && failure.Code != signature.CodeSecretRefused && failure.Code != signature.CodeFormatUnknown {
		e.Header = failure.Fields[0].Name
	}
	return e
}

// wire is how the endpoint's requests are rendered and signed.
func (v Verifier) wire() (signature.Wire, error) {
	w := signature.Wire{Format: v.format(), Prefix: v.Prefix}
	if v.Preset != "" {
		p, ok := signature.PresetNamed(v.Preset)
		if !ok {
			return w, fmt.Errorf("posthorn: there is no preset %q", v.Preset)
		}
		w = p.Wire()
	}
	if v.Wire == nil {
		return w, nil
	}
	text, err := json.Marshal(v.Wire)
	if err != nil {
		return w, err
	}
	w.Shape = &signature.Shape{}
	return w, json.Unmarshal(text, w.Shape)
}

func (v Verifier) format() signature.Format {
	if v.Format == "" {
		return signature.Standard
	}
	return signature.Format(v.Format)
}

// Webhook is a verified delivery. Fields that the endpoint's format does not send are empty.
type Webhook struct {
	// of the event: the same on every attempt and replay. In body-hex and raw it is a header that is not signed
	ID         string
	DeliveryID string    // in x-webhook, another on a replay; in raw, the same on a replay too. Empty in other formats
	Type       string    // of the event; every format has it
	Timestamp  time.Time // when it happened; zero in raw
	Version    string    // of the data's shape, if the type has versions
	Data       json.RawMessage
}

// Challenge is the text that the response to a verification must contain, with status 200. It is empty for every other
// webhook.
func (w Webhook) Challenge() string {
	if w.Type != "endpoint.verification" {
		return ""
	}
	var data struct{ Challenge string }
	_ = json.Unmarshal(w.Data, &data)
	return data.Challenge
}

const defaultMaxBody = 2 << 20

// Read reads a request's body, verifies it, and parses the event. Deliveries are at least once: act on each ID once.
func (v Verifier) Read(r *http.Request) (Webhook, error) {
	limit := v.MaxBody
	if limit <= 0 {
		limit = defaultMaxBody
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return Webhook{}, &SignatureError{Code: "body_too_large", Detail: fmt.Sprintf("The body has more than %d bytes.", limit)}
	case err != nil:
		return Webhook{}, fmt.Errorf("posthorn: read the webhook: %w", err)
	}
	if err := v.Verify(r.Header, body); err != nil {
		return Webhook{}, err
	}
	return v.open(r.Header, body)
}

// open parses an event from a body in the format's shape.
func (v Verifier) open(header http.Header, body []byte) (Webhook, error) {
	wire, err := v.wire()
	if err != nil {
		return Webhook{}, err
	}
	if wire.Bare() {
		named := func(role string) string { return header.Get(wire.HeaderName(role)) }
		return Webhook{ID: named("id"), Type: named("event"), DeliveryID: named("delivery"), Data: body}, nil
	}
	prefix := v.Prefix
	if prefix == "" {
		prefix = signature.DefaultPrefix
	}
	var in struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		Event     string          `json:"event"`
		Timestamp time.Time       `json:"timestamp"`
		CreatedAt time.Time       `json:"created_at"`
		Version   string          `json:"version"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Webhook{}, fmt.Errorf("posthorn: the webhook is signed, but not in the shape of the format %s: %w", v.format(), err)
	}
	w := Webhook{ID: in.ID, Type: in.Type, Timestamp: in.Timestamp, Version: in.Version, Data: in.Data}
	switch v.format() {
	case signature.BodyHex:
		w.ID, w.Type = header.Get("X-"+prefix+"-Event-Id"), in.Event
	case signature.XWebhook:
		w.Timestamp, w.DeliveryID = in.CreatedAt, header.Get("X-Delivery-Id")
		if in.Type == "" {
			w.Type = in.Event // the endpoint's type_field
		}
	}
	return w, nil
}
