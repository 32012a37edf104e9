package send

import (
	"fmt"
	"slices"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Destination is an immutable snapshot of everything that a delivery to an endpoint needs.
type Destination struct {
	Endpoint string // the external id
	Masked   string // the URL for logs and attempts, without the values of its query

	kind      endpoint.Kind
	to        any // the address in the transport's own form
	signing   signature.Signing
	expires   []time.Time // of the signing keys, zero for none; parallel to signing.Keys
	typeField signature.TypeField
	bare      bool      // the body is the data alone
	alsoUntil time.Time // when the second signature ends; zero for never
	public    endpoint.PublicSignature
	signers   []httpsig.Signer // of the tenant, newest first; none unless public asks for them
	dedupe    string           // the header by which receivers recognize what they have handled
	taken     bool             // the format or a custom header has a name that HTTP Message Signatures need
	wire      string           // how requests are rendered, as stored with attempts
	headers   []signature.Header
	timeout   time.Duration
	traced    bool // requests carry the context of the event's trace
}

// NewDestination reads an endpoint's configuration; settings are those of l, opened. The error is for operators and
// contains no secret.
func (s *Sender) NewDestination(l queue.Leased, settings endpoint.Settings, ring *seal.Ring) (*Destination, error) {
	e := &l.Endpoint
	transport := s.transports[settings.Kind]
	if transport == nil {
		return nil, fmt.Errorf("kind %q is not known here: a newer process saved it", settings.Kind)
	}
	to, err := transport.configure(settings)
	if err != nil {
		return nil, err
	}
	d := &Destination{
		Endpoint: id.Endpoint.Format(e.ID),
		Masked:   egress.Mask(e.URL),
		kind:     settings.Kind,
		to:       to,
		timeout:  time.Duration(e.TimeoutSeconds) * time.Second,
		traced:   settings.SendTraceparent,
	}
	d.headers = fixedHeaders(settings)
	if d.public = settings.Public; d.public.Signed() {
		if d.signers, err = endpoints.OpenSigners(l.Keys, ring); err != nil {
			return nil, fmt.Errorf("signing keys: %w", err)
		}
	}
	d.dedupe = settings.Wire().DedupeHeader()
	d.taken = slices.ContainsFunc(append(settings.Wire().HeaderNames(), settings.Headers.Names()...), httpsig.IsField)
	return d, d.readSecrets(l, settings, ring)
}

// fixedHeaders are those that all requests to an endpoint have.
func fixedHeaders(s endpoint.Settings) (all []signature.Header) {
	for name, value := range s.Headers.Values() {
		all = append(all, signature.Header{Name: name, Value: value})
	}
	if a := s.Auth; a != nil && !a.Tokens() {
		all = append(all, signature.Header{Name: a.HeaderName(), Value: a.HeaderValue()})
	}
	return all
}

func (t *Destination) readSecrets(l queue.Leased, settings endpoint.Settings, ring *seal.Ring) error {
	e := &l.Endpoint
	t.signing = signature.Signing{
		Format:   signature.Format(e.Format),
		Prefix:   e.Prefix,
		Rotation: signature.Rotation(e.RotationSignatures),
		Shape:    settings.Shape,
	}
	t.signing.Prepare()
	t.typeField = signature.TypeField(e.TypeField)
	wire := t.signing.Wire(signature.Message{TypeField: t.typeField})
	t.wire, t.bare, t.typeField = wire.String(), wire.Bare(), wire.Field()
	newest := ""
	for i, s := range l.Secrets {
		plain, err := ring.Open(s.Sealed, e.TenantID, e.ID)
		if err != nil {
			return fmt.Errorf("secret %d: %w", i, err)
		}
		if i == 0 {
			newest = string(plain)
		}
		key, err := wire.ParseKey(string(plain))
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
	if settings.Shape != nil && settings.Shape.AlsoSign != nil {
		also := settings.Shape.AlsoSign
		if also.OwnSecret {
			newest = settings.AlsoSecret
		}
		if also.Until != nil {
			t.alsoUntil = *also.Until
		}
		t.signing.Also = signature.SignAlso(also, newest)
	}
	return t.signing.Validate()
}

// signingAt leaves out the keys whose overlap has ended since the configuration was read.
func (t *Destination) signingAt(now time.Time) signature.Signing {
	s := t.signing
	if t.public.V1a() {
		if signer := httpsig.Current(t.signers, now); signer != nil {
			s.Public = signer.Webhooks()
		}
	}
	expired := 0
	for _, until := range t.expires {
		if !until.IsZero() && now.After(until) {
			expired++
		}
	}
	if s.Also != nil && !t.alsoUntil.IsZero() && now.After(t.alsoUntil) {
		s.Also = nil
	}
	if expired == 0 || expired == len(t.expires) {
		return s
	}
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
