// Package settings holds the settings of operators: for the platform, and for one tenant where a field allows it. A
// tenant's value overrides the platform's. Both are stored as a JSON object. One table has each field's name, range and
// default.
package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/incidents"
	"posthorn/domain/retry"
)

// Field is one setting.
type Field struct {
	Name      string   // where it stands in the object, a dot between: "limits.events_per_month"
	Group     string   // which others it is shown with
	Label     string   // what people call it
	Hint      string   // a sentence, or empty
	Unit      string   // of a number
	Low, High int      // of a number
	Zero      string   // what 0 means; empty where 0 is not allowed
	null      bool     // 0 is written as null
	Words     []string // a choice's valid words; nil for a number
	Default   string   // as text
	Tenant    bool     // a tenant can differ
}

// The groups, in their order.
const (
	groupTenants   = "New tenants"
	groupLimits    = "Tenant limits"
	groupEndpoints = "New endpoints"
	groupHealth    = "Disable endpoints automatically"
	groupNotices   = "Notices"
	groupAlerts    = "Operators' alerts"
	groupFeatures  = "Features"
)

// Groups lists the groups in the order in which they are shown.
func Groups() []string {
	return []string{groupTenants, groupLimits, groupEndpoints, groupHealth, groupNotices, groupAlerts, groupFeatures}
}

// onOff are the words of a switch.
var onOff = []string{"on", "off"}

// The words of sign_up and of features.status_page.
const (
	asConfigured = "as configured" // POSTHORN_SIGNUP decides
	Open         = "open"
	Invite       = "invite"
	Public       = "public"
	SignedIn     = "signed in"
	Off          = "off"
)

// The names that rules and pages ask for by themselves.
const (
	SignUp          = "sign_up"
	RetentionDays   = "retention_days"
	EventsPerSecond = "limits.events_per_second"
	EventsPerMonth  = "limits.events_per_month"
	MaxPayload      = "limits.max_payload"
	MaxEndpoints    = "endpoints.max"
	Digest          = "notices.digest"
	OverdueMinutes  = "notices.overdue_minutes"
	StatusPage      = "features.status_page"
	Catalogue       = "features.catalogue"
	Portal          = "features.portal"
	ActAsOperator   = "features.act_as_operator"
	BotSignature    = "features.bot_signature"
)

var fields = slices.Concat([]Field{
	{
		Name:    SignUp,
		Group:   groupTenants,
		Label:   "Who can create a tenant",
		Words:   []string{asConfigured, Open, Invite},
		Default: asConfigured,
		Hint:    "Open: anyone. Invite: only operators. As configured: the value of POSTHORN_SIGNUP.",
	},
	{Name: RetentionDays, Group: groupTenants, Label: "Keep events and deliveries for", Unit: "days", Low: 1, High: 3650, Default: "90", Hint: "For tenants created from now on."},

	{Name: EventsPerSecond, Group: groupLimits, Label: "Events per second", Low: 1, High: 1_000_000, Zero: "unlimited", Default: "0", Tenant: true},
	{
		Name:    EventsPerMonth,
		Group:   groupLimits,
		Label:   "Events per month",
		Low:     1,
		High:    1_000_000_000_000,
		Zero:    "unlimited",
		Default: "0",
		Tenant:  true,
		Hint:    "Calendar months, UTC. Owners are notified at 80% and 100%.",
	},
	{Name: MaxEndpoints, Group: groupLimits, Label: "Endpoints", Low: 1, High: 100_000, Default: "50", Tenant: true},
	{
		Name:    MaxPayload,
		Group:   groupLimits,
		Label:   "Largest event",
		Unit:    "bytes of data",
		Low:     1024,
		High:    1 << 20,
		Default: strconv.Itoa(256 << 10),
		Tenant:  true,
	},

	{Name: "endpoints.retry_policy", Group: groupEndpoints, Label: "Retry schedule", Words: retry.Names(), Default: retry.Default},
	{Name: "endpoints.timeout_seconds", Group: groupEndpoints, Label: "Request timeout", Unit: "seconds", Low: endpoint.MinTimeout, High: endpoint.MaxTimeout, Default: "15"},
	{Name: "endpoints.max_in_flight", Group: groupEndpoints, Label: "Concurrent requests", Low: 1, High: endpoint.MaxInFlight, Default: "5"},
	{Name: "endpoints.rate_limit", Group: groupEndpoints, Label: "Requests per second", Low: 1, High: endpoint.MaxRate, Zero: "unlimited", null: true, Default: "50"},
	{Name: "endpoints.verification", Group: groupEndpoints, Label: "Endpoint verification", Words: endpoint.Values("verification"), Default: endpoint.Values("verification")[0]},
	{Name: "endpoints.when_held", Group: groupEndpoints, Label: "When an endpoint is inactive", Words: endpoint.Values("when_held"), Default: endpoint.Values("when_held")[0], Hint: "Hold: deliveries wait. Drop: no deliveries are created."},
}, policyFields(), []Field{
	{Name: Digest, Group: groupNotices, Label: "Daily digest", Words: onOff, Default: "on", Hint: "At most one email per day, to tenants with degraded or failing endpoints."},
	{Name: OverdueMinutes, Group: groupNotices, Label: "A delivery is overdue after", Unit: "minutes", Low: 1, High: 1440, Default: "15", Hint: "Ready, but not sent. The tenant's health is then critical."},
}, alertFields(), []Field{
	{Name: StatusPage, Group: groupFeatures, Label: "Status page", Words: []string{SignedIn, Public, Off}, Default: SignedIn},
	{Name: Catalogue, Group: groupFeatures, Label: "Event type catalog", Words: []string{Off, Public}, Default: Off, Hint: "Public: everyone can read the catalog of the platform's own tenant at /docs/catalog."},
	{Name: Portal, Group: groupFeatures, Label: "Portal links", Words: onOff, Default: "on", Hint: "Off: portal links can't be created or opened."},
	{Name: ActAsOperator, Group: groupFeatures, Label: "Operators can make changes in a tenant's dashboard", Words: onOff, Default: "on", Hint: "Requires a reason, which the tenant sees. Off: operators have read-only access."},
	{Name: BotSignature, Group: groupFeatures, Label: "Sign requests as a bot", Words: onOff, Default: Off, Hint: "Bot filters can then recognize this platform by its key directory. Requires a public https address."},
})

// policyLabels say what the parts of the health policy are called.
var policyLabels = map[string]string{
	"auth_failures":      "Disable after consecutive 401, 403, or 404 responses",
	"auth_minutes":       "Disable after 401, 403, or 404 for at least",
	"unhealthy_hours":    "Disable after a time without success of",
	"unhealthy_failures": "Disable after a time without success: failures, at least",
	"failures_over":      "Disable after more consecutive failures than",
	"failures_hours":     "Disable after consecutive failures for at least",
	"tls_hours":          "Disable after TLS errors alone for",
	"exhausted":          "Disable after deliveries out of attempts",
}

// policyFields are the health policy's parts with the ranges that it has.
func policyFields() []Field {
	byDefault := map[string]any{}
	text, _ := json.Marshal(health.DefaultPolicy()) // plain numbers and bools
	_ = json.Unmarshal(text, &byDefault)
	out := []Field{{Name: "health.gone", Group: groupHealth, Label: "Disable on the first 410", Words: onOff, Default: "on"}}
	for _, r := range health.Ranges() {
		f := Field{
			Name:    "health." + r.Name,
			Group:   groupHealth,
			Label:   policyLabels[r.Name],
			Unit:    r.Unit,
			Low:     r.Low,
			High:    r.High,
			Default: fmt.Sprint(byDefault[r.Name]),
		}
		if r.Never {
			f.Zero = "never"
		}
		out = append(out, f)
	}
	return out
}

// alertFields are the switches of the operators' alerts: off mutes a kind, by mail and to channels.
func alertFields() []Field {
	var out []Field
	for _, k := range incidents.AlertKinds() {
		out = append(out, Field{Name: k.Setting(), Group: groupAlerts, Label: k.Label(), Words: onOff, Default: "on"})
	}
	return out
}

// Fields lists every setting.
func Fields() []Field { return slices.Clone(fields) }

// OfTenant lists the settings in which a tenant can differ from the platform.
func OfTenant() []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return !f.Tenant })
}

// rangeText describes the field's valid values, as a sentence.
func (f Field) rangeText() string {
	if f.Words != nil {
		return f.Label + " must be one of " + strings.Join(f.Words, ", ") + "."
	}
	zero := ""
	if f.Zero != "" {
		zero = ", or 0 for " + f.Zero
	}
	return fmt.Sprintf("%s must be a whole number from %d to %d%s.", f.Label, f.Low, f.High, zero)
}

// onOffField reports whether the field is a switch, which is stored as true or false.
func (f Field) onOffField() bool { return slices.Equal(f.Words, onOff) }

func find(name string) Field {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		panic("unknown setting " + name)
	}
	return fields[i]
}
