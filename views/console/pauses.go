package console

import (
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// PausesView lists the operators' pauses.
type PausesView struct {
	Shell  layout.Shell
	Root   string
	Pauses []show.Pause
	Names  map[string]string // of operators by id
	Scope  string            // as in the form
	Of     components.FieldProps
	Known  []components.Option // suggestions for Of
	Reason components.FieldProps
	// the pause whose form to end it was rejected, and that form
	Rejected    id.UUID
	ReasonInput components.ReasonInput
}

// reason is the input of the form that ends a pause.
func (v PausesView) reason(p show.Pause) components.ReasonInput {
	if p.ID != v.Rejected {
		return components.ReasonInput{}
	}
	return v.ReasonInput
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
