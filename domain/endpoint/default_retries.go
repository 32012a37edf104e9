package endpoint

import (
	"encoding/json"
	"fmt"
	"slices"

	"posthorn/domain/fault"
)

// The names of a default schedule within "endpoints" of a tenant's settings.
var retryNames = []string{"retry_policy", "retry_delays", "retry_jitter", "retry_full"}

// CheckRetries is Check of the retry policy alone.
func (s Settings) CheckRetries() error {
	var c collector
	c.retries(s)
	if len(c.fields) > 0 {
		return fault.InvalidFields(c.fields)
	}
	return nil
}

// SameRetries reports whether two settings have the same retry policy.
func (s Settings) SameRetries(other Settings) bool {
	return s.RetryPolicy == other.RetryPolicy && slices.Equal(s.RetryDelays, other.RetryDelays) &&
		same(s.RetryJitter, other.RetryJitter) && s.RetryFull == other.RetryFull
}

// SetDefaultRetries writes the retry policy of s as the default of a tenant's new endpoints into its settings; nil
// takes the tenant's own default away. Other settings stay. ReadDefaults reads it.
func SetDefaultRetries(settings json.RawMessage, s *Settings) (json.RawMessage, error) {
	all, endpoints := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	if own := all["endpoints"]; len(own) > 0 {
		if err := json.Unmarshal(own, &endpoints); err != nil {
			return nil, fmt.Errorf("settings of endpoints: %w", err)
		}
	}
	for _, name := range retryNames {
		delete(endpoints, name)
	}
	if s != nil {
		for i, value := range []any{s.RetryPolicy, s.RetryDelays, s.RetryJitter, s.RetryFull} {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			if string(text) != "null" && string(text) != "false" {
				endpoints[retryNames[i]] = text
			}
		}
	}
	text, err := json.Marshal(endpoints)
	if err != nil {
		return nil, err
	}
	if all["endpoints"] = text; len(endpoints) == 0 {
		delete(all, "endpoints")
	}
	return json.Marshal(all)
}

// OwnRetries names the default schedule that a tenant's settings have, empty where they have none.
func OwnRetries(settings json.RawMessage) string {
	var own defaultsJSON
	if json.Unmarshal(settings, &own) != nil {
		return ""
	}
	return own.Endpoints.RetryPolicy
}
