package worker

import (
	"fmt"
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/signature"
)

// target is all that sending to an endpoint takes: a snapshot of its configuration that never changes.
type target struct {
	kind        endpoint.Kind // known to the sender
	to          any           // where to, as the carrier understands it
	masked      string        // the URL for logs and attempts
	signing     signature.Signing
	expires     []time.Time // of the signing keys, zero for none; parallel to signing.Keys
	headers     []signature.Header
	policy      delivery.Policy
	timeout     time.Duration
	maxInFlight int
	rate, burst int // requests a second; 0: unlimited
	ordered     bool
	health      health.Policy
	endpoint    string       // the id as receivers see it
	log         *slog.Logger // knows the endpoint already
}

// newTarget reads an endpoint's configuration. The error is for operators; it names no secret.
func (s *sender) newTarget(l db.Leased, ring *seal.Ring) (*target, error) {
	e := &l.Endpoint
	settings, err := e.OpenSettings(ring)
	if err != nil {
		return nil, fmt.Errorf("what is sealed: %w", err)
	}
	c := s.carriers[settings.Kind]
	if c == nil {
		return nil, fmt.Errorf("kind %q is not known here: a newer process saved it", settings.Kind)
	}
	to, err := c.aim(settings)
	if err != nil {
		return nil, err
	}
	t := &target{
		kind: settings.Kind, to: to, masked: egress.Mask(e.URL), endpoint: endpointID(e.ID),
		timeout: time.Duration(e.TimeoutSeconds) * time.Second, maxInFlight: int(e.MaxInFlight), ordered: e.Ordering != "none",
		health: l.Policy,
		policy: delivery.Policy{Schedule: settings.Schedule(), AcceptConflict: e.AcceptConflict, RetryClientErrors: e.RetryClientErrors},
	}
	if settings.RateLimit != nil {
		t.rate, t.burst = *settings.RateLimit, settings.EffectiveBurst()
	}
	for name, value := range settings.Headers.Values() {
		t.headers = append(t.headers, signature.Header{Name: name, Value: value})
	}
	return t, t.readSecrets(l, ring)
}

func (t *target) readSecrets(l db.Leased, ring *seal.Ring) error {
	e := &l.Endpoint
	t.signing = signature.Signing{Format: signature.Format(e.Format), Prefix: e.Prefix}
	for i, s := range l.Secrets {
		plain, err := ring.Open(s.Sealed, e.TenantID, e.ID)
		if err != nil {
			return fmt.Errorf("secret %d: %w", i, err)
		}
		key, err := signature.ParseKey(t.signing.Format, string(plain))
		if err != nil {
			return fmt.Errorf("secret %d does not fit the format %s", i, e.Format)
		}
		if e.SlotSecretID != nil && s.ID == *e.SlotSecretID {
			t.signing.Slot = i
		}
		t.signing.Keys = append(t.signing.Keys, key)
		var until time.Time
		if s.ExpiresAt != nil {
			until = *s.ExpiresAt
		}
		t.expires = append(t.expires, until)
	}
	return t.signing.Validate()
}

// signingAt leaves out the keys whose overlap has ended since the configuration was read.
func (t *target) signingAt(now time.Time) signature.Signing {
	expired := 0
	for _, until := range t.expires {
		if !until.IsZero() && now.After(until) {
			expired++
		}
	}
	if expired == 0 || expired == len(t.expires) {
		return t.signing
	}
	s := t.signing
	s.Keys, s.Slot = nil, 0
	for i, k := range t.signing.Keys {
		if until := t.expires[i]; until.IsZero() || !now.After(until) {
			if i == t.signing.Slot {
				s.Slot = len(s.Keys)
			}
			s.Keys = append(s.Keys, k)
		}
	}
	return s
}
