package pages

import (
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// DeleteTenantView asks for confirmation before a tenant is deleted.
type DeleteTenantView struct {
	Shell        layout.Shell
	Root         string // of the settings page
	Name, Reason components.FieldProps
	ExportReason components.FieldProps
	show.Holdings
	Wrong  string // why it can't be deleted
	Closed bool   // the reader is an operator
}

// wrong are the form's errors, for its head.
func (v DeleteTenantView) wrong() map[string]string {
	return map[string]string{"": v.Wrong, "name": v.Name.Error, "reason": v.Reason.Error, "export-reason": v.ExportReason.Error}
}

func (v DeleteTenantView) members() string {
	text := components.Many(v.Members, "member loses", "members lose") + " access"
	if !v.Closed {
		text += ", you included"
	}
	return text + ". Invitations and portal links stop working. Personal accounts stay."
}

func (v DeleteTenantView) keys() string {
	if v.Keys == 0 {
		return "There are no API keys."
	}
	return components.Many(v.Keys, "API key stops working.", "API keys stop working.")
}

func (v DeleteTenantView) waiting() string {
	switch {
	case v.Waiting == 0:
		return "No deliveries are waiting."
	case v.Waiting > show.MaxWaiting:
		return "More than " + components.Count(show.MaxWaiting) + " waiting deliveries fail permanently (endpoint_deleted)."
	}
	return components.Many(v.Waiting, "waiting delivery fails", "waiting deliveries fail") + " permanently (endpoint_deleted)."
}

// summary lists the errors of one of the two forms.
func (v DeleteTenantView) summary() string {
	if v.ExportReason.Error != "" {
		return "Nothing was exported"
	}
	return "Nothing was deleted"
}
