package api

import (
	"encoding/json"
	"strings"

	"github.com/oapi-codegen/nullable"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/inbox"
	"posthorn/domain/signature"
)

// apply lays the input for a new endpoint over the defaults and validates the result.
func (in EndpointInput) apply(defaults endpoint.Settings, policy egress.Policy) (endpoint.Settings, error) {
	if in.Kind != nil {
		defaults.Kind = endpoint.Kind(*in.Kind)
	}
	if defaults.Kind == endpoint.Inbox {
		defaults = inbox.Settings(defaults)
	}
	return in.patch().apply(defaults, policy)
}

// patch is the input for a new endpoint as a change of the defaults.
func (in EndpointInput) patch() EndpointPatch {
	p := EndpointPatch{
		ExternalID: in.ExternalID, Description: in.Description, EventTypes: in.EventTypes, Filter: in.Filter,
		Channels: in.Channels,
		Format:   in.Format, Prefix: in.Prefix, Preset: in.Preset, TypeField: in.TypeField, RetryPolicy: in.RetryPolicy,
		RetryClientErrors: in.RetryClientErrors,
		TimeoutSeconds:    in.TimeoutSeconds, MaxInFlight: in.MaxInFlight, RateLimit: in.RateLimit, Burst: in.Burst,
		Ordering: in.Ordering, SensitiveHeaders: in.SensitiveHeaders, PayloadVersion: in.PayloadVersion,
		AcceptConflict: in.AcceptConflict, CircuitBreaker: in.CircuitBreaker, SendTraceparent: in.SendTraceparent,
		Verification: in.Verification, WhenHeld: in.WhenHeld, Metadata: in.Metadata,
	}
	if in.URL != "" {
		p.URL = &in.URL
	}
	if in.RotationSignatures != nil {
		p.RotationSignatures = nullable.NewNullableWithValue(*in.RotationSignatures)
	}
	if in.Wire != nil {
		p.Wire = nullable.NewNullableWithValue(*in.Wire)
	}
	if k := in.Kafka; k != nil {
		p.Kafka = &KafkaPatch{
			BootstrapServers: &k.BootstrapServers, Topic: &k.Topic, TLS: k.TLS,
			CACertificate: k.CACertificate, SASL: k.SASL,
		}
	}
	if in.CustomHeaders != nil {
		headers := make(map[string]*string, len(*in.CustomHeaders))
		for name, value := range *in.CustomHeaders {
			headers[name] = &value
		}
		p.CustomHeaders = &headers
	}
	return p
}

// apply changes the given fields of settings and validates the result.
func (p EndpointPatch) apply(s endpoint.Settings, policy egress.Policy) (endpoint.Settings, error) {
	if err := p.lay(&s); err != nil {
		return s, err
	}
	return s.Check(policy)
}

// lay changes the given fields of settings.
func (p EndpointPatch) lay(s *endpoint.Settings) error {
	if err := p.where(s); err != nil {
		return err
	}
	if p.ExternalID.IsSpecified() {
		external, err := p.ExternalID.Get() // null: none
		if err == nil && external == "" {
			return fault.InvalidField("external_id", "external_id_malformed", "An external id is not empty. Give null for none.")
		}
		s.ExternalID = external
	}
	set(&s.Description, p.Description)
	set(&s.EventTypes, p.EventTypes)
	set(&s.Channels, p.Channels)
	set(&s.RetryClientErrors, p.RetryClientErrors)
	set(&s.TimeoutSeconds, p.TimeoutSeconds)
	set(&s.MaxInFlight, p.MaxInFlight)
	set(&s.AcceptConflict, p.AcceptConflict)
	set(&s.CircuitBreaker, p.CircuitBreaker)
	set(&s.SendTraceparent, p.SendTraceparent)
	set(&s.Metadata, p.Metadata)
	if err := p.wire(s); err != nil {
		return err
	}
	if p.Ordering != nil {
		s.Ordering = string(*p.Ordering)
	}
	if p.Verification != nil {
		s.Verification = string(*p.Verification)
	}
	if p.WhenHeld != nil {
		s.WhenHeld = string(*p.WhenHeld)
	}
	if p.Filter.IsSpecified() {
		filter, _ := p.Filter.Get() // null: none
		s.Filter = string(filter)
	}
	if p.PayloadVersion.IsSpecified() {
		version, err := p.PayloadVersion.Get()
		if err == nil && version == "" {
			return fault.InvalidField("payload_version", "payload_version_malformed", "A payload version must not be empty. Use null for any version.")
		}
		s.PayloadVersion = version
	}
	s.RateLimit = p.limit(s.RateLimit, p.RateLimit)
	s.Burst = p.limit(s.Burst, p.Burst)
	if p.RetryPolicy != nil {
		if err := p.RetryPolicy.lay(s); err != nil {
			return err
		}
	}
	return p.headers(s)
}

// where reads the endpoint's URL or topic, and how it is verified, if its kind permits a choice.
func (p EndpointPatch) where(s *endpoint.Settings) error {
	if s.Kind != endpoint.Kafka {
		// A masked URL, as a list shows it, means the present URL.
		if p.URL != nil && (*p.URL != egress.Mask(s.URL) || s.URL == "") {
			s.URL = *p.URL
		}
		if p.Kafka != nil {
			return fault.InvalidField("kafka", "kafka_unwanted", "Only an endpoint of kind kafka can have the field kafka. Leave it out, or create an endpoint of that kind.")
		}
		return nil
	}
	if p.URL != nil && *p.URL != s.URL {
		return fault.InvalidField("url", "endpoint_url_refused", "The URL of a kafka endpoint is derived from its connection. Leave url out, and change kafka.")
	}
	if p.Verification != nil && *p.Verification != VerificationMode("simple") {
		return fault.InvalidField("verification", "verification_unknown", "A kafka endpoint is verified by writing a record, not with a challenge. Leave verification out.")
	}
	if p.Kafka == nil {
		return nil
	}
	return p.Kafka.apply(s)
}

// apply changes an endpoint's connection. A stored password is never sent to another destination: it has to be given
// again.
func (p KafkaPatch) apply(s *endpoint.Settings) error {
	before, _ := s.Connection.(*endpoint.KafkaConnection)
	after := &endpoint.KafkaConnection{TLS: true}
	if before != nil {
		after = before.Clone().(*endpoint.KafkaConnection)
	}
	set(&after.Servers, p.BootstrapServers)
	set(&after.Topic, p.Topic)
	set(&after.TLS, p.TLS)
	if p.CACertificate.IsSpecified() {
		after.CA, _ = p.CACertificate.Get() // null: none
	}
	if p.SASL.IsSpecified() {
		after.SASL = nil
		if in, err := p.SASL.Get(); err == nil {
			after.SASL = &endpoint.SASL{Mechanism: string(in.Mechanism), Username: in.Username}
			set(&after.SASL.Password, in.Password)
		}
	} else if after.SASL != nil {
		after.SASL.Password = ""
	}
	s.Connection = after
	return before.Keep(after)
}

func set[T any](into, from *T) {
	if from != nil {
		*into = *from
	}
}

// limit is a nullable number.
func (p EndpointPatch) limit(present *int, given nullableInt) *int {
	if !given.IsSpecified() {
		return present
	}
	n, err := given.Get()
	if err != nil {
		return nil
	}
	return &n
}

// wire reads how requests are rendered and signed.
func (p EndpointPatch) wire(s *endpoint.Settings) error {
	if p.Preset != nil {
		preset, ok := signature.PresetNamed(string(*p.Preset))
		if !ok {
			return fault.InvalidField("preset", "preset_unknown", "There is no such preset. Use one of "+strings.Join(signature.PresetNames(), ", ")+".")
		}
		s.SetPreset(preset)
	}
	set(&s.Prefix, p.Prefix)
	if p.Format != nil {
		s.SetFormat(signature.Format(*p.Format))
	}
	if p.TypeField != nil {
		s.TypeField = signature.TypeField(*p.TypeField)
	}
	if p.RotationSignatures.IsSpecified() {
		rotation, _ := p.RotationSignatures.Get() // null: the format's default
		s.Rotation = signature.Rotation(rotation)
	}
	if !p.Wire.IsSpecified() {
		return nil
	}
	given, err := p.Wire.Get()
	if err != nil {
		s.Shape, s.AlsoSecret = nil, ""
		return nil
	}
	return given.lay(s)
}

// lay reads the changes of the endpoint's format. A second signature keeps its secret if none is given.
func (in WireSettings) lay(s *endpoint.Settings) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	shape := &signature.Shape{}
	if err := json.Unmarshal(text, shape); err != nil {
		return err
	}
	if also := in.AlsoSign; also == nil {
		s.AlsoSecret = ""
	} else {
		if also.Secret.IsSpecified() {
			s.AlsoSecret, _ = also.Secret.Get() // null: none
		}
		shape.AlsoSign.OwnSecret = s.AlsoSecret != ""
	}
	if s.Shape = shape; shape.IsZero() {
		s.Shape = nil
	}
	return nil
}

// lay reads a retry policy: a name, or custom delays without a name. A jitter alone changes the jitter of a custom
// policy.
func (p RetryPolicyInput) lay(s *endpoint.Settings) error {
	was := s.RetryPolicy
	switch {
	case p.Name != nil:
		s.RetryPolicy = string(*p.Name)
	case p.Delays != nil:
		s.RetryPolicy = endpoint.Custom
	}
	if s.RetryPolicy == endpoint.Custom && was != endpoint.Custom && p.Delays == nil {
		return fault.InvalidField("retry_policy.delays", "retry_delays_count",
			"A custom schedule needs delays. Use an empty list for a single attempt.")
	}
	if p.Delays != nil {
		s.RetryDelays = *p.Delays
	} else if s.RetryPolicy != was {
		s.RetryDelays = nil
	}
	if p.Jitter != nil {
		s.RetryJitter = p.Jitter
	} else if s.RetryPolicy != was {
		s.RetryJitter = nil
	}
	return nil
}

func (p EndpointPatch) headers(s *endpoint.Settings) error {
	if p.CustomHeaders == nil && p.SensitiveHeaders == nil {
		return nil
	}
	var sensitive []string
	if p.SensitiveHeaders != nil {
		sensitive = append([]string{}, *p.SensitiveHeaders...)
	}
	given := map[string]*string{}
	if p.CustomHeaders != nil {
		given = *p.CustomHeaders
	} else {
		for name := range s.Headers {
			given[name] = nil // not changed
		}
	}
	headers, err := s.Headers.Replace(given, sensitive)
	if err != nil {
		return err
	}
	s.Headers = headers
	return nil
}

// newSecret creates the requested secret, or imports the given one.
func newSecret(w signature.Wire, wanted *SecretType, given *string, byDefault endpoint.SecretType,
	random [32]byte,
) (endpoint.Secret, error) {
	kind := byDefault
	if wanted != nil {
		kind = endpoint.SecretType(*wanted)
	}
	if given == nil {
		return endpoint.NewSecret(w.Format, kind, random)
	}
	secret, err := endpoint.ImportSecret(w, *given)
	if err == nil && wanted != nil && kind != typeOf(secret.Public) {
		return endpoint.Secret{}, fault.InvalidField("secret_type", "secret_type_refused",
			"The secret doesn't have this type. Leave secret_type out.")
	}
	return secret, err
}

// typeOf recognizes a key pair by its public half.
func typeOf(public string) endpoint.SecretType {
	if public != "" {
		return endpoint.Ed25519
	}
	return endpoint.HMAC
}
