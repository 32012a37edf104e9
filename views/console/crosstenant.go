package console

import (
	"net/url"

	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
	"posthorn/views/pages"
)

// CrossTenantFilter is the filter of a list of all tenants, as in the address.
type CrossTenantFilter struct {
	Search, Tenant, Endpoint, Host, Status, Type, Since, Until, Outcome string
}

// FilterOf is the filter of an address.
func FilterOf(q url.Values) CrossTenantFilter {
	return CrossTenantFilter{
		Search:   q.Get("q"),
		Tenant:   q.Get("tenant"),
		Endpoint: q.Get("endpoint"),
		Host:     q.Get("host"),
		Status:   q.Get("status"),
		Type:     q.Get("type"),
		Since:    q.Get("since"),
		Until:    q.Get("until"),
		Outcome:  q.Get("outcome"),
	}
}

func (f CrossTenantFilter) empty() bool { return f == CrossTenantFilter{} }

// DeliveriesView is a page of the deliveries of all tenants.
type DeliveriesView struct {
	Shell  layout.Shell
	Filter CrossTenantFilter
	Wrong  map[string]string // by field
	Rows   []show.Delivery
	Next   string
	Short  bool // the page ended early: the maximum of rows was read
}

// DeliveryView is one delivery: its destination and state, without its content.
type DeliveryView struct {
	Shell layout.Shell
	show.DeliveryDetail
}

// EventsView is a page of the events of all tenants.
type EventsView struct {
	Shell        layout.Shell
	Filter       CrossTenantFilter
	Wrong        map[string]string
	Rows         []show.Event
	Newer, Older string
	Short        bool
}

// EventView is one event and where it went.
type EventView struct {
	Shell layout.Shell
	Event show.Event
	Rows  []show.Delivery
	More  bool
}

// tenantPath is the page of a tenant.
func tenantPath(tenant id.UUID) string { return "/console/tenants/" + id.Tenant.Format(tenant) }

func eventPath(e show.Event) string {
	return tenantPath(e.TenantID) + "/events/" + id.Event.Format(e.ID)
}

// wrongFields are the errors of a filter, with the ids of its controls.
func wrongFields(wrong map[string]string) []components.Wrong {
	return pages.WrongList(wrong, "q", "tenant", "endpoint", "host", "type", "code", "since", "until", "outcome")
}

// wrongIn are the errors of some fields, with links to them: the rejected field can be far down the page.
func wrongIn(fields ...components.FieldProps) []components.Wrong {
	var out []components.Wrong
	for _, f := range fields {
		if f.Error != "" {
			out = append(out, components.Wrong{ID: f.InputID(), Detail: f.Error})
		}
	}
	return out
}
