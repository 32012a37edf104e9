package account

import (
	"encoding/json"
	"fmt"
)

// Metadata is what a company keeps with a tenant in its settings. It is never nil.
func Metadata(settings json.RawMessage) map[string]string {
	own := struct {
		Metadata map[string]string `json:"metadata"`
	}{Metadata: map[string]string{}}
	if json.Unmarshal(settings, &own) != nil || own.Metadata == nil {
		return map[string]string{}
	}
	return own.Metadata
}

// SetMetadata replaces the metadata within a tenant's settings.
func SetMetadata(settings json.RawMessage, metadata map[string]string) (json.RawMessage, error) {
	all := map[string]any{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	if all["metadata"] = metadata; len(metadata) == 0 {
		delete(all, "metadata")
	}
	return json.Marshal(all)
}
