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
}

// Route is a rule made ready to be asked. It is read-only and safe for concurrent use.
type Route struct {
	filter.Subscription
	Status   endpoint.Status
	unusable error // the filter can't be compiled: the route takes nothing
}

// Compile makes a route of a rule. A filter was compiled when it was saved; one that a later version of the language reads
// otherwise makes a route that takes nothing and says so, and must not stop the routes of others.
func Compile(r Rule) Route {
	route := Route{Subscription: filter.Subscription{EventTypes: r.EventTypes, Channels: r.Channels}, Status: r.Status}
	if r.Filter != "" {
		route.Filter, route.unusable = filter.Compile([]byte(r.Filter))
	}
	return route
}

// Takes reports whether an event goes to the endpoint, and if not, which clause refused first and why. It does not allocate
// unless a filter is evaluated. The endpoint's state refuses nothing: what it takes while it receives nothing is held.
func (r *Route) Takes(in *filter.Input) (bool, filter.Clause, string) {
	if r.unusable != nil {
		return false, filter.ClauseFilter, "The endpoint's filter can't be read any more. Save it again."
	}
	return r.Decide(in)
}

// Held reports whether the endpoint receives nothing now, so that what it takes waits.
func (r *Route) Held() bool { return r.Status != endpoint.Active }
