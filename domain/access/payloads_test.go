package access

import (
	"encoding/json"
	"testing"
)

func TestViewersReadPayloadsUnlessTheSettingsSayOtherwise(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                                 true,
		"{}":                               true,
		"null":                             true,
		`{"limits":{}}`:                    true,
		`{"viewers_read_payloads":true}`:   true,
		`{"viewers_read_payloads": true }`: true,
		`{"viewers_read_payloads":false}`:  false,
		`{"viewers_read_payloads":"true"}`: false,
		`{"viewers_read_payloads":null}`:   false,
		`{"viewers`:                        false,
		`[]`:                               false,
	} {
		if got := ViewersReadPayloads(json.RawMessage(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestTheSettingOfPayloadsLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	settings := json.RawMessage(`{"limits":{"events_per_second":5}}`)
	for _, may := range []bool{false, true} {
		got, err := SetViewersReadPayloads(settings, may)
		if err != nil || ViewersReadPayloads(got) != may {
			t.Fatalf("%t: %s, %v", may, got, err)
		}
		var in struct {
			Limits struct {
				N int `json:"events_per_second"`
			} `json:"limits"`
		}
		if err := json.Unmarshal(got, &in); err != nil || in.Limits.N != 5 {
			t.Errorf("%s, %v", got, err)
		}
	}
	if _, err := SetViewersReadPayloads(json.RawMessage(`{"`), true); err == nil {
		t.Error("settings that can't be read were overwritten")
	}
}
