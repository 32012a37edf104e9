package endpoint

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/retry"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// These are the fields that are more than a value: what a patch of each means, and how it is shown.

// unquote is a text from JSON; null is empty.
func unquote(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// setOptional sets a text for which null is none. The empty text is refused.
func setOptional(at func(*Settings) *string, empty error) func(*Settings, json.RawMessage) error {
	return func(s *Settings, raw json.RawMessage) error {
		if string(raw) == `""` {
			return empty
		}
		*at(s) = unquote(raw)
		return nil
	}
}

func formatOptions() (out []Option) {
	words := map[signature.Format]string{
		signature.Standard: "Standard Webhooks",
		signature.XWebhook: "X-Webhook headers",
		signature.TV1:      "t=…,v1=… in one header",
		signature.BodyHex:  "Hex signature of the body",
		signature.Raw:      "Raw data with a hex signature",
	}
	for _, f := range signature.Formats() {
		out = append(out, Option{Value: string(f), Label: words[f] + " (" + string(f) + ")"})
	}
	return out
}

func setPreset(s *Settings, raw json.RawMessage) error {
	preset, ok := signature.PresetNamed(unquote(raw))
	if !ok {
		return fault.InvalidField("preset", "preset_unknown", "There is no such preset. Use one of "+strings.Join(signature.PresetNames(), ", ")+".")
	}
	s.SetPreset(preset)
	return nil
}

// setTransformation replaces the transformation; null removes it. A variable whose value is the marker keeps it, as
// long as what is sent goes to the same host: who can change an endpoint must not learn its secrets by sending them
// elsewhere.
func setTransformation(s *Settings, raw json.RawMessage) error {
	before := s.Transformation
	after, err := transform.Parse(raw)
	if err != nil {
		return err
	}
	after.KeepVariables(before)
	s.Transformation = after
	return nil
}

// keepVariables refuses to send the variables that are stored to another host than they were given for. given: the
// change has a new transformation. A value that was sent again is anybody's to send anywhere.
func (s *Settings) keepVariables(before Settings, given json.RawMessage) error {
	if s.Transformation == nil || before.Transformation == nil || len(before.Transformation.Variables) == 0 || origin(s.URL) == origin(before.URL) {
		return nil
	}
	var sent *transform.Transformation
	if given != nil {
		sent, _ = transform.Parse(given) // it was parsed before
	}
	for name, value := range s.Transformation.Variables {
		if kept := before.Transformation.Variables[name]; kept != "" && kept == value && (sent == nil || sent.Variables[name] == Marker) {
			return fault.InvalidField("transformation.variables."+name, "transformation_invalid",
				"Send the value of "+name+" again. The stored one is kept only if the URL's host stays the same.")
		}
	}
	return nil
}

// setURL sets the URL. A masked URL, as a list shows it, means the present one.
func setURL(s *Settings, raw json.RawMessage) error {
	url := unquote(raw)
	if s.Kind.Broker() && url != s.URL {
		return fault.InvalidField("url", "endpoint_url_refused", fmt.Sprintf(
			"The URL of a %[1]s endpoint is derived from its connection. Leave url out, and change %[1]s.", s.Kind))
	}
	if url != egress.Mask(s.URL) || s.URL == "" {
		s.URL = url
	}
	return nil
}

// setKafka changes an endpoint's connection. A stored password is never sent to another destination: it has to be given
// again.
func setKafka(s *Settings, raw json.RawMessage) error {
	before, _ := s.Connection.(*KafkaConnection)
	after := &KafkaConnection{TLS: true}
	if before != nil {
		after = before.Clone().(*KafkaConnection)
	}
	if after.SASL != nil {
		after.SASL.Password = ""
	}
	given := struct {
		Servers *[]string       `json:"bootstrap_servers"`
		Topic   *string         `json:"topic"`
		TLS     *bool           `json:"tls"`
		CA      json.RawMessage `json:"ca_certificate"`
		SASL    json.RawMessage `json:"sasl"`
	}{Servers: &after.Servers, Topic: &after.Topic, TLS: &after.TLS}
	if err := s.readConnection(Kafka, "kafka_unwanted", raw, &given); err != nil {
		return err
	}
	if len(given.CA) > 0 {
		after.CA = unquote(given.CA) // null: none
	}
	if len(given.SASL) > 0 {
		after.SASL = nil
		_ = json.Unmarshal(given.SASL, &after.SASL) // null: none
	}
	s.Connection = after
	return before.Keep(after)
}

// showKafka is the connection without the password.
func showKafka(s Settings) any {
	k, ok := s.Connection.(*KafkaConnection)
	if !ok {
		return nil
	}
	out := map[string]any{"bootstrap_servers": k.Servers, "topic": k.Topic, "tls": k.TLS, "ca_certificate": nil, "sasl": nil}
	if k.CA != "" {
		out["ca_certificate"] = k.CA
	}
	if k.SASL != nil {
		out["sasl"] = map[string]string{"mechanism": k.SASL.Mechanism, "username": k.SASL.Username}
	}
	return out
}

// setWire reads what the endpoint changes about its format. A second signature keeps its secret if none is given.
func setWire(s *Settings, raw json.RawMessage) error {
	s.Shape = nil
	var secret struct {
		AlsoSign *struct {
			Secret json.RawMessage `json:"secret"`
		} `json:"also_sign"`
	}
	if json.Unmarshal(raw, &s.Shape) != nil || json.Unmarshal(raw, &secret) != nil {
		return fault.InvalidField("wire", "body_malformed", "wire has another shape.")
	}
	switch also := secret.AlsoSign; {
	case also == nil:
		s.AlsoSecret = ""
	case len(also.Secret) > 0:
		s.AlsoSecret = unquote(also.Secret) // null: none
	}
	if s.Shape.IsZero() {
		s.Shape = nil
	} else if s.Shape.AlsoSign != nil {
		s.Shape.AlsoSign.OwnSecret = s.AlsoSecret != ""
	}
	return nil
}

// RetryPolicy is a schedule as JSON has it.
type RetryPolicy struct {
	Name   *string  `json:"name"`
	Delays *[]int   `json:"delays"` // seconds
	Jitter *float64 `json:"jitter"`
	Spread *string  `json:"spread"`
}

// The ways in which a wait varies.
const (
	SpreadBoth = "both" // by plus or minus the jitter
	SpreadFull = "full" // evenly, from nothing up to the whole delay
)

// Retries is the schedule in effect.
func (s Settings) Retries() RetryPolicy {
	schedule := s.Schedule()
	delays, spread := make([]int, len(schedule.Delays)), SpreadBoth
	for i, d := range schedule.Delays {
		delays[i] = int(d / time.Second)
	}
	if schedule.Full {
		schedule.Jitter, spread = 1, SpreadFull
	}
	return RetryPolicy{Name: &schedule.Name, Delays: &delays, Jitter: &schedule.Jitter, Spread: &spread}
}

func setRetries(s *Settings, raw json.RawMessage) error {
	var p RetryPolicy
	if err := json.Unmarshal(raw, &p); err != nil {
		return fault.InvalidField("retry_policy", "body_malformed", "retry_policy has another shape.")
	}
	return s.SetRetries(p)
}

// SetRetries reads a retry policy: a name, or custom delays without a name. A jitter or a spread alone changes that of
// a custom policy.
func (s *Settings) SetRetries(p RetryPolicy) error {
	was := s.RetryPolicy
	switch {
	case p.Name != nil:
		s.RetryPolicy = *p.Name
	case p.Delays != nil:
		s.RetryPolicy = Custom
	}
	if s.RetryPolicy == Custom && was != Custom && p.Delays == nil {
		return fault.InvalidField(
			"retry_policy.delays",
			"retry_delays_count",
			"A custom schedule needs delays. Use an empty list for a single attempt.",
		)
	}
	if s.RetryPolicy != was {
		s.RetryDelays, s.RetryJitter, s.RetryFull = nil, nil, false
	}
	if p.Delays != nil {
		s.RetryDelays = *p.Delays
	}
	if p.Jitter != nil {
		s.RetryJitter = p.Jitter
	}
	if p.Spread == nil {
		return nil
	}
	s.RetryFull = *p.Spread == SpreadFull
	switch {
	case !s.RetryFull && *p.Spread != SpreadBoth:
		return fault.InvalidField("retry_policy.spread", "retry_jitter_range", "spread must be both or full.")
	case s.RetryPolicy != Custom && s.RetryFull:
		return fault.InvalidField(
			"retry_policy.spread",
			"retry_jitter_unwanted",
			"A named schedule has its own spread. Leave spread out, or use the name custom.",
		)
	}
	return nil
}

// patchHeaders replaces the custom headers, or marks some of the present ones.
func (s *Settings) patchHeaders(given, marked json.RawMessage) error {
	if len(given) == 0 && len(marked) == 0 {
		return nil
	}
	var sensitive []string
	headers := map[string]*string{}
	for name := range s.Headers {
		headers[name] = nil // not changed
	}
	if len(given) > 0 {
		headers = nil
	}
	for _, part := range []struct {
		raw  json.RawMessage
		into any
	}{{given, &headers}, {marked, &sensitive}} {
		if len(part.raw) > 0 && json.Unmarshal(part.raw, part.into) != nil {
			return fault.InvalidField("custom_headers", "body_malformed", "custom_headers has another shape.")
		}
	}
	replaced, err := s.Headers.Replace(headers, sensitive)
	if err == nil {
		s.Headers = replaced
	}
	return err
}

// Shown are the headers for people and programs; nil is a value that is hidden.
func (h Headers) Shown() map[string]*string {
	out := make(map[string]*string, len(h))
	for name, header := range h {
		if out[name] = nil; !h.Hidden(name) {
			out[name] = &header.Value
		}
	}
	return out
}

// schedule is the schedule of a custom policy.
func (s Settings) schedule() (retry.Schedule, error) {
	delays := make([]time.Duration, len(s.RetryDelays))
	for i, seconds := range s.RetryDelays {
		// Clamped before it is multiplied, which could overflow into the range.
		delays[i] = time.Duration(min(max(seconds, 0), 1<<31)) * time.Second
	}
	own, err := retry.Custom(delays, s.jitter())
	own.Full = s.RetryFull
	return own, err
}
