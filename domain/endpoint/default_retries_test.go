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

func TestATenantsDefaultRateIsThatOfItsNewEndpoints(t *testing.T) {
	t.Parallel()
	platform, rate := []byte(`{"endpoints":{"rate_limit":20}}`), 5
	set, err := endpoint.SetDefaultRate([]byte(`{"endpoints":{"max":7}}`), &rate)
	if err != nil {
		t.Fatal(err)
	}
	if d := endpoint.ReadDefaults(50, platform, set); *d.Settings.RateLimit != 5 || d.MaxEndpoints != 7 || *endpoint.OwnRate(set) != 5 {
		t.Errorf("%s: %+v", set, d)
	}
	reset, err := endpoint.SetDefaultRate(set, nil)
	if err != nil || *endpoint.ReadDefaults(50, platform, reset).Settings.RateLimit != 20 || endpoint.OwnRate(reset) != nil {
		t.Errorf("without its own default: %s, %v", reset, err)
	}
	if err := endpoint.CheckTenant(map[string]string{"plan": "gold"}, &rate); err != nil {
		t.Error(err)
	}
	if none := 0; endpoint.CheckTenant(nil, &none) == nil || endpoint.CheckTenant(map[string]string{"": "x"}, nil) == nil {
		t.Error("a rate of 0, or a key without a name, is accepted")
	}
}
