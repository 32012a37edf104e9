package api

import (
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/domain/egress"
	"posthorn/domain/id"
)

type nullableInt = nullable.Nullable[int]

// endpointCreated is EndpointCreated of the contract, built upon Endpoint.
type endpointCreated struct {
	Endpoint
	Secret    string                    `json:"secret"`
	PublicKey nullable.Nullable[string] `json:"public_key"`
}

// maskedView is an endpoint in a list: the values of its URL's query are masked.
func maskedView(e db.FullEndpoint) Endpoint {
	v := endpointView(e)
	v.URL = egress.Mask(v.URL)
	return v
}

// endpointView is an endpoint alone. Write-only headers show as null.
func endpointView(e db.FullEndpoint) Endpoint {
	s := e.Settings
	v := Endpoint{
		ID: id.Endpoint.Format(e.ID), URL: s.URL, Description: s.Description, EventTypes: orEmpty(s.EventTypes),
		Channels: orEmpty(s.Channels), Format: Format(s.Format), Prefix: s.Prefix, RetryClientErrors: s.RetryClientErrors,
		TimeoutSeconds: s.TimeoutSeconds, MaxInFlight: s.MaxInFlight, RateLimit: orNull(s.RateLimit), Burst: orNull(s.Burst),
		Ordering: Ordering(s.Ordering), PayloadVersion: orNullText(s.PayloadVersion), AcceptConflict: s.AcceptConflict,
		Verification: VerificationMode(s.Verification), Metadata: s.Metadata, Status: EndpointStatus(e.Status),
		StatusReason: e.StatusReason, StatusAt: e.StatusAt, VerifiedAt: orNull(e.VerifiedAt), CreatedAt: e.CreatedAt,
		UpdatedAt: e.UpdatedAt, CustomHeaders: make(map[string]*string, len(s.Headers)), SensitiveHeaders: s.Headers.Marked(),
		Filter: nullable.NewNullNullable[Filter](), LastVerification: nullable.NewNullNullable[Verification](),
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
	if s.Filter != "" {
		v.Filter = nullable.NewNullableWithValue(json.RawMessage(s.Filter))
	}
	v.RetryPolicy = RetryPolicy{Name: RetryPolicyName(s.RetryPolicy), Delays: []int{}}
	for _, d := range s.Schedule().Delays {
		v.RetryPolicy.Delays = append(v.RetryPolicy.Delays, int(d/time.Second))
	}
	if e.Verification != nil {
		v.LastVerification = nullable.NewNullableWithValue(verificationView(*e.Verification))
	}
	return v
}

func verificationView(v db.Verification) Verification {
	out := Verification{
		State: VerificationState(v.State), Tries: int(v.Tries), RequestedAt: v.RequestedAt, DoneAt: orNull(v.DoneAt),
		LastDetail: v.LastDetail, LastStatus: nullable.NewNullNullable[int](),
	}
	if v.LastStatus != nil && *v.LastStatus != 0 {
		out.LastStatus = nullable.NewNullableWithValue(int(*v.LastStatus))
	}
	return out
}

// orNullText is a text that is null where it is empty.
func orNullText(text string) nullable.Nullable[string] {
	if text == "" {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(text)
}
