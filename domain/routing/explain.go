package routing

import (
	"fmt"
	"strings"

	"posthorn/domain/filter"
)

// The clauses that an explanation knows beside those of a subscription.
const (
	ClauseDeleted filter.Clause = "deleted" // the endpoint was gone already
	ClauseLater   filter.Clause = "later"   // the endpoint did not exist yet
	ClauseVersion filter.Clause = "version" // the endpoint is pinned to another payload version
	ClauseDirect  filter.Clause = "direct"  // the event was meant for one endpoint alone, whatever others subscribe to
)

// Event is what an explanation is about.
type Event struct {
	Type     string
	Channels []string
	Data     []byte // nil: expunged
	Version  string // of the payload; empty: none
}

// Candidate is one endpoint as it was when the event was emitted.
type Candidate struct {
	Rule
	Later   bool // it did not exist yet
	Deleted bool // it did not exist any more
	Sent    bool // there is a delivery of the event to it
	Pulls   bool // it is a feed: it has no deliveries, and its rule is the one of now
	Starts  bool // it catches up: its delivery is created in its turn
}

// Verdict says whether an event went to one endpoint, and what decided.
type Verdict struct {
	Matched bool // a delivery was made when the event was emitted
	// what decided; ClauseState where it matched and was held, ClauseNone where nothing stood in the way
	Clause filter.Clause
	Held   bool   // it matched and waited, since the endpoint received nothing then
	Unsure bool   // the data was expunged, and with it what the filter saw
	Detail string // a sentence
}

// Explanation is the answer for one event: a verdict for each candidate, in their order, and in sum.
type Explanation struct {
	Verdicts []Verdict
	Matched  int
	Direct   bool   // a test event, or another for one endpoint alone
	Summary  string // who got it, or why nobody did
}

// Explain evaluates the candidates as the emission did.
//
// Deliveries are made in the transaction that stores their event, one for each endpoint that matches. So an endpoint
// that matches and has none says that the event was for one endpoint alone; and where the data is gone, a delivery
// still tells that the filter took it.
func Explain(e Event, candidates []Candidate) Explanation {
	in := filter.NewInput(e.Type, e.Data, e.Channels)
	out := Explanation{Verdicts: make([]Verdict, len(candidates))}
	for i := range candidates {
		c := &candidates[i]
		out.Verdicts[i] = evaluate(e, in, c)
		if out.Verdicts[i].Matched && !c.Sent && !c.Pulls && !c.Starts {
			out.Direct = true
		}
	}
	for i := range candidates {
		v, sent := &out.Verdicts[i], candidates[i].Sent
		switch {
		case out.Direct && sent:
			*v = Verdict{Matched: true, Clause: ClauseDirect, Held: v.Held, Detail: "The event was sent only to this endpoint, regardless of its subscription."}
		case out.Direct && v.Clause != ClauseLater && v.Clause != ClauseDeleted:
			*v = Verdict{Clause: ClauseDirect, Detail: "The event was sent only to another endpoint, like a test event."}
		case sent && !v.Matched:
			v.Detail = strings.TrimSuffix(v.Detail, ".") + "; it was sent to the endpoint on request (a test or a replay)."
		}
		if v.Matched {
			out.Matched++
		}
	}
	out.Summary = summary(out)
	return out
}

func evaluate(e Event, in *filter.Input, c *Candidate) Verdict {
	switch {
	case c.Later:
		return Verdict{Clause: ClauseLater, Detail: "The endpoint was created after the event."}
	case c.Deleted:
		return Verdict{Clause: ClauseDeleted, Detail: "The endpoint was deleted before the event."}
	}
	route := Compile(c.Rule)
	v := route.evaluate(e, in)
	if v.Matched && c.Starts && !c.Sent {
		return Verdict{Matched: true, Detail: "Matched: the endpoint catches up, and the delivery is created after those of older events."}
	}
	if v.Matched && c.Pulls {
		return Verdict{Matched: true, Detail: "Matched: the consumers of the feed read it."}
	}
	if v.Unsure && c.Sent {
		v = taken(&route)
		v.Detail = "The endpoint's filter matched: there is a delivery. The event's data has been expunged since. " + v.Detail
	}
	return v
}

// Evaluate says whether the endpoint would take an event, and what decides.
func (r *Route) Evaluate(e Event) Verdict {
	v := r.evaluate(e, filter.NewInput(e.Type, e.Data, e.Channels))
	if v.Matched {
		v.Detail = "The endpoint matches this event."
	}
	return v
}

func (r *Route) evaluate(e Event, in *filter.Input) Verdict {
	if e.Data == nil && r.Filter.ReadsData() {
		rest := Route{Subscription: r.typeAndChannel(), version: r.version}
		if ok, clause, why := rest.Takes(in, e.Version); !ok {
			return Verdict{Clause: clause, Detail: why}
		}
		return Verdict{
			Clause: filter.ClauseFilter,
			Unsure: true,
			Detail: "The event's data was expunged, so the result of the endpoint's filter is unknown.",
		}
	}
	matched, clause, why := r.Takes(in, e.Version)
	if matched {
		return taken(r)
	}
	if clause == filter.ClauseFilter {
		if more := r.Filter.Explain(in); more != "" {
			why = more
		}
	}
	return Verdict{Clause: clause, Detail: why}
}

func taken(r *Route) Verdict {
	if !r.isHeld() {
		return Verdict{Matched: true, Detail: "Matched; the endpoint was active."}
	}
	state := inWords[r.Status]
	return Verdict{
		Matched: true,
		Clause:  filter.ClauseState,
		Held:    true,
		Detail:  fmt.Sprintf("Matched; the endpoint was %s, so the delivery was held.", state),
	}
}

// summary says who got it, or why nobody did.
func summary(x Explanation) string {
	held, refused := 0, map[filter.Clause]int{}
	for _, v := range x.Verdicts {
		switch {
		case v.Held:
			held++
		case !v.Matched:
			refused[v.Clause]++
		}
	}
	there := len(x.Verdicts) - refused[ClauseLater] - refused[ClauseDeleted]
	switch {
	case x.Direct:
		return "The event was sent to one endpoint only, like a test event."
	case x.Matched > 0 && held == 0:
		return fmt.Sprintf("Sent to %d of %s.", x.Matched, endpoints(there))
	case x.Matched > 0:
		return fmt.Sprintf("Matched %d of %s; held for %d of them, inactive at the time.", x.Matched, endpoints(there), held)
	case there == 0:
		return "Sent to no endpoint: the tenant had none when the event was accepted."
	}
	var why []string
	for _, r := range []struct {
		clause filter.Clause
		words  string
	}{
		{filter.ClauseType, "by event type"},
		{filter.ClauseChannel, "by channel"},
		{ClauseVersion, "by payload version"},
		{filter.ClauseFilter, "by filter"},
		{filter.ClauseState, "by state"},
	} {
		if n := refused[r.clause]; n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, r.words))
		}
	}
	return fmt.Sprintf("Sent to 0 of %s. Excluded: %s.", endpoints(there), strings.Join(why, ", "))
}

func endpoints(n int) string {
	if n == 1 {
		return "1 endpoint"
	}
	return fmt.Sprintf("%d endpoints", n)
}
