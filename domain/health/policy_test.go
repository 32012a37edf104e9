package health_test

import (
	"fmt"
	"testing"

	"posthorn/domain/fault"
	"posthorn/domain/health"
)

func TestTheDefaultPolicyIsTheDesigns(t *testing.T) {
	t.Parallel()
	want := health.Policy{
		Gone:              true,
		AuthFailures:      10,
		AuthMinutes:       30,
		UnhealthyHours:    120,
		UnhealthyFailures: 10,
		FailuresOver:      100,
		FailuresHours:     12,
		TLSHours:          24,
		Exhausted:         0,
	}
	if got := health.DefaultPolicy(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNumbersOutsideTheirRangeAreRefusedWithTheRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		low, high int
		never     bool
		says      string
	}{
		{"auth_failures", 1, 1000, true, "health.auth_failures must be from 1 to 1,000 responses, or 0 for never."},
		{"auth_minutes", 0, 10_080, false, "health.auth_minutes must be from 0 to 10,080 minutes."},
		{"unhealthy_hours", 1, 720, true, "health.unhealthy_hours must be from 1 to 720 hours, or 0 for never."},
		{"unhealthy_failures", 1, 10_000, false, "health.unhealthy_failures must be from 1 to 10,000 failures."},
		{"failures_over", 1, 100_000, true, "health.failures_over must be from 1 to 100,000 failures, or 0 for never."},
		{"failures_hours", 0, 720, false, "health.failures_hours must be from 0 to 720 hours."},
		{"tls_hours", 1, 720, true, "health.tls_hours must be from 1 to 720 hours, or 0 for never."},
		{"exhausted", 1, 100_000, true, "health.exhausted must be from 1 to 100,000 deliveries, or 0 for never."},
	} {
		for n, good := range map[int]bool{-1: false, 0: tt.never, tt.low: true, tt.high: true, tt.high + 1: false} {
			_, err := health.Amend(nil, "health", map[string]any{tt.name: n})
			if (err == nil) != good {
				t.Errorf("%s = %d: got %v, want good %t", tt.name, n, err, good)
			}
			if good {
				continue
			}
			want := fault.Field{Name: "health." + tt.name, Code: "out_of_range", Detail: tt.says}
			if f := fault.As(err); f == nil || f.Kind != fault.Invalid || f.Code != "out_of_range" || len(f.Fields) != 1 ||
				f.Fields[0] != want {
				t.Errorf("%s = %d: got %v, want %+v", tt.name, n, err, want)
			}
			// What can't be written is not read either.
			raw := fmt.Appendf(nil, `{"health":{%q:%d}}`, tt.name, n)
			if got := health.ReadPolicy(raw, raw); got != health.DefaultPolicy() {
				t.Errorf("read %s: %+v", raw, got)
			}
		}
	}
	if got := len(health.Ranges()); got != 8 {
		t.Errorf("%d ranges, of which 8 were tried", got)
	}
}

func TestATenantsSettingsLieOverThePlatforms(t *testing.T) {
	t.Parallel()
	def := health.DefaultPolicy()
	change := func(f func(*health.Policy)) health.Policy {
		p := def
		f(&p)
		return p
	}
	for _, tt := range []struct {
		name, platform, tenant string
		want                   health.Policy
	}{
		{"nobody said anything", ``, ``, def},
		{"empty objects", `{}`, `{"health":{}}`, def},
		{"null", `{"health":null}`, `{"health":{"gone":null,"auth_failures":null}}`, def},
		{"the platform", `{"health":{"auth_failures":3,"gone":false}}`, `{}`, change(func(p *health.Policy) { p.AuthFailures, p.Gone = 3, false })},
		{
			"the tenant over the platform, field by field", `{"health":{"auth_failures":3,"tls_hours":2}}`, `{"health":{"auth_failures":5,"exhausted":7}}`,
			change(func(p *health.Policy) { p.AuthFailures, p.TLSHours, p.Exhausted = 5, 2, 7 }),
		},
		{
			"never", `{"health":{"tls_hours":2}}`, `{"health":{"tls_hours":0,"auth_failures":0,"unhealthy_hours":0,"failures_over":0}}`,
			change(func(p *health.Policy) {
				p.TLSHours, p.AuthFailures, p.UnhealthyHours, p.FailuresOver = 0, 0, 0, 0
			}),
		},
		{"a wrong one leaves the platform's", `{"health":{"tls_hours":2}}`, `{"health":{"tls_hours":9999}}`, change(func(p *health.Policy) { p.TLSHours = 2 })},
		{
			"wrong kinds leave the rest", `{"health":{"tls_hours":"2","auth_failures":2.5,"gone":"no","exhausted":9}}`, `{"health":[]}`,
			change(func(p *health.Policy) { p.Exhausted = 9 }),
		},
		{"what is no JSON", `{"health":{`, `nonsense`, def},
		{"a number beyond any integer", `{"health":{"tls_hours":1e99}}`, `{"health":{"tls_hours":99999999999999999999}}`, def},
		{"the other settings are nobody's here", `{"endpoints":{"max":5}}`, `{"auth_failures":1}`, def},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := health.ReadPolicy([]byte(tt.platform), []byte(tt.tenant)); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestEveryReasonIsSaidInWords(t *testing.T) {
	t.Parallel()
	p := health.DefaultPolicy()
	p.Exhausted, p.FailuresHours = 2000, 1
	want := map[health.Reason]string{
		health.Gone:      "The endpoint returned 410 Gone: its server wants no more events.",
		health.TLS:       "The TLS handshake with the endpoint failed for 24 hours.",
		health.Auth:      "The endpoint returned 401, 403, or 404 in 10 attempts over at least 30 minutes without a success in between.",
		health.Unhealthy: "Every attempt (at least 10) failed for 5 days.",
		health.Failures:  "The endpoint failed more than 100 times over at least 1 hour without a success in between.",
		health.Exhausted: "2,000 deliveries to the endpoint ran out of attempts without a success in between.",
	}
	for _, r := range health.Reasons() {
		if got := p.Sentence(r); got != want[r] || got == "" {
			t.Errorf("%s: got %q, want %q", r, got, want[r])
		}
	}
	if len(want) != len(health.Reasons()) || p.Sentence("whim") != "" {
		t.Errorf("%d reasons, want %d; a reason that is none: %q", len(health.Reasons()), len(want), p.Sentence("whim"))
	}
}
