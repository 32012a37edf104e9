package pages

import (
	"posthorn/views/components"
	"posthorn/views/layout"
)

// DeleteTenantView asks whether a tenant is really to go.
type DeleteTenantView struct {
	Shell                           layout.Shell
	Root                            string // of the settings
	Name, Reason                    components.FieldProps
	Endpoints, Keys, Members, Waits int64
	Wrong                           string // why it can't be deleted
}

// wrong is what is wrong with the form, for its head.
func (v DeleteTenantView) wrong() map[string]string {
	return map[string]string{"": v.Wrong, "name": v.Name.Error, "reason": v.Reason.Error}
}

// manyCounted is up to where waiting deliveries are counted.
const manyCounted = 10_000

func (v DeleteTenantView) waiting() string {
	switch {
	case v.Waits == 0:
		return "No delivery waits."
	case v.Waits > manyCounted:
		return "More than " + components.Count(manyCounted) + " deliveries that wait end as failed (endpoint_deleted)."
	}
	return components.Many(v.Waits, "delivery that waits ends", "deliveries that wait end") + " as failed (endpoint_deleted)."
}
