package endpoint_test

import (
	"testing"

	"posthorn/domain/endpoint"
)

func TestASettingReadsInTheLineOfItsGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, value, want string }{
		{"rate_limit", "50", "50 requests/s"},
		{"rate_limit", "", "no rate limit"},
		{"burst", "", ""},
		{"timeout_seconds", "15", "timeout 15 s"},
		{"circuit_breaker", "on", "circuit breaker"},
		{"circuit_breaker", "off", "no circuit breaker"},
		{"accept_conflict", "off", ""},
		{"format", "standard", "Standard Webhooks (standard)"},
		{"format", "template", "template"},
		{"ordering", "key", "order: by key"},
		{"custom_headers", "X-A: 1\nX-B: 2", "custom headers: 2"},
		{"custom_headers", " ", ""},
	} {
		if got := endpoint.FieldNamed(c.field).Line(c.value); got != c.want {
			t.Errorf("%s %q reads %q, want %q", c.field, c.value, got, c.want)
		}
	}
}

// A setting that pages show belongs to a group, or to the part of the form that has it.
func TestEverySettingOfAFormHasAPlace(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]bool{"description": true, "channels": true, "filter": true}
	n := 0
	for _, g := range endpoint.Groups() {
		for _, f := range g.Fields() {
			if n++; f.Label == "" && f.Type != endpoint.Special {
				t.Errorf("%s is in the group %s and has no label", f.Name, g)
			}
		}
	}
	for _, f := range endpoint.Fields() {
		if f.Label != "" && f.Group == "" && !elsewhere[f.Name] {
			t.Errorf("%s has no group", f.Name)
		}
	}
	if n < 15 {
		t.Errorf("%d settings are in groups", n)
	}
}
