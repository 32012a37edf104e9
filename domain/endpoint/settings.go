// Package endpoint holds an endpoint's settings with their ranges and defaults, its custom headers, and the rules of
// its states and secrets.
package endpoint

import (
	"encoding/json"
	"maps"
	"slices"

	"posthorn/domain/retry"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// The ranges, as in the API's contract.
const (
	maxDescription = 1000 // characters
	maxEventTypes  = 100
	maxChannels    = 10
	MinTimeout     = 1 // seconds
	MaxTimeout     = 30
	MaxExpiry      = 30 * 24 * 60 * 60 // seconds
	MaxInFlight    = 100
	MaxRate        = 100_000 // requests a second
	maxMetadata    = 50      // entries
	maxMetadataKey = 64      // characters
	maxMetadataVal = 500     // characters
	maxVersion     = 64      // characters
)

// What becomes of events while an endpoint is not active.
const (
	Hold = "hold" // their deliveries wait until it is
	Drop = "drop" // they make no delivery, and the event's routing says so
)

// What becomes of events whose data is in object storage, since it is too large for a request.
const (
	RejectLarge = "reject" // their deliveries fail
	LinkLarge   = "link"   // the body has a signed link in place of the data
)

// Custom names a retry policy of the endpoint's own delays.
const Custom = "custom"

// DefaultJitter spreads the waits of a custom schedule that does not say otherwise, as most named ones are spread.
const DefaultJitter = 0.10

// Settings is everything that a tenant sets for an endpoint. Check validates it. A tag names the row of the table of
// fields that reads and writes the field.
type Settings struct {
	Kind              Kind
	ExternalID        string                    `row:"external_id"`           // the company's own id; empty: none
	URL               string                    `row:"url"`                   // of other kinds than HTTP: their connection as people see it
	Connection        Connection                `row:"kafka,rabbitmq,sqs,s3"` // nil where the kind needs none
	Description       string                    `row:"description"`
	EventTypes        []string                  `row:"event_types"`
	Filter            string                    `row:"filter"` // JSON as saved: a string is CEL, an object means equality on all; empty: none
	Channels          []string                  `row:"channels"`
	Format            signature.Format          `row:"format"`
	Prefix            string                    `row:"prefix"`
	TypeField         signature.TypeField       `row:"type_field"`          // of XWebhook bodies
	Rotation          signature.Rotation        `row:"rotation_signatures"` // empty is the format's default
	Shape             *signature.Shape          `row:"wire"`                // what it changes about the format; nil is nothing
	AlsoSecret        string                    `row:"wire"`                // of the second signature; empty is the endpoint's own
	Public            PublicSignature           `row:"public_signature"`
	RetryPolicy       string                    `row:"retry_policy"` // a named schedule, or Custom
	RetryDelays       []int                     `row:"retry_policy"` // seconds; of a custom policy alone, where none is a single attempt
	RetryJitter       *float64                  `row:"retry_policy"` // of a custom policy alone; nil is DefaultJitter
	RetryFull         bool                      `row:"retry_policy"` // of a custom policy alone: waits are drawn from nothing up to the delay
	RetryClientErrors bool                      `row:"retry_client_errors"`
	TimeoutSeconds    int                       `row:"timeout_seconds"`
	MaxInFlight       int                       `row:"max_in_flight"`
	RateLimit         *int                      `row:"rate_limit"` // requests a second; nil is unlimited
	Burst             *int                      `row:"burst"`      // nil is twice the rate
	Ordering          string                    `row:"ordering"`
	PayloadVersion    string                    `row:"payload_version"` // empty is any
	AcceptConflict    bool                      `row:"accept_conflict"`
	SendTraceparent   bool                      `row:"send_traceparent"` // requests carry the context of the event's trace
	CircuitBreaker    bool                      `row:"circuit_breaker"`  // off: deliveries keep to their schedules however the endpoint fails
	Verification      string                    `row:"verification"`
	WhenHeld          string                    `row:"when_held"`
	LargePayloads     string                    `row:"large_payloads"`
	Auth              *Auth                     `row:"auth"`                  // to the receiver; nil is none
	TLS               *ClientTLS                `row:"tls"`                   // nil is the usual
	ExpiresAfter      *int                      `row:"expires_after_seconds"` // seconds; nil is never
	BatchEvents       *int                      `row:"batch_max_events"`      // nil: each event has its own request
	BatchWait         *int                      `row:"batch_max_wait_ms"`     // nil is DefaultBatchWait
	BatchBytes        *int                      `row:"batch_max_bytes"`       // nil is DefaultBatchBytes
	Transformation    *transform.Transformation `row:"transformation"`        // nil is none
	Headers           Headers                   `row:"custom_headers"`
	Metadata          map[string]string         `row:"metadata"`
}

// Clone is a copy that shares nothing with s.
func (s Settings) Clone() Settings {
	s.EventTypes = slices.Clone(s.EventTypes)
	s.Channels = slices.Clone(s.Channels)
	s.RetryDelays = slices.Clone(s.RetryDelays)
	s.Headers = maps.Clone(s.Headers)
	s.Metadata = maps.Clone(s.Metadata)
	s.Auth, s.TLS = s.Auth.Clone(), clonePointer(s.TLS)
	s.Shape, s.Transformation = s.Shape.Clone(), s.Transformation.Clone()
	s.RateLimit, s.Burst, s.RetryJitter = clonePointer(s.RateLimit), clonePointer(s.Burst), clonePointer(s.RetryJitter)
	s.ExpiresAfter = clonePointer(s.ExpiresAfter)
	s.BatchEvents, s.BatchWait, s.BatchBytes = clonePointer(s.BatchEvents), clonePointer(s.BatchWait), clonePointer(s.BatchBytes)
	if s.Connection != nil {
		s.Connection = s.Connection.Clone()
	}
	return s
}

func clonePointer[T any](n *T) *T {
	if n == nil {
		return nil
	}
	m := *n
	return &m
}

// Schedule is when a failed delivery is tried again. A policy that is unknown, which Check refuses, is the default.
func (s Settings) Schedule() retry.Schedule {
	if s.RetryPolicy == Custom {
		if own, err := s.schedule(); err == nil {
			return own
		}
	}
	if named, ok := retry.Named(s.RetryPolicy); ok {
		return named
	}
	standard, _ := retry.Named(retry.Default)
	return standard
}

// jitter is that of a custom policy.
func (s Settings) jitter() float64 {
	if s.RetryJitter == nil {
		return DefaultJitter
	}
	return *s.RetryJitter
}

// SetFormat changes the format. What concerns the old one alone falls back to its default.
func (s *Settings) SetFormat(f signature.Format) {
	if f != signature.XWebhook {
		s.TypeField = signature.TypeAsType
	}
	if f.OneSlot() {
		s.Rotation = ""
	}
	if f != signature.Templated && s.Shape != nil {
		s.Shape.Signature = nil
		if s.Shape.IsZero() {
			s.Shape = nil
		}
	}
	s.Format = f
}

// Migrating are the settings of a new endpoint whose receiver knows its secret already. Published verifiers of t-v1
// read a single v1, so a rotation sends one signature unless somebody asks for more.
func (s Settings) Migrating() Settings {
	if s.Format == signature.TV1 && s.Rotation == "" {
		s.Rotation = signature.SignOne
	}
	return s
}

// SetPreset makes requests as the receivers of another sender expect them.
func (s *Settings) SetPreset(p signature.Preset) {
	s.SetFormat(p.Format)
	s.Shape, s.AlsoSecret = p.Shape.Clone(), ""
	if s.Prefix = p.Prefix; s.Prefix == "" {
		s.Prefix = signature.DefaultPrefix
	}
}

// Wire is how the endpoint's requests are rendered and signed.
func (s Settings) Wire() signature.Wire {
	return signature.Wire{Format: s.Format, Prefix: s.Prefix, TypeField: s.TypeField, Shape: s.Shape}
}

// EffectiveBurst is how many requests can start at once after a quiet time: what was asked, or twice the rate within
// its range. It is 0 for an endpoint without a rate.
func (s Settings) EffectiveBurst() int {
	switch {
	case s.RateLimit == nil:
		return 0
	case s.Burst != nil:
		return *s.Burst
	}
	return min(2**s.RateLimit, MaxRate)
}

// Defaults are the limits and defaults of one tenant's endpoints.
type Defaults struct {
	MaxEndpoints int
	Settings     Settings
}

// defaultsJSON is the shape of "endpoints" within the settings of the platform and of a tenant.
type defaultsJSON struct {
	Endpoints struct {
		Max            *int     `json:"max"`
		Format         string   `json:"format"`
		Prefix         string   `json:"prefix"`
		RetryPolicy    string   `json:"retry_policy"`
		RetryDelays    []int    `json:"retry_delays"`
		RetryJitter    *float64 `json:"retry_jitter"`
		RetryFull      bool     `json:"retry_full"`
		TimeoutSeconds *int     `json:"timeout_seconds"`
		MaxInFlight    *int     `json:"max_in_flight"`
		// A number, or null for unlimited; absent leaves it.
		RateLimit    json.RawMessage `json:"rate_limit"`
		Verification string          `json:"verification"`
		WhenHeld     string          `json:"when_held"`
	} `json:"endpoints"`
}

// ReadDefaults lays the settings of the platform and of a tenant, both JSON objects, over Posthorn's own defaults, and
// returns the default of the largest number of endpoints for a tenant. What does not read as settings is left out: a
// wrong setting must not keep tenants from their endpoints.
func ReadDefaults(endpoints int, platform, tenant []byte) Defaults {
	rate := 50
	d := Defaults{
		MaxEndpoints: endpoints,
		Settings: Settings{
			Kind:           HTTP,
			EventTypes:     []string{"*"},
			Channels:       []string{},
			Format:         signature.Standard,
			Prefix:         signature.DefaultPrefix,
			TypeField:      signature.TypeAsType,
			Public:         NoPublic,
			RetryPolicy:    retry.Default,
			TimeoutSeconds: 15,
			MaxInFlight:    5,
			RateLimit:      &rate,
			Ordering:       "none",
			CircuitBreaker: true,
			Verification:   "challenge",
			WhenHeld:       Hold,
			LargePayloads:  RejectLarge,
			Headers:        Headers{},
			Metadata:       map[string]string{},
		},
	}
	for _, raw := range [][]byte{platform, tenant} {
		var over defaultsJSON
		if json.Unmarshal(raw, &over) == nil {
			d.lay(over)
		}
	}
	return d
}

// ForAlerts are the settings of a new alert channel. Chats and pagers echo no challenge. An alert opens before it ends,
// also if the request that opens it has to be retried.
func (s Settings) ForAlerts(types string) Settings {
	s.EventTypes, s.Verification, s.Ordering = []string{types}, "simple", "key"
	return s
}

func (d *Defaults) lay(over defaultsJSON) {
	e, s := over.Endpoints, &d.Settings
	setInt(&d.MaxEndpoints, e.Max)
	setInt(&s.TimeoutSeconds, e.TimeoutSeconds)
	setInt(&s.MaxInFlight, e.MaxInFlight)
	if f := signature.Format(e.Format); f.Valid() {
		s.SetFormat(f)
	}
	if e.Prefix != "" {
		s.Prefix = e.Prefix
	}
	if e.RetryPolicy != "" {
		s.RetryPolicy, s.RetryDelays, s.RetryJitter, s.RetryFull = e.RetryPolicy, e.RetryDelays, e.RetryJitter, e.RetryFull
	}
	if e.Verification != "" {
		s.Verification = e.Verification
	}
	if e.WhenHeld == Hold || e.WhenHeld == Drop {
		s.WhenHeld = e.WhenHeld
	}
	if len(e.RateLimit) > 0 {
		var rate *int
		if json.Unmarshal(e.RateLimit, &rate) == nil {
			s.RateLimit = rate
		}
	}
}

func setInt(into, from *int) {
	if from != nil {
		*into = *from
	}
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
