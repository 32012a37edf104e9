package health_test

import (
	"errors"
	"strings"
	"testing"

	"posthorn/domain/fault"
	"posthorn/domain/health"
)

func TestAmendingAPolicyLeavesOtherSettingsAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, from string
		parts      map[string]any
		want       string
	}{
		{"nothing", ``, nil, `{}`},
		{"a part", `{"endpoints":{"max":5}}`, map[string]any{"tls_hours": 48}, `{"endpoints":{"max":5},"health":{"tls_hours":48}}`},
		{"another part", `{"health":{"tls_hours":48}}`, map[string]any{"gone": false}, `{"health":{"gone":false,"tls_hours":48}}`},
		{"never", `{}`, map[string]any{"auth_failures": 0}, `{"health":{"auth_failures":0}}`},
		{"back to what holds otherwise", `{"health":{"tls_hours":48,"gone":false}}`, map[string]any{"tls_hours": nil}, `{"health":{"gone":false}}`},
		{"the last part", `{"a":1,"health":{"tls_hours":48}}`, map[string]any{"tls_hours": nil}, `{"a":1}`},
		{"over what does not read", `{"health":7}`, map[string]any{"tls_hours": 1}, `{"health":{"tls_hours":1}}`},
	} {
		got, err := health.Amend([]byte(tt.from), "health_policy", tt.parts)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

func TestWhatAPolicyMayNotBeIsRefusedWithItsRange(t *testing.T) {
	t.Parallel()
	_, err := health.Amend(nil, "health_policy", map[string]any{"tls_hours": 721, "failures_hours": -1, "gone": 1, "whim": 1, "auth_failures": 10})
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Fields) != 4 {
		t.Fatalf("%v", err)
	}
	var says []string
	for _, field := range f.Fields {
		says = append(says, field.Name+": "+field.Detail)
	}
	want := []string{
		"health_policy.failures_hours: health_policy.failures_hours must be from 0 to 720 hours.",
		"health_policy.gone: health_policy.gone must be true or false.",
		"health_policy.tls_hours: health_policy.tls_hours must be from 1 to 720 hours, or 0 for never.",
		"health_policy.whim: There is no such part of the policy.",
	}
	if got := strings.Join(says, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
}
