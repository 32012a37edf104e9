package access

import "encoding/json"

// ViewersReadPayloads reads a tenant's setting "viewers_read_payloads", whether viewers see what is sent and answered too:
// false unless it says true.
func ViewersReadPayloads(settings json.RawMessage) bool {
	var in struct {
		Viewers any `json:"viewers_read_payloads"`
	}
	return json.Unmarshal(settings, &in) == nil && in.Viewers == true
}
