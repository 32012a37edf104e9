package access

import (
	"encoding/json"
	"fmt"
)

// payloadsSetting is a tenant's setting that lets viewers see payloads and responses.
const payloadsSetting = "viewers_read_payloads"

// ViewersReadPayloads reads it: true where the settings do not name it, and false where they can't be read.
func ViewersReadPayloads(settings json.RawMessage) bool {
	all, err := settingsOf(settings)
	if err != nil {
		return false
	}
	may, said := all[payloadsSetting]
	return !said || string(may) == "true"
}

// SetViewersReadPayloads writes it. Other settings stay.
func SetViewersReadPayloads(settings json.RawMessage, may bool) (json.RawMessage, error) {
	all, err := settingsOf(settings)
	if err != nil {
		return nil, err
	}
	if all[payloadsSetting] = json.RawMessage("false"); may {
		all[payloadsSetting] = json.RawMessage("true")
	}
	return json.Marshal(all)
}

func settingsOf(raw json.RawMessage) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(raw) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	return all, nil
}
