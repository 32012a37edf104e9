// Package routing says which endpoints an event goes to, and explains it afterwards. The fan-out of an emission and the
// answer to "who got it, and why not" are one judgement, so that the two can't disagree.
package routing

import (
	"posthorn/domain/endpoint"
	"posthorn/domain/filter"
)

// Rule is what an endpoint asked of events under one version of a tenant's routes, as it is stored.
type Rule struct {
	EventTypes []string
	Channels   []string
	Filter     string // JSON as saved; empty: none
	Status     endpoint.Status
	Drops      bool   // what it takes while it receives nothing is dropped instead of held
	Version    string // the payload version that it is pinned to; empty: any
}

// Route is a rule made ready to be asked. It is read-only and safe for concurrent use.
type Route struct {
	filter.Subscription
	Status   endpoint.Status
	drops    bool
	version  string
	source   string // the filter as it is stored
	unusable error  // the filter can't be compiled: the route takes nothing
}

// Compile makes a route of a rule. A filter was compiled when it was saved; one that a later version of the language
// reads otherwise makes a route that takes nothing and says so, and must not stop the routes of others.
func Compile(r Rule) Route {
	route := Route{
		Subscription: filter.Subscription{EventTypes: r.EventTypes, Channels: r.Channels},
		Status:       r.Status,
		drops:        r.Drops,
		version:      r.Version,
		source:       r.Filter,
	}
	if r.Filter != "" {
		route.Filter, route.unusable = filter.Compile([]byte(r.Filter))
	}
	return route
}

// Follow is Compile for an endpoint whose route was compiled before: a filter that stays is not compiled again.
func (r *Route) Follow(to Rule) Route {
	if r.source != to.Filter {
		return Compile(to)
	}
	to.Filter = ""
	route := Compile(to)
	route.Filter, route.source, route.unusable = r.Filter, r.source, r.unusable
	return route
}

// Takes reports whether an event goes to the endpoint, and if not, which clause refused first and why. It does not
// allocate unless a filter is evaluated. The endpoint's state refuses nothing, what it takes while it receives nothing
// is held, unless the endpoint wants it dropped. version is the event's payload version: an endpoint that is pinned to
// one gets events of that one, and those that have none.
func (r *Route) Takes(in *filter.Input, version string) (bool, filter.Clause, string) {
	if r.version != "" && version != "" && r.version != version {
		if ok, clause, why := r.typeAndChannel().Decide(in); !ok {
			return false, clause, why
		}
		return false, ClauseVersion, "The endpoint receives another payload version."
	}
	if r.unusable != nil {
		return false, filter.ClauseFilter, "The endpoint's filter can no longer be read. Save it again."
	}
	if taken, clause, why := r.Decide(in); !taken {
		return false, clause, why
	}
	if r.drops && r.isHeld() {
		return false, filter.ClauseState, dropped(r.Status)
	}
	return true, filter.ClauseNone, ""
}

// typeAndChannel is the subscription without its filter.
func (r *Route) typeAndChannel() filter.Subscription {
	return filter.Subscription{EventTypes: r.EventTypes, Channels: r.Channels}
}

// isHeld reports whether the endpoint receives nothing now, so that what it takes waits.
func (r *Route) isHeld() bool { return r.Status != endpoint.Active }

// inWords says why an endpoint receives nothing.
var inWords = map[endpoint.Status]string{
	endpoint.Unverified: "not verified yet",
	endpoint.Paused:     "paused",
	endpoint.Disabled:   "disabled",
}

func dropped(s endpoint.Status) string {
	return "The endpoint's subscription matches the event, but the endpoint was " + inWords[s] + " and drops events while inactive."
}
