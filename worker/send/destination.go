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
	"posthorn/domain/transform"
)

// Destination is an immutable snapshot of everything that a delivery to an endpoint needs.
type Destination struct {
	Endpoint string // the external id
	Masked   string // the URL for logs and attempts, without the values of its query
	// ProxyOwner is the tenant whose proxy requests go through, or zero: the platform.
	ProxyOwner id.UUID

	kind      endpoint.Kind
	to        any // the address in the transport's own form
	signing   signature.Signing
	expires   []time.Time // of the signing keys, zero for none; parallel to signing.Keys
	typeField signature.TypeField
	bare      bool                // the body is the data alone
	also      *signature.AlsoSign // nil: requests have one signature
	public    endpoint.PublicSignature
	signers   []httpsig.Signer // of the tenant, newest first; none unless public asks for them
	dedupe    string           // the header by which receivers recognize what they have handled
	taken     bool             // the format or a custom header has a name that HTTP Message Signatures need
	wire      string           // how requests are rendered, as stored with attempts
	headers   []signature.Header
	timeout   time.Duration
	large     bool            // it accepts a link in the place of large data
	traced    bool            // requests carry the context of the event's trace
	batch     *endpoint.Batch // several events share a request; nil: each has its own

	transformations transform.Versions // nil: it never had one
	shape           signature.Wire     // of which wire is the text
}

// Kind is the endpoint's kind.
func (t *Destination) Kind() endpoint.Kind { return t.kind }

// NewDestination reads an endpoint's configuration; settings are those of l, opened. The error is for operators and
// contains no secret.
func (s *Sender) NewDestination(l queue.Leased, settings endpoint.Settings, ring *seal.Ring) (*Destination, error) {
	e := &l.Endpoint
	f := endpoints.Facts{Endpoint: id.Endpoint.Format(e.ID), Settings: settings}
	for i, secret := range l.Secrets {
		plain, err := ring.Open(secret.Sealed, e.TenantID, e.ID)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i, err)
		}
		own := endpoints.Secret{Text: string(plain)}
		if secret.ExpiresAt != nil {
			own.Until = *secret.ExpiresAt
		}
		if e.SlotSecretID != nil && secret.ID == *e.SlotSecretID {
			f.Slot = i
		}
		f.Secrets = append(f.Secrets, own)
	}
	var err error
	if settings.Public.Signed() {
		if f.Signers, err = endpoints.OpenSigners(l.Keys, ring); err != nil {
			return nil, fmt.Errorf("signing keys: %w", err)
		}
	}
	if f.Proxy, err = endpoints.OpenProxy(l.Proxies, ring, e.TenantID); err != nil {
		return nil, fmt.Errorf("egress proxy: %w", err)
	}
	transport := s.transports[settings.Kind]
	if transport == nil {
		return nil, fmt.Errorf("kind %q is not known here: a newer process saved it", settings.Kind)
	}
	to, err := newDestination(f, transport)
	if err != nil || len(l.Transformations) == 0 {
		return to, err
	}
	if to.transformations, err = endpoints.OpenTransformations(l.Transformations, ring); err != nil {
		return nil, fmt.Errorf("transformation: %w", err)
	}
	return to, nil
}

// newDestination is the one way to a destination, for deliveries and tests of connections.
func newDestination(f endpoints.Facts, transport transport) (*Destination, error) {
	settings := f.Settings
	to, err := transport.configure(settings, f.Proxy)
	if err != nil {
		return nil, err
	}
	d := &Destination{
		Endpoint:  f.Endpoint,
		Masked:    egress.Mask(settings.URL),
		kind:      settings.Kind,
		to:        to,
		timeout:   time.Duration(settings.TimeoutSeconds) * time.Second,
		traced:    settings.SendTraceparent,
		batch:     settings.Batch(),
		large:     settings.LargePayloads == endpoint.LinkLarge,
		typeField: settings.TypeField,
		headers:   fixedHeaders(settings),
		public:    settings.Public,
		signers:   f.Signers,
		dedupe:    settings.Wire().DedupeHeader(),
		taken:     slices.ContainsFunc(append(settings.Wire().HeaderNames(), settings.Headers.Names()...), httpsig.IsField),
	}
	if f.Proxy != nil {
		d.ProxyOwner = f.Proxy.Owner
	}
	return d, d.readSecrets(f)
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

func (t *Destination) readSecrets(f endpoints.Facts) error {
	settings := f.Settings
	t.signing = signature.Signing{
		Format:   settings.Format,
		Prefix:   settings.Prefix,
		Rotation: settings.Rotation,
		Shape:    settings.Shape,
		Slot:     f.Slot,
	}
	t.signing.Prepare()
	wire := t.signing.Wire(signature.Message{TypeField: t.typeField})
	t.shape = wire
	t.wire, t.bare, t.typeField = wire.String(), wire.Bare(), wire.Field()
	for i, s := range f.Secrets {
		key, err := wire.ParseKey(s.Text)
		if err != nil {
			return fmt.Errorf("secret %d does not fit the format %s", i, settings.Format)
		}
		t.signing.Keys = append(t.signing.Keys, key)
		t.expires = append(t.expires, s.Until)
	}
	if settings.Shape != nil && settings.Shape.AlsoSign != nil {
		t.also = settings.Shape.AlsoSign
		newest := ""
		if t.also.OwnSecret {
			newest = settings.AlsoSecret
		} else if len(f.Secrets) > 0 {
			newest = f.Secrets[0].Text
		}
		t.signing.Also = signature.SignAlso(t.also, newest)
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
	if s.Also != nil && t.also.Ended(now) {
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
