package access

import "time"

// ViewMost is the longest that an operator may look at a tenant's dashboard before asking again.
const ViewMost = 60 * time.Minute

// ViewLives are the times that an operator may ask for, the usual one first.
func ViewLives() []time.Duration {
	return []time.Duration{30 * time.Minute, 15 * time.Minute, ViewMost}
}

// MayByView reports whether an operator who looks at a tenant's dashboard is offered an action: reading, payloads included, since
// every page is told to the tenant; and where they have asked to act, what an admin may do who came by a portal link without
// secrets. Pages are shown for reading whatever the action that they serve.
func MayByView(a Action, acting bool) bool {
	switch a {
	case Read, ReadPayloads, ReadMembers:
		return true
	}
	return acting && Admin.MayByPortal(a, false)
}
