package console

import (
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// PausesView lists the operators' pauses.
type PausesView struct {
	Shell  layout.Shell
	Root   string
	Pauses []PauseLine
	Scope  string // as in the form
	Of     components.FieldProps
	Known  []components.Option // suggestions for Of
	Reason components.FieldProps
}

// PauseLine is one pause.
type PauseLine struct {
	ID, Scope, Of, Reason, By, Tenant, TenantPath string
	Since                                         time.Time
	ReasonInput                                   components.ReasonInput // of a rejected form that ends the pause
}

func (v PausesView) scopes() []components.Option {
	options := []components.Option{
		{Value: "", Label: "Select what to pause"},
		{Value: "tenant", Label: "One tenant"},
		{Value: "host", Label: "One host"},
		{Value: "endpoint", Label: "One endpoint"},
		{Value: "platform", Label: "Everything"},
	}
	for i := range options {
		options[i].Selected = options[i].Value == v.Scope
	}
	return options
}
