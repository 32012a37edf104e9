package pages

import (
	"net/url"

	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
)

// FailuresView is an endpoint's newest failures by their response.
type FailuresView struct {
	Root string // of the tenant's pages
	Href string // of the page of these failures
	Acts bool
	show.Failures

	rest int // groups that are left out
}

// firstGroups is how many groups the endpoint's first page shows.
const firstGroups = 3

// first are the largest groups.
func (v FailuresView) first() FailuresView {
	if n := len(v.Groups) - firstGroups; n > 0 {
		v.Groups, v.rest = v.Groups[:firstGroups], n
	}
	return v
}

// FailuresPage is the page of an endpoint's failures, or of one group of them.
type FailuresPage struct {
	EndpointHead
	Failures FailuresView
	Key      string             // the group that the address names; empty: all groups
	Chosen   *show.FailureGroup // nil if none of the failures is in it any more
}

// note says what is grouped.
func (v FailuresView) note() string {
	n := components.Many(int64(v.Total), "delivery", "deliveries")
	if v.More {
		return "The newest " + n + " that failed and were neither delivered nor replayed."
	}
	return components.Sentence(n) + " failed and were neither delivered nor replayed."
}

// share is how many of the failures are in a group: "58 of 60".
func (v FailuresView) share(g show.FailureGroup) string {
	return components.Count(int64(len(g.Deliveries))) + " of " + components.Count(int64(v.Total))
}

func (v FailuresView) group(g show.FailureGroup) string {
	return v.Href + "?group=" + url.QueryEscape(g.Key)
}

// replay are the fields of a request that counts a group's deliveries for a replay; nil if none can be replayed yet.
func (v FailuresView) replay(g show.FailureGroup) map[string][]string {
	ids := g.Replayable()
	if len(ids) == 0 || !v.Acts {
		return nil
	}
	fields := map[string][]string{"action": {string(bulk.Replay)}}
	for _, deliveryID := range ids {
		fields["id"] = append(fields["id"], id.Delivery.Format(deliveryID))
	}
	return fields
}
