package endpoints

import (
	"encoding/json"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// OpenSettings are the settings of a stored endpoint, with its custom headers and its connection opened.
func OpenSettings(e sql.Endpoint, ring *seal.Ring) (endpoint.Settings, error) {
	headers, err := Headers(e, ring)
	if err != nil {
		return endpoint.Settings{}, err
	}
	s := bareSettings(e)
	s.Headers = headers
	if s.Connection, err = openConnection(e, ring); err != nil {
		return s, err
	}
	if err := openCredentials(e, ring, &s); err != nil {
		return s, err
	}
	s.AlsoSecret, err = openAlsoSecret(e, ring)
	return s, err
}

// openAlsoSecret is the secret of the second signature; empty: it has none of its own.
func openAlsoSecret(e sql.Endpoint, ring *seal.Ring) (string, error) {
	if len(e.AlsoSecret) == 0 {
		return "", nil
	}
	text, err := ring.Open(e.AlsoSecret, e.TenantID, e.ID)
	if err != nil {
		return "", db.Unopened(err)
	}
	return string(text), nil
}

func openConnection(e sql.Endpoint, ring *seal.Ring) (endpoint.Connection, error) {
	if len(e.Connection) == 0 {
		return nil, nil
	}
	text, err := ring.Open(e.Connection, e.TenantID, e.ID)
	if err != nil {
		return nil, db.Unopened(err)
	}
	c, err := endpoint.Kind(e.Kind).ReadConnection(text)
	if err != nil {
		return nil, db.Unopened(err)
	}
	return c, nil
}

// credentials are what an endpoint authenticates with, as they are sealed.
type credentials struct {
	Auth      *endpoint.Auth      `json:"auth,omitempty"`
	TLS       *endpoint.ClientTLS `json:"tls,omitempty"`
	Variables map[string]string   `json:"variables,omitempty"` // of the transformation
}

func openCredentials(e sql.Endpoint, ring *seal.Ring, s *endpoint.Settings) error {
	if len(e.Credentials) == 0 {
		return nil
	}
	text, err := ring.Open(e.Credentials, e.TenantID, e.ID)
	if err != nil {
		return db.Unopened(err)
	}
	var c credentials
	if err := json.Unmarshal(text, &c); err != nil {
		return db.Unopened(err)
	}
	s.Auth, s.TLS = c.Auth, c.TLS
	if s.Transformation != nil {
		s.Transformation.Variables = c.Variables
	}
	return nil
}

// Wire describes how the endpoint's requests are rendered now.
func Wire(e sql.Endpoint) signature.Wire {
	return signature.Wire{
		Format:    signature.Format(e.Format),
		Prefix:    e.Prefix,
		TypeField: signature.TypeField(e.TypeField),
		Shape:     shapeOf(e),
	}
}

// shapeOf is what the endpoint changes about its format; nil: nothing.
func shapeOf(e sql.Endpoint) *signature.Shape {
	if len(e.Wire) == 0 {
		return nil
	}
	shape := &signature.Shape{}
	_ = json.Unmarshal(e.Wire, shape) // written by settingsRow alone
	return shape
}

// transformationOf is a stored transformation with its variables marked; nil: none.
func transformationOf(stored []byte) *transform.Transformation {
	if len(stored) == 0 {
		return nil
	}
	t := &transform.Transformation{}
	_ = json.Unmarshal(stored, t) // written by marked alone
	return t
}

// marked is a transformation as it is stored, with the names of its variables and without their values; nil: none.
func marked(t *transform.Transformation) []byte {
	if t == nil {
		return nil
	}
	return encode(t.Shown())
}

// Headers opens an endpoint's custom headers.
func Headers(e sql.Endpoint, ring *seal.Ring) (endpoint.Headers, error) {
	if len(e.CustomHeaders) == 0 {
		return endpoint.Headers{}, nil
	}
	text, err := ring.Open(e.CustomHeaders, e.TenantID, e.ID)
	if err != nil {
		return nil, db.Unopened(err)
	}
	h, err := endpoint.DecodeHeaders(text, e.SensitiveHeaders)
	if err != nil {
		return nil, db.Unopened(err)
	}
	return h, nil
}

// bareSettings returns the settings of a stored endpoint without the sealed ones.
func bareSettings(e sql.Endpoint) endpoint.Settings {
	s := endpoint.Settings{
		Kind:              endpoint.Kind(e.Kind),
		URL:               e.URL,
		Description:       e.Description,
		EventTypes:        e.EventTypes,
		Channels:          e.Channels,
		Format:            signature.Format(e.Format),
		Prefix:            e.Prefix,
		TypeField:         signature.TypeField(e.TypeField),
		Rotation:          signature.Rotation(e.RotationSignatures),
		RetryPolicy:       e.RetryPolicy,
		RetryJitter:       e.RetryJitter,
		RetryFull:         e.RetryFull,
		RetryClientErrors: e.RetryClientErrors,
		TimeoutSeconds:    int(e.TimeoutSeconds),
		MaxInFlight:       int(e.MaxInFlight),
		RateLimit:         toInt(e.RateLimit),
		Burst:             toInt(e.Burst),
		Ordering:          e.Ordering,
		AcceptConflict:    e.AcceptConflict,
		CircuitBreaker:    e.CircuitBreaker,
		SendTraceparent:   e.SendTraceparent,
		Verification:      e.Verification,
		WhenHeld:          e.WhenHeld,
		LargePayloads:     e.LargePayloads,
		Headers:           endpoint.Headers{},
		Metadata:          map[string]string{},
		Shape:             shapeOf(e),
		Public:            endpoint.PublicSignature(e.PublicSignature),
		ExpiresAfter:      toInt(e.ExpiresAfterSeconds),
		BatchEvents:       toInt(e.BatchMaxEvents),
		BatchWait:         toInt(e.BatchMaxWaitMs),
		BatchBytes:        toInt(e.BatchMaxBytes),
		Transformation:    transformationOf(e.Transformation),
	}
	for _, seconds := range e.RetryDelays {
		s.RetryDelays = append(s.RetryDelays, int(seconds))
	}
	if e.Filter != nil {
		s.Filter = *e.Filter
	}
	if e.ExternalID != nil {
		s.ExternalID = *e.ExternalID
	}
	if e.PayloadVersion != nil {
		s.PayloadVersion = *e.PayloadVersion
	}
	_ = json.Unmarshal(e.Metadata, &s.Metadata) // written by encodeMetadata alone
	return s
}

// settingsRow converts validated settings to columns, so the numbers fit.
func settingsRow(ring *seal.Ring, tenant, endpointID id.UUID, s endpoint.Settings) sql.StoreEndpointParams {
	p := sql.StoreEndpointParams{
		TenantID:            tenant,
		ID:                  endpointID,
		Kind:                string(s.Kind),
		URL:                 s.URL,
		Description:         s.Description,
		EventTypes:          s.EventTypes,
		Filter:              db.TextOrNull(s.Filter),
		Channels:            s.Channels,
		Format:              string(s.Format),
		Prefix:              s.Prefix,
		TypeField:           string(s.TypeField),
		RotationSignatures:  string(s.Rotation),
		RetryPolicy:         s.RetryPolicy,
		RetryJitter:         s.RetryJitter,
		RetryFull:           s.RetryFull,
		RetryClientErrors:   s.RetryClientErrors,
		TimeoutSeconds:      int32(s.TimeoutSeconds),
		MaxInFlight:         int32(s.MaxInFlight),
		RateLimit:           toInt32(s.RateLimit),
		Burst:               toInt32(s.Burst),
		Ordering:            s.Ordering,
		PayloadVersion:      db.TextOrNull(s.PayloadVersion),
		AcceptConflict:      s.AcceptConflict,
		CircuitBreaker:      s.CircuitBreaker,
		SendTraceparent:     s.SendTraceparent,
		Verification:        s.Verification,
		WhenHeld:            s.WhenHeld,
		LargePayloads:       s.LargePayloads,
		Metadata:            encodeMetadata(s.Metadata),
		SensitiveHeaders:    s.Headers.Marked(),
		ExternalID:          db.TextOrNull(s.ExternalID),
		PublicSignature:     string(s.Public),
		ExpiresAfterSeconds: toInt32(s.ExpiresAfter),
		BatchMaxEvents:      toInt32(s.BatchEvents),
		BatchMaxWaitMs:      toInt32(s.BatchWait),
		BatchMaxBytes:       toInt32(s.BatchBytes),
	}
	if p.Channels == nil {
		p.Channels = []string{}
	}
	for _, seconds := range s.RetryDelays {
		p.RetryDelays = append(p.RetryDelays, int32(seconds))
	}
	if text := s.Headers.Encode(); text != nil {
		p.CustomHeaders = ring.Seal(text, tenant, endpointID)
	}
	if !s.Shape.IsZero() {
		p.Wire = encode(s.Shape)
	}
	if s.AlsoSecret != "" {
		p.AlsoSecret = ring.Seal([]byte(s.AlsoSecret), tenant, endpointID)
	}
	c := credentials{Auth: s.Auth, TLS: s.TLS}
	if p.Transformation = marked(s.Transformation); s.Transformation != nil {
		c.Variables = s.Transformation.Variables
	}
	if c.Auth != nil || c.TLS != nil || len(c.Variables) > 0 {
		p.Credentials = ring.Seal(encode(c), tenant, endpointID)
		if ends := s.TLS.Ends(); !ends.IsZero() {
			p.CertificateEndsAt = &ends
		}
	}
	if s.Connection != nil {
		p.Connection = ring.Seal(encode(s.Connection), tenant, endpointID)
	}
	return p
}

func toInt(n *int32) *int {
	if n == nil {
		return nil
	}
	m := int(*n)
	return &m
}

func toInt32(n *int) *int32 {
	if n == nil {
		return nil
	}
	m := int32(*n)
	return &m
}
