package filter

// Clause names the part of a subscription that kept an event away.
type Clause string

// The clauses, in the order in which they are asked. ClauseState is for callers: the endpoint itself takes nothing now.
const (
	ClauseNone    Clause = "" // all matched
	ClauseType    Clause = "type"
	ClauseChannel Clause = "channel"
	ClauseFilter  Clause = "filter"
	ClauseState   Clause = "state"
)

// Subscription is what an endpoint takes: event types, channels (none: whatever the event's channels) and a filter
// (nil: all).
type Subscription struct {
	EventTypes []string
	Channels   []string
	Filter     *Filter
}

// Decide reports whether a subscription takes an event, and if not, which clause refused first and a plain sentence for
// "who got it and why not". It does not allocate unless a filter is evaluated.
func (s Subscription) Decide(in *Input) (bool, Clause, string) {
	if !MatchType(s.EventTypes, in.typ) {
		return false, ClauseType, "The endpoint does not subscribe to this event type."
	}
	if len(s.Channels) > 0 && !share(s.Channels, in.channels) {
		if len(in.channels) == 0 {
			return false, ClauseChannel, "The endpoint receives only events on its channels, and this event has no channel."
		}
		return false, ClauseChannel, "The event has none of the endpoint's channels."
	}
	if s.Filter == nil {
		return true, ClauseNone, ""
	}
	ok, err := s.Filter.Match(in)
	if err != nil {
		return false, ClauseFilter, "The endpoint's filter can't be evaluated for this event: " + err.Error() + "."
	}
	if !ok {
		return false, ClauseFilter, "The endpoint's filter doesn't match this event."
	}
	return true, ClauseNone, ""
}

// share reports whether two short lists have an element in common.
func share(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}
