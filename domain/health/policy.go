package health

import (
	"encoding/json"
	"fmt"
	"strconv"

	"posthorn/domain/delivery"
	"posthorn/domain/words"
)

// Reason is why an endpoint is, or is going to be, disabled. It is stored, and labels metrics: the words never change.
type Reason string

// The reasons.
const (
	Gone      Reason = delivery.DisableGone // it answered 410
	TLS       Reason = "tls"                // nothing but TLS errors for too long
	Auth      Reason = "auth"               // too many 401, 403 and 404 in a row
	Unhealthy Reason = "unhealthy"          // nothing but unhealthy outcomes for days
	Failures  Reason = "failures"           // too many consecutive failures over hours
	Exhausted Reason = "exhausted"          // too many deliveries ran out of attempts
)

// Reasons lists the reasons, the most telling first: where several policies hold at once, the first names the cause.
func Reasons() []Reason { return []Reason{Gone, TLS, Auth, Unhealthy, Failures, Exhausted} }

// Sentence says what an endpoint did that was disabled for the reason, without a full stop; empty for no reason of
// these. auth and failures are how many 401, 403 and 404 responses and how many failures there were in a row.
func (r Reason) Sentence(auth, failures int) string {
	switch r {
	case Gone:
		return "Its server responded 410 Gone, which means that it wants no more events"
	case TLS:
		return "The TLS handshake with its server failed for too long"
	case Auth:
		return "Its server responded with 401, 403, or 404 to " + words.Count(max(auth, 1), "attempt", "attempts in a row")
	case Unhealthy:
		return "Every attempt failed for days"
	case Failures:
		return words.Count(max(failures, 1), "attempt", "attempts in a row") + " failed"
	case Exhausted:
		return "Too many deliveries ran out of attempts"
	}
	return ""
}

// More is what is missing until an endpoint is disabled for the reason, in its own unit: "5 more failed attempts".
func (r Reason) More(n int) string {
	switch r {
	case Auth:
		return words.Count(n, "more response", "more responses") + " with 401, 403, or 404"
	case Exhausted:
		return words.Count(n, "more delivery that runs out of attempts", "more deliveries that run out of attempts")
	}
	return words.Count(n, "more failed attempt", "more failed attempts")
}

// Policy says when an endpoint is disabled (docs/health.md). Each part is a setting of the platform and of the tenant,
// under "health" with the names below; 0 means never, where the part allows it.
type Policy struct {
	Gone              bool `json:"gone"`               // a 410 disables at once
	AuthFailures      int  `json:"auth_failures"`      // so many consecutive 401, 403 and 404; 0 never
	AuthMinutes       int  `json:"auth_minutes"`       // over at least so long; 0: however soon
	UnhealthyHours    int  `json:"unhealthy_hours"`    // nothing but unhealthy outcomes for so long; 0 never
	UnhealthyFailures int  `json:"unhealthy_failures"` // and at least so many of them
	FailuresOver      int  `json:"failures_over"`      // more consecutive failures than this; 0 never
	FailuresHours     int  `json:"failures_hours"`     // over at least so long; 0: however soon
	TLSHours          int  `json:"tls_hours"`          // only TLS errors for so long; 0 never
	Exhausted         int  `json:"exhausted"`          // so many deliveries ran out of attempts since the last success; 0 never
}

// DefaultPolicy is the policy of a platform and a tenant without settings of their own.
func DefaultPolicy() Policy {
	return Policy{
		Gone:              true,
		AuthFailures:      10,
		AuthMinutes:       30,
		UnhealthyHours:    5 * 24,
		UnhealthyFailures: 10,
		FailuresOver:      100,
		FailuresHours:     12,
		TLSHours:          24,
	}
}

// Range is what a number of the policy may be.
type Range struct {
	Name      string // as the setting is called, below "health"
	Low, High int
	Unit      string
	Never     bool // 0 is allowed too, and switches the policy off
}

// The longest stretch, 30 days, is well within the retention that events have by default: a warning comes while there
// is still something to deliver.
var ranges = []struct {
	Range
	of func(*Policy) *int
}{
	{Range{"auth_failures", 1, 1000, "responses", true}, func(p *Policy) *int { return &p.AuthFailures }},
	{Range{"auth_minutes", 0, 10_080, "minutes", false}, func(p *Policy) *int { return &p.AuthMinutes }},
	{Range{"unhealthy_hours", 1, 720, "hours", true}, func(p *Policy) *int { return &p.UnhealthyHours }},
	{Range{"unhealthy_failures", 1, 10_000, "failures", false}, func(p *Policy) *int { return &p.UnhealthyFailures }},
	{Range{"failures_over", 1, 100_000, "failures", true}, func(p *Policy) *int { return &p.FailuresOver }},
	{Range{"failures_hours", 0, 720, "hours", false}, func(p *Policy) *int { return &p.FailuresHours }},
	{Range{"tls_hours", 1, 720, "hours", true}, func(p *Policy) *int { return &p.TLSHours }},
	{Range{"exhausted", 1, 100_000, "deliveries", true}, func(p *Policy) *int { return &p.Exhausted }},
}

// Ranges lists what each number of a policy may be, for documents and forms.
func Ranges() []Range {
	out := make([]Range, len(ranges))
	for i, r := range ranges {
		out[i] = r.Range
	}
	return out
}

// Allows reports whether a number is within the range.
func (r Range) Allows(n int) bool { return n >= r.Low && n <= r.High || n == 0 && r.Never }

// Sentence says the range: "health.tls_hours must be from 1 to 720 hours, or 0 for never."
func (r Range) Sentence() string {
	never := ""
	if r.Never {
		never = ", or 0 for never"
	}
	return fmt.Sprintf("health.%s must be from %s to %s %s%s.", r.Name, words.Number(r.Low), words.Number(r.High), r.Unit, never)
}

// ReadPolicy lays the settings of the platform and of a tenant, both JSON objects with the parts of a policy under
// "health", over the defaults. What is absent, null, no number of its kind or out of range is left out, field by field:
// a wrong setting must not switch off what protects everybody else.
func ReadPolicy(platform, tenant []byte) Policy {
	p := DefaultPolicy()
	for _, raw := range [][]byte{platform, tenant} {
		var over struct {
			Health map[string]json.RawMessage `json:"health"`
		}
		if json.Unmarshal(raw, &over) == nil {
			p.lay(over.Health)
		}
	}
	return p
}

func (p *Policy) lay(over map[string]json.RawMessage) {
	var gone *bool
	if json.Unmarshal(over["gone"], &gone) == nil && gone != nil {
		p.Gone = *gone
	}
	for _, r := range ranges {
		var n *int
		if json.Unmarshal(over[r.Name], &n) == nil && n != nil && r.Allows(*n) {
			*r.of(p) = *n
		}
	}
}

// Sentence says in words what a reason means under this policy, for notices: "Every attempt (at least 10)
// failed for 5 days." It is empty for a reason that is none.
func (p Policy) Sentence(r Reason) string {
	switch r {
	case Gone:
		return "The endpoint returned 410 Gone: its server wants no more events."
	case TLS:
		return fmt.Sprintf("The TLS handshake with the endpoint failed for %s.", duration(p.TLSHours))
	case Auth:
		over := ""
		if p.AuthMinutes > 0 {
			over = " over at least " + minutes(p.AuthMinutes)
		}
		return fmt.Sprintf("The endpoint returned 401, 403, or 404 in %s attempts%s without a success in between.",
			words.Number(p.AuthFailures), over)
	case Unhealthy:
		return fmt.Sprintf("Every attempt (at least %s) failed for %s.", words.Number(p.UnhealthyFailures), duration(p.UnhealthyHours))
	case Failures:
		if p.FailuresHours == 0 {
			return fmt.Sprintf("The endpoint failed more than %s times without a success in between.", words.Number(p.FailuresOver))
		}
		return fmt.Sprintf("The endpoint failed more than %s times over at least %s without a success in between.", words.Number(p.FailuresOver), duration(p.FailuresHours))
	case Exhausted:
		return fmt.Sprintf("%s deliveries to the endpoint ran out of attempts without a success in between.", words.Number(p.Exhausted))
	}
	return ""
}

// HoldsRefusals reports whether refusals (401, 403 and 404) must last to disable an endpoint. Until then they open its
// breaker as failures do, and while it is open they settle no delivery.
func (p Policy) HoldsRefusals() bool { return p.AuthMinutes > 0 }

func minutes(n int) string {
	if n%60 == 0 {
		return duration(n / 60)
	}
	if n == 1 {
		return "1 minute"
	}
	return words.Number(n) + " minutes"
}

func duration(hours int) string {
	if days := hours / 24; days > 1 && hours%24 == 0 {
		return strconv.Itoa(days) + " days"
	}
	if hours == 1 {
		return "1 hour"
	}
	return strconv.Itoa(hours) + " hours"
}
