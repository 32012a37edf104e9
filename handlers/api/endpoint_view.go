package api

import (
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// endpointCreated is EndpointCreated of the contract, which extends Endpoint.
type endpointCreated struct {
	// In the place of the endpoint's own: they come first in JSON, with the secret.
	ID     string         `json:"id"`
	Kind   EndpointKind   `json:"kind"`
	Status EndpointStatus `json:"status"`
	Secret string         `json:"secret"`
	Endpoint
	PublicKey nullable.Nullable[string] `json:"public_key"`
}

// encodeEndpoint is an endpoint in the API's form. Write-only headers are null.
func encodeEndpoint(e show.Endpoint) (v Endpoint) {
	if err := recode(e.Settings.Shown(), &v); err != nil {
		panic(err) // the contract has the table's names and types, which a test compares
	}
	v.ID, v.Kind = id.Endpoint.Format(e.ID), EndpointKind(e.Settings.Kind)
	v.Status, v.StatusReason, v.StatusAt = EndpointStatus(e.Status), e.StatusReason, Time(e.StatusAt)
	v.VerifiedAt, v.CreatedAt, v.UpdatedAt = orNullAt(e.VerifiedAt), Time(e.CreatedAt), Time(e.UpdatedAt)
	v.LastVerification = nullable.NewNullNullable[Verification]()
	if e.Verification != nil {
		v.LastVerification.Set(encodeVerification(*e.Verification))
	}
	v.CatchingUpSince = orNullTime(e.StartingAt)
	v.Mute = nullable.NewNullNullable[Mute]()
	if e.Muted(time.Now()) {
		v.Mute.Set(Mute{Since: Time(e.Mute.At), Until: orNullTime(e.Mute.Until)})
	}
	v.Health, v.Condition = encodeHealth(e), conditionView(e.Condition)
	return v
}

// encodeRetries is the schedule in effect.
func encodeRetries(s endpoint.Settings) (v RetryPolicy) {
	if err := recode(s.Retries(), &v); err != nil {
		panic(err) // the contract has the same names
	}
	return v
}

// conditionView is the endpoint's condition.
func conditionView(c condition.Condition) EndpointCondition {
	v := EndpointCondition{
		State:        EndpointState(c.State),
		Detail:       c.Detail(),
		Drops:        c.Drops,
		Degraded:     c.Degraded,
		Cause:        orNullText(c.Cause),
		PausedScope:  orNullText(string(c.Scope)),
		Since:        orNullTime(c.Since),
		Until:        orNullTime(c.Until),
		NextProbeAt:  orNullTime(c.NextProbeAt),
		DisableAt:    orNullTime(c.DisableAt),
		Waiting:      int(c.Held),
		WaitingExact: !c.HeldAtLeast,
		Actions:      []EndpointConditionActions{},
	}
	for _, a := range c.Actions() {
		v.Actions = append(v.Actions, EndpointConditionActions(a))
	}
	return v
}

// orNullNumber is a number that can be missing.
func orNullNumber(n *int) nullable.Nullable[int] {
	if n == nil {
		return nullable.NewNullNullable[int]()
	}
	return nullable.NewNullableWithValue(*n)
}

// orNullZero is null for 0.
func orNullZero(n int) nullable.Nullable[int] {
	if n == 0 {
		return nullable.NewNullNullable[int]()
	}
	return nullable.NewNullableWithValue(n)
}

// encodeHealth is the endpoint's health, with the countdown if it is about to be disabled.
func encodeHealth(e show.Endpoint) EndpointHealth {
	v := EndpointHealth{
		ConsecutiveFailures: e.Counters.ConsecutiveFailures,
		AuthStreak:          e.Counters.AuthStreak,
		Exhausted:           e.Counters.Exhausted,
		FirstFailureAt:      orNullTime(e.Counters.FirstFailureAt),
		LastFailureAt:       orNullTime(e.Counters.LastFailureAt),
		LastSuccessAt:       orNullTime(e.Record.Succeeded),
		DisableAt:           nullable.NewNullNullable[Time](),
		DisableReason:       nullable.NewNullNullable[DisableReason](),
		Warnings:            []EndpointWarning{},
		HeldExact:           true,
		Breaker: Breaker{
			State:       BreakerState(e.Breaker.String()),
			OpenedAt:    orNullTime(e.Recorded.OpenedAt),
			NextProbeAt: orNullTime(e.Recorded.NextProbeAt),
		},
	}
	if health.Holds(e.Status) {
		v.Held, v.HeldExact = int(e.Waiting), !e.WaitingAtLeast
		return v
	}
	if !e.Verdict.DisableAt.IsZero() {
		v.DisableAt = orNullTime(e.Verdict.DisableAt)
		v.DisableReason = nullable.NewNullableWithValue(DisableReason(e.Verdict.Reason))
	}
	for _, w := range e.Verdict.Warn {
		v.Warnings = append(v.Warnings, EndpointWarning{
			Reason:       DisableReason(w.Reason),
			Stage:        EndpointWarningStage(w.Stage),
			FailuresLeft: w.Left,
			Detail:       e.Policy.Sentence(w.Reason),
			DisableAt:    orNullTime(w.DisableAt),
		})
	}
	return v
}

func encodeVerification(v show.Verification) Verification {
	return Verification{
		State:       VerificationState(v.State),
		Tries:       v.Tries,
		RequestedAt: Time(v.RequestedAt),
		DoneAt:      orNullAt(v.DoneAt),
		LastDetail:  v.LastDetail,
		LastStatus:  orNullZero(v.LastStatus),
	}
}

// orNullText is null for an empty text.
func orNullText(text string) nullable.Nullable[string] {
	if text == "" {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(text)
}
