package api

import (
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/retry"
)

type nullableInt = nullable.Nullable[int]

// endpointCreated is EndpointCreated of the contract, which extends Endpoint.
type endpointCreated struct {
	Endpoint
	Secret    string                    `json:"secret"`
	PublicKey nullable.Nullable[string] `json:"public_key"`
}

// maskedView is an endpoint in a list: the values of its URL's query are masked.
func maskedView(e endpoints.Full, now time.Time) Endpoint {
	v := endpointView(e, now)
	v.URL = egress.Mask(v.URL)
	return v
}

// endpointView is a single endpoint. Write-only headers are null.
func endpointView(e endpoints.Full, now time.Time) Endpoint {
	s := e.Settings
	v := Endpoint{
		ID: id.Endpoint.Format(e.ID), ExternalID: orNullText(s.ExternalID), Kind: EndpointKind(s.Kind), URL: s.URL,
		Kafka: kafkaView(s), Description: s.Description, EventTypes: orEmpty(s.EventTypes),
		Channels: orEmpty(s.Channels), Format: Format(s.Format), Prefix: s.Prefix, TypeField: TypeField(s.TypeField),
		RotationSignatures: RotationSignatures(s.Format.Rotation(s.Rotation)), RetryClientErrors: s.RetryClientErrors,
		TimeoutSeconds: s.TimeoutSeconds, MaxInFlight: s.MaxInFlight, RateLimit: orNull(s.RateLimit),
		Burst:    orNullZero(s.EffectiveBurst()),
		Ordering: Ordering(s.Ordering), PayloadVersion: orNullText(s.PayloadVersion), AcceptConflict: s.AcceptConflict,
		CircuitBreaker: s.CircuitBreaker, SendTraceparent: s.SendTraceparent,
		Verification: VerificationMode(s.Verification), WhenHeld: WhenHeld(s.WhenHeld), Metadata: s.Metadata,
		Status:       EndpointStatus(e.Status),
		StatusReason: e.StatusReason, StatusAt: Time(e.StatusAt), VerifiedAt: orNullAt(e.VerifiedAt),
		CreatedAt: Time(e.CreatedAt),
		UpdatedAt: Time(e.UpdatedAt), CustomHeaders: make(map[string]*string, len(s.Headers)),
		SensitiveHeaders: s.Headers.Marked(), Filter: nullable.NewNullNullable[Filter](),
		LastVerification: nullable.NewNullNullable[Verification](),
	}
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	for name, h := range s.Headers {
		v.CustomHeaders[name] = nil
		if !s.Headers.Hidden(name) {
			v.CustomHeaders[name] = &h.Value
		}
	}
	v.Wire = wireView(s)
	if s.Filter != "" {
		v.Filter = nullable.NewNullableWithValue(json.RawMessage(s.Filter))
	}
	v.RetryPolicy = scheduleView(s.Schedule())
	if e.Verification != nil {
		v.LastVerification = nullable.NewNullableWithValue(verificationView(*e.Verification))
	}
	v.Health, v.Condition = endpointHealth(e, now), conditionView(e.Condition(now))
	return v
}

// wireView is the endpoint's changes of its format.
func wireView(s endpoint.Settings) nullable.Nullable[WireSettings] {
	var v WireSettings
	text, err := json.Marshal(s.Shape)
	if s.Shape == nil || err != nil || json.Unmarshal(text, &v) != nil {
		return nullable.NewNullNullable[WireSettings]()
	}
	return nullable.NewNullableWithValue(v)
}

// conditionView is the endpoint's condition.
func conditionView(c condition.Condition) EndpointCondition {
	v := EndpointCondition{
		State: EndpointState(c.State), Detail: c.Detail(), Cause: orNullText(c.Cause),
		PausedScope: orNullText(string(c.Scope)),
		Since:       orNullTime(c.Since), Until: orNullTime(c.Until),
		NextProbeAt: orNullTime(c.NextProbeAt), DisableAt: orNullTime(c.DisableAt),
		Waiting: int(c.Held), WaitingExact: !c.HeldAtLeast, Actions: []EndpointConditionActions{},
	}
	for _, a := range c.Actions() {
		v.Actions = append(v.Actions, EndpointConditionActions(a))
	}
	return v
}

// scheduleView is the schedule in effect.
func scheduleView(s retry.Schedule) RetryPolicy {
	v := RetryPolicy{Name: RetryPolicyName(s.Name), Delays: []int{}, Jitter: s.Jitter}
	if s.Full {
		v.Jitter = 1
	}
	for _, d := range s.Delays {
		v.Delays = append(v.Delays, int(d/time.Second))
	}
	return v
}

// orNullZero is null for 0.
func orNullZero(n int) nullableInt {
	if n == 0 {
		return nullable.NewNullNullable[int]()
	}
	return nullable.NewNullableWithValue(n)
}

// kafkaView is the endpoint's topic, without the password.
func kafkaView(s endpoint.Settings) nullable.Nullable[Kafka] {
	k, ok := s.Connection.(*endpoint.KafkaConnection)
	if !ok {
		return nullable.NewNullNullable[Kafka]()
	}
	v := Kafka{
		BootstrapServers: k.Servers, Topic: k.Topic, TLS: k.TLS, CACertificate: orNullText(k.CA),
		SASL: nullable.NewNullNullable[KafkaSASL](),
	}
	if k.SASL != nil {
		v.SASL = nullable.NewNullableWithValue(KafkaSASL{
			Mechanism: KafkaMechanism(k.SASL.Mechanism),
			Username:  k.SASL.Username,
		})
	}
	return nullable.NewNullableWithValue(v)
}

// endpointHealth is the endpoint's health, with the countdown if it is about to be disabled.
func endpointHealth(e endpoints.Full, now time.Time) EndpointHealth {
	r := e.Health
	v := EndpointHealth{
		ConsecutiveFailures: int(r.ConsecutiveFailures), AuthStreak: int(r.AuthStreak), Exhausted: int(r.Exhausted),
		FirstFailureAt: orNullAt(r.FirstFailureAt), LastFailureAt: orNullAt(r.LastFailureAt),
		LastSuccessAt: orNullAt(r.LastSuccessAt),
		DisableAt:     nullable.NewNullNullable[Time](), DisableReason: nullable.NewNullNullable[DisableReason](),
		Warnings: []EndpointWarning{}, HeldExact: true,
		Breaker: Breaker{
			State:    BreakerState(endpoints.Breaker(r.EndpointHealth).At(now).String()),
			OpenedAt: orNullAt(r.OpenedAt), NextProbeAt: orNullAt(r.NextProbeAt),
		},
	}
	if health.Holds(endpoint.Status(e.Status)) {
		v.Held, v.HeldExact = int(r.Held), r.HeldExact
		return v
	}
	verdict := endpoints.Verdict(r.EndpointHealth, r.Policy, now)
	if !verdict.DisableAt.IsZero() {
		v.DisableAt, v.DisableReason = orNullTime(verdict.DisableAt),
			nullable.NewNullableWithValue(DisableReason(verdict.Reason))
	}
	for _, w := range verdict.Warn {
		warning := EndpointWarning{
			Reason: DisableReason(w.Reason), Stage: EndpointWarningStage(w.Stage), FailuresLeft: w.Left,
			Detail: r.Policy.Sentence(w.Reason), DisableAt: nullable.NewNullNullable[Time](),
		}
		if !w.DisableAt.IsZero() {
			warning.DisableAt = orNullTime(w.DisableAt)
		}
		v.Warnings = append(v.Warnings, warning)
	}
	return v
}

func verificationView(v sql.Verification) Verification {
	out := Verification{
		State: VerificationState(v.State), Tries: int(v.Tries), RequestedAt: Time(v.RequestedAt),
		DoneAt: orNullAt(v.DoneAt), LastDetail: v.LastDetail, LastStatus: nullable.NewNullNullable[int](),
	}
	if v.LastStatus != nil && *v.LastStatus != 0 {
		out.LastStatus = nullable.NewNullableWithValue(int(*v.LastStatus))
	}
	return out
}

// orNullText is null for an empty text.
func orNullText(text string) nullable.Nullable[string] {
	if text == "" {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(text)
}
