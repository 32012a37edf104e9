package endpoint_test

import (
	"testing"

	"posthorn/domain/endpoint"
)

func TestATenantsDefaultScheduleIsThatOfItsNewEndpoints(t *testing.T) {
	t.Parallel()
	platform := []byte(`{"endpoints":{"retry_policy":"short"}}`)
	tenant := []byte(`{"endpoints":{"max":7},"health":{"gone":false}}`)
	for _, s := range []endpoint.Settings{
		{RetryPolicy: "once"},
		{RetryPolicy: endpoint.Custom, RetryDelays: []int{60, 300}, RetryJitter: fraction(0)},
		{RetryPolicy: endpoint.Custom, RetryDelays: []int{60}},
		{RetryPolicy: endpoint.Custom},
	} {
		if err := s.CheckRetries(); err != nil {
			t.Fatal(err)
		}
		set, err := endpoint.SetDefaultRetries(tenant, &s)
		if err != nil {
			t.Fatal(err)
		}
		d := endpoint.ReadDefaults(50, platform, set)
		if !d.Settings.SameRetries(s) || d.MaxEndpoints != 7 {
			t.Errorf("%+v became %+v with %d endpoints", s, d.Settings, d.MaxEndpoints)
		}
		reset, err := endpoint.SetDefaultRetries(set, nil)
		if err != nil || endpoint.ReadDefaults(50, platform, reset).Settings.RetryPolicy != "short" {
			t.Errorf("without its own default: %s, %v", reset, err)
		}
		if string(reset) != `{"endpoints":{"max":7},"health":{"gone":false}}` {
			t.Errorf("other settings became %s", reset)
		}
	}
	if _, err := endpoint.SetDefaultRetries([]byte(`{"`), nil); err == nil {
		t.Error("settings that can't be read were overwritten")
	}
}
