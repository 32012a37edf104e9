package api

import (
	"bytes"
	"encoding/json"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/inbox"
)

// apply lays the input for a new endpoint over the defaults and validates the result.
func (in EndpointInput) apply(defaults endpoint.Settings, policy egress.Policy) (endpoint.Settings, error) {
	if in.Kind != nil {
		defaults.Kind = endpoint.Kind(*in.Kind)
	}
	if defaults.Kind == endpoint.Inbox {
		defaults = inbox.Settings(defaults)
	}
	return in.over(defaults, policy)
}

// over lays the input over the settings of an endpoint and validates the result.
func (in EndpointInput) over(s endpoint.Settings, policy egress.Policy) (endpoint.Settings, error) {
	given, err := fieldsOf(in)
	if err != nil {
		return s, err
	}
	if in.URL == "" {
		delete(given, "url")
	}
	if err := s.Patch(given); err != nil {
		return s, err
	}
	return s.Check(policy)
}

// apply changes the given fields of settings and validates the result.
func (p EndpointPatch) apply(s endpoint.Settings, policy egress.Policy) (endpoint.Settings, error) {
	if err := patch(&s, p); err != nil {
		return s, err
	}
	return s.Check(policy)
}

// patch changes those settings that a body gives.
func patch(s *endpoint.Settings, body any) error {
	given, err := fieldsOf(body)
	if err != nil {
		return err
	}
	return s.Patch(given)
}

// fieldsOf are the given fields of a decoded body as JSON, with the signs of expressions as they are.
func fieldsOf(body any) (given map[string]json.RawMessage, err error) {
	err = recode(body, &given)
	return given, err
}

// recode converts a value by way of its JSON.
func recode(from, into any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(from); err != nil {
		return err
	}
	return json.Unmarshal(text.Bytes(), into)
}

func set[T any](into, from *T) {
	if from != nil {
		*into = *from
	}
}
