package pages

import (
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/bulk"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// EndpointsView is the list of a tenant's endpoints.
type EndpointsView struct {
	Shell     layout.Shell
	Root      string // of the tenant's pages
	MayChange bool
	May       func(access.Action) bool
	Query     string
	Status    string
	Kind      endpoint.Kind // chosen; empty: all but listeners
	Listeners bool          // the tenant has some
	Total     int           // of the tenant; the rows are those that match the filters
	Now       time.Time
	Rows      []show.Endpoint
}

// at is the address of the list, and href of one of its endpoints.
func (v EndpointsView) at() string { return v.Root + "/endpoints" }

func (v EndpointsView) href(e show.Endpoint) string { return v.at() + "/" + id.Endpoint.Format(e.ID) }

// conditionItems are the reader's actions on an endpoint's condition, outside of the endpoint's own page. tenant is the
// path of the tenant's pages. Actions that need input link to the endpoint's page, which asks for it.
func conditionItems(c condition.Condition, tenant, endpointID string, may func(access.Action) bool) (items []components.MenuItem) {
	page := tenant + "/endpoints/" + endpointID
	for _, a := range c.Actions() {
		item := components.MenuItem{Label: a.Label(), Href: page}
		switch a {
		case condition.Verify:
			item.Icon, item.Href, item.Action = icons.Shield, "", page+"/verify"
		case condition.Resume:
			item.Icon = icons.Play
		case condition.SendNow:
			item.Icon, item.Href, item.Action = icons.Send, "", page+"/resume"
		case condition.ProbeNow:
			item.Icon, item.Href = icons.Send, page+"/test"
		case condition.Replay:
			item.Icon, item.Href, item.Action = icons.Refresh, "", tenant+"/deliveries/bulk"
			item.Fields = replayDeadLetters(endpointID)
		case condition.Recover:
			item.Icon = icons.Layers
		}
		if may != nil && may(a.Permission()) {
			items = append(items, item)
		}
	}
	return items
}

// replayDeadLetters are the fields of a request that counts the dead letters of an endpoint for a replay.
func replayDeadLetters(endpointID string) map[string]string {
	return map[string]string{"action": string(bulk.Replay), "all": "true", "status": delivery.DeadLetter, "endpoint": endpointID}
}

func (v EndpointsView) items(e show.Endpoint) []components.MenuItem {
	return conditionItems(e.Condition, v.Root, id.Endpoint.Format(e.ID), v.May)
}

// kindBadge is a word that the URL does not show: the endpoint is a test inbox, a feed, or a listener.
func kindBadge(k endpoint.Kind) string {
	switch k {
	case endpoint.Listen:
		return "listener"
	case endpoint.Inbox:
		return "test inbox"
	case endpoint.Feed:
		return "feed"
	}
	return ""
}

// listenerOptions are the choices of a list that leaves out listeners, which come and go, unless they are chosen.
func listenerOptions() []components.Option {
	return []components.Option{{Label: "Without listeners"}, {Label: "Listeners", Value: string(endpoint.Listen)}}
}

func stateOptions() []components.Option {
	out := []components.Option{{Label: "Any state"}}
	for _, s := range condition.Shown() {
		out = append(out, components.Option{Label: components.Capital(s.Word()), Value: string(s)})
	}
	return out
}

// typesText lists the endpoint's event types in one line.
func typesText(patterns []string) string {
	switch {
	case len(patterns) == 1 && patterns[0] == "*":
		return "All events"
	case len(patterns) <= 2:
		return strings.Join(patterns, ", ")
	}
	return strings.Join(patterns[:2], ", ") + " and " + components.Count(int64(len(patterns)-2)) + " more"
}
