// Package notice says what Posthorn tells tenants: the kinds of notices, how bad each is, who sees it, and who gets it
// by mail unless they chose otherwise.
package notice

import (
	"slices"

	"posthorn/domain/access"
)

// Kind is what a notice is about: object and past participle, as in the audit log.
type Kind string

// The kinds.
const (
	EndpointWarning     Kind = "endpoint.warning"   // it will be disabled at a date unless a delivery succeeds
	EndpointDisabled    Kind = "endpoint.disabled"  // by Posthorn, for a reason
	EndpointRecovered   Kind = "endpoint.recovered" // a success after a warning, or the backlog of a disabled one drains
	HeldExpiring        Kind = "held.expiring"      // the oldest held delivery is about to reach the end of its retention
	FeedUnread          Kind = "feed.unread"        // a consumer is late, or nobody reads the feed
	SourceFailing       Kind = "source.failing"     // it can't be read, or falls behind
	SecretRotated       Kind = "secret.rotated"
	CertificateExpiring Kind = "certificate.expiring" // a client certificate is about to expire, or has
	KeyCreated          Kind = "key.created"
	DeliveryFailed      Kind = "delivery.failed" // for good
	Digest              Kind = "digest"          // at most one a UTC day
	QuotaWarning        Kind = "quota.warning"   // most of what the tenant may use is used
	QuotaReached        Kind = "quota.reached"   // and now all of it
	TenantSuspended     Kind = "tenant.suspended"
	TenantResumed       Kind = "tenant.resumed"
	DispatchPaused      Kind = "dispatch.paused" // by an operator, for all of the tenant
	DispatchResumed     Kind = "dispatch.resumed"
)

// Severity is how urgent a notice is.
type Severity string

// The severities, in their order.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

type rule struct {
	kind     Kind
	severity Severity
	roles    []access.Role // that see it
	mail     bool          // mailed unless the person chose otherwise
	platform bool          // also an event of the platform's own tenant
	operator bool          // operators get an alert of it
	label    string        // what a preference is called
}

var (
	everybody = access.Roles()
	editors   = []access.Role{access.Owner, access.Admin, access.Developer}
	leaders   = []access.Role{access.Owner, access.Admin}
)

// rules are in the order in which preferences are shown.
var rules = []rule{
	{EndpointWarning, Warning, everybody, true, true, false, "An endpoint will be disabled unless a delivery succeeds"},
	{EndpointDisabled, Critical, everybody, true, true, true, "An endpoint was disabled"},
	{EndpointRecovered, Info, everybody, true, true, false, "An endpoint has recovered"},
	{HeldExpiring, Warning, everybody, true, false, false, "Held deliveries are about to expire"},
	{FeedUnread, Warning, everybody, true, true, false, "A feed is not read"},
	{SourceFailing, Warning, everybody, true, false, false, "A source can't be read, or falls behind"},
	{DeliveryFailed, Warning, everybody, false, true, false, "A delivery failed permanently"},
	{SecretRotated, Info, editors, true, true, false, "A signing secret was rotated"},
	{CertificateExpiring, Warning, editors, true, false, false, "A client certificate is about to expire"},
	{KeyCreated, Info, editors, true, false, false, "An API key was created"},
	{Digest, Warning, everybody, true, false, false, "Daily digest when something is wrong"},
	{QuotaWarning, Warning, leaders, true, false, false, "Quota almost reached"},
	{QuotaReached, Critical, leaders, true, false, false, "Quota reached"},
	{TenantSuspended, Critical, everybody, true, false, false, "The tenant was suspended by the operator"},
	{TenantResumed, Info, everybody, true, false, false, "The tenant was resumed by the operator"},
	{DispatchPaused, Critical, everybody, true, false, false, "Deliveries were paused by the operator"},
	{DispatchResumed, Info, everybody, true, false, false, "Deliveries were resumed by the operator"},
}

func (k Kind) rule() rule {
	if i := slices.IndexFunc(rules, func(r rule) bool { return r.kind == k }); i >= 0 {
		return rules[i]
	}
	return rule{}
}

// Kinds lists the kinds.
func Kinds() []Kind {
	all := make([]Kind, len(rules))
	for i, r := range rules {
		all[i] = r.kind
	}
	return all
}

// Known reports whether there is such a kind.
func (k Kind) Known() bool { return k.rule().kind != "" }

// Severity is how urgent notices of the kind are; empty for an unknown kind.
func (k Kind) Severity() Severity { return k.rule().severity }

// SeenBy reports whether a role sees notices of the kind.
func (k Kind) SeenBy(r access.Role) bool { return slices.Contains(k.rule().roles, r) }

// MailedByDefault reports whether the kind is mailed to those who have not chosen.
func (k Kind) MailedByDefault() bool { return k.rule().mail }

// OfPlatform reports whether notices of the kind become events of the platform's own tenant.
func (k Kind) OfPlatform() bool { return k.rule().platform }

// AlertsOperators reports whether operators get a mail of it too.
func (k Kind) AlertsOperators() bool { return k.rule().operator }

// Mutable reports whether muting an endpoint's alerts keeps the kind from being mailed. What ends deliveries is mailed
// nevertheless: that the endpoint was disabled, and that held deliveries are about to expire.
func (k Kind) Mutable() bool {
	return k == EndpointWarning || k == EndpointRecovered || k == DeliveryFailed || k == FeedUnread
}

// Label is what a preference for the kind is called; empty for an unknown kind.
func (k Kind) Label() string { return k.rule().label }

// KindsFor are the kinds that a role sees, in the order in which preferences are shown.
func KindsFor(r access.Role) []Kind {
	var seen []Kind
	for _, k := range Kinds() {
		if k.SeenBy(r) {
			seen = append(seen, k)
		}
	}
	return seen
}

// NamesFor are the names of the kinds that a role sees.
func NamesFor(r access.Role) []string {
	kinds := KindsFor(r)
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}
