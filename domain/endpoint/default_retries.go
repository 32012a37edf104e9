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

// CheckTenant validates what a tenant has of these settings: its metadata, and the rate of its new endpoints.
func CheckTenant(metadata map[string]string, rate *int) error {
	var c collector
	c.metadata(metadata)
	if rate != nil && (*rate < 1 || *rate > MaxRate) {
		c.refuse("rate_limit", "out_of_range", fmt.Sprintf("rate_limit must be 1 to %d requests per second, or null for the platform's.", MaxRate))
	}
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
	given := make([]any, len(retryNames))
	if s != nil {
		given = []any{s.RetryPolicy, s.RetryDelays, s.RetryJitter, s.RetryFull}
	}
	return setDefaults(settings, retryNames, given)
}

// SetDefaultRate writes the requests per second of a tenant's new endpoints into its settings; nil takes the tenant's
// own default away.
func SetDefaultRate(settings json.RawMessage, rate *int) (json.RawMessage, error) {
	return setDefaults(settings, []string{"rate_limit"}, []any{rate})
}

// OwnRate is the rate that a tenant's settings have for new endpoints; nil where they have none.
func OwnRate(settings json.RawMessage) (rate *int) {
	var own defaultsJSON
	if json.Unmarshal(settings, &own) != nil || json.Unmarshal(own.Endpoints.RateLimit, &rate) != nil {
		return nil
	}
	return rate
}

// setDefaults writes some of the settings' "endpoints". Null and false take an entry away.
func setDefaults(settings json.RawMessage, names []string, values []any) (json.RawMessage, error) {
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
	for i, name := range names {
		text, err := json.Marshal(values[i])
		if err != nil {
			return nil, err
		}
		if endpoints[name] = text; string(text) == "null" || string(text) == "false" {
			delete(endpoints, name)
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
