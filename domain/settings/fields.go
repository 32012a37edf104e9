// Package settings is what operators set: for the platform, and where a field allows it for one tenant, whose word then goes
// before the platform's. Both are stored as a JSON object; one table says what stands where in it, what it may be, and what holds
// where nobody says anything.
package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"posthorn/domain/endpoint"
	"posthorn/domain/health"
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
	Words     []string // what a choice may be; nil for a number
	Default   string   // as text
	Tenant    bool     // a tenant may differ
}

// The groups, in their order.
const (
	GroupTenants   = "New tenants"
	GroupLimits    = "Limits of a tenant"
	GroupEndpoints = "New endpoints"
	GroupHealth    = "When an endpoint is switched off"
	GroupNotices   = "Notices"
	GroupFeatures  = "Features"
)

// Groups lists the groups in the order in which they are shown.
func Groups() []string {
	return []string{GroupTenants, GroupLimits, GroupEndpoints, GroupHealth, GroupNotices, GroupFeatures}
}

// onOff are the words of a switch.
var onOff = []string{"on", "off"}

// The words of sign_up and of features.status_page.
const (
	AsConfigured = "as configured" // POSTHORN_SIGNUP decides
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
)

var fields = slices.Concat([]Field{
	{Name: SignUp, Group: GroupTenants, Label: "Who may create a tenant", Words: []string{AsConfigured, Open, Invite}, Default: AsConfigured, Hint: "Open: anybody. Invite: operators alone. Otherwise as POSTHORN_SIGNUP says."},
	{Name: RetentionDays, Group: GroupTenants, Label: "Keep events and deliveries for", Unit: "days", Low: 1, High: 3650, Default: "90", Hint: "Of tenants that are made from now on."},

	{Name: EventsPerSecond, Group: GroupLimits, Label: "Events a second", Low: 1, High: 1_000_000, Zero: "no limit", Default: "0", Tenant: true},
	{Name: EventsPerMonth, Group: GroupLimits, Label: "Events a month", Low: 1, High: 1_000_000_000_000, Zero: "no limit", Default: "0", Tenant: true, Hint: "Calendar months, UTC. Owners hear at 80 and 100 %."},
	{Name: MaxEndpoints, Group: GroupLimits, Label: "Endpoints", Low: 1, High: 100_000, Default: "50", Tenant: true},
	{Name: MaxPayload, Group: GroupLimits, Label: "Largest event", Unit: "bytes of data", Low: 1024, High: 1 << 20, Default: strconv.Itoa(256 << 10), Tenant: true},

	{Name: "endpoints.retry_policy", Group: GroupEndpoints, Label: "Retry schedule", Words: retry.Names(), Default: retry.Default},
	{Name: "endpoints.timeout_seconds", Group: GroupEndpoints, Label: "Time-out of a request", Unit: "seconds", Low: endpoint.MinTimeout, High: endpoint.MaxTimeout, Default: "15"},
	{Name: "endpoints.max_in_flight", Group: GroupEndpoints, Label: "Requests at once", Low: 1, High: endpoint.MaxInFlight, Default: "5"},
	{Name: "endpoints.rate_limit", Group: GroupEndpoints, Label: "Requests a second", Low: 1, High: endpoint.MaxRate, Zero: "no limit", null: true, Default: "50"},
	{Name: "endpoints.verification", Group: GroupEndpoints, Label: "How an endpoint proves itself", Words: endpoint.Verifications(), Default: endpoint.Verifications()[0]},
	{Name: "endpoints.when_held", Group: GroupEndpoints, Label: "While it receives nothing, events are", Words: endpoint.WhensHeld(), Default: endpoint.WhensHeld()[0], Hint: "hold: their deliveries wait. drop: they make none."},
}, policyFields(), []Field{
	{Name: Digest, Group: GroupNotices, Label: "Daily digest", Words: onOff, Default: "on", Hint: "A mail a day at most, to tenants where something is degraded or failed."},
	{Name: OverdueMinutes, Group: GroupNotices, Label: "A delivery is overdue after", Unit: "minutes", Low: 1, High: 1440, Default: "15", Hint: "Ready, and not sent: the tenant's health is critical then."},

	{Name: StatusPage, Group: GroupFeatures, Label: "Status page", Words: []string{SignedIn, Public, Off}, Default: SignedIn},
	{Name: Catalogue, Group: GroupFeatures, Label: "Catalogue of event types", Words: []string{Off, Public}, Default: Off, Hint: "Public: everybody reads that of the platform's own tenant at /docs/catalogue."},
	{Name: Portal, Group: GroupFeatures, Label: "Portal links", Words: onOff, Default: "on", Hint: "Off: no link into a dashboard can be made or opened."},
	{Name: ActAsOperator, Group: GroupFeatures, Label: "Operators may change things in a tenant's dashboard", Words: onOff, Default: "on", Hint: "After asking for it, with a reason that the tenant sees. Off: they look on alone."},
})

// policyLabels say what the parts of the health policy are called.
var policyLabels = map[string]string{
	"auth_failures": "Consecutive 401, 403 and 404", "unhealthy_hours": "Nothing but failures for", "unhealthy_failures": "and at least so many of them",
	"failures_over": "Consecutive failures above", "failures_hours": "over at least", "tls_hours": "Nothing but TLS errors for", "exhausted": "Deliveries out of attempts",
}

// policyFields are the health policy's parts with the ranges that it has.
func policyFields() []Field {
	byDefault := map[string]any{}
	text, _ := json.Marshal(health.DefaultPolicy()) // plain numbers and bools
	_ = json.Unmarshal(text, &byDefault)
	out := []Field{{Name: "health.gone", Group: GroupHealth, Label: "A 410 at once", Words: onOff, Default: "on"}}
	for _, r := range health.Ranges() {
		f := Field{Name: "health." + r.Name, Group: GroupHealth, Label: policyLabels[r.Name], Unit: r.Unit, Low: r.Low, High: r.High, Default: fmt.Sprint(byDefault[r.Name])}
		if r.Never {
			f.Zero = "never"
		}
		out = append(out, f)
	}
	return out
}

// Fields lists every setting.
func Fields() []Field { return slices.Clone(fields) }

// OfTenant lists the settings in which a tenant may differ from the platform.
func OfTenant() []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return !f.Tenant })
}

// Range says what the field may be, as a sentence.
func (f Field) Range() string {
	if f.Words != nil {
		return f.Label + " is one of " + strings.Join(f.Words, ", ") + "."
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
		panic("no setting is called " + name)
	}
	return fields[i]
}
