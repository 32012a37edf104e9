package console

import (
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
	"posthorn/views/pages"
)

// CrossTenantFilter is the filter of a list of all tenants, as in the address.
type CrossTenantFilter struct {
	Search, Tenant, Endpoint, Host, Status, Type, Since, Until string
}

func (f CrossTenantFilter) empty() bool { return f == CrossTenantFilter{} }

// DeliveriesView is a page of the deliveries of all tenants.
type DeliveriesView struct {
	Shell  layout.Shell
	Filter CrossTenantFilter
	Wrong  map[string]string // by field
	Rows   []DeliveryLine
	Next   string
	Short  bool // the page ended early: the maximum of rows was read
}

// DeliveryLine is one delivery as operators see it: its destination and state, without its content.
type DeliveryLine struct {
	ID, Path, Type         string
	Tenant, TenantPath     string
	Endpoint, URL, Event   string
	Status                 delivery.Status
	Reason                 delivery.Reason
	Attempts, LastStatus   int
	LastFailure            delivery.Failure
	Created, Next, Settled time.Time
	Wait                   condition.Wait // empty: it does not wait
}

// DeliveryView is one delivery.
type DeliveryView struct {
	Shell     layout.Shell
	Line      DeliveryLine
	Condition condition.State // of the endpoint; empty: deleted
	Diagnosis diagnosis.Diagnosis
	Attempts  []AttemptLine // newest first
}

// AttemptLine is one request, without its content and its response.
type AttemptLine struct {
	Number, Status int
	At             time.Time
	Late           bool
	Failure        delivery.Failure
	URL, Error     string
	Total          time.Duration
	Phases         components.PhaseProps
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
	Rows  []DeliveryLine
	More  bool
}

// tenantPath is the page of a tenant.
func tenantPath(tenant id.UUID) string { return "/console/tenants/" + id.Tenant.Format(tenant) }

func eventPath(e show.Event) string {
	return tenantPath(e.TenantID) + "/events/" + id.Event.Format(e.ID)
}

// diagnosisTone is the tone of a diagnosis.
func (v DeliveryView) diagnosisTone() components.Tone { return components.DeliveryTone(v.Line.Status) }

// wrongFields are the errors of a filter, with the ids of its controls.
func wrongFields(wrong map[string]string) []components.Wrong {
	return pages.WrongList(wrong, "q", "tenant", "endpoint", "host", "type", "code", "since", "until")
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

func deliveryColumns(tenants bool) []components.Column {
	columns := []components.Column{{Label: "Delivery"}, {Label: "Status"}}
	if tenants {
		columns = append(columns, components.Column{Label: "Tenant"})
	}
	return append(columns, components.Column{Label: "Endpoint"}, components.Column{Label: "Attempts", Number: true},
		components.Column{Label: "Last response"},
		components.Column{Label: "Next attempt"}, components.Column{Label: "Created"})
}
