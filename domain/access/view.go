package access

import "time"

// MaxView is the longest view of a tenant's dashboard that an operator can ask for.
const MaxView = 60 * time.Minute

// ViewLives are the durations that an operator can select, the usual one first.
func ViewLives() []time.Duration {
	return []time.Duration{30 * time.Minute, 15 * time.Minute, MaxView}
}

// MayByView reports whether an operator who views a tenant's dashboard is offered an action. Reading is, payloads
// included, since the tenant's audit log records every page. After asking to act, an operator has what an admin with a
// portal link without secrets has. Pages are shown for reading whatever action they serve.
func MayByView(a Action, acting bool) bool {
	switch a {
	case Read, ReadPayloads, ReadMembers, ReadEventTypes:
		return true
	}
	return acting && Admin.MayByPortal(a, DefaultParts)
}
