package handlers

import (
	"posthorn/domain/id"
	"posthorn/views/pages"
)

// Shell is what stands around a page's content: the tenant, who is signed in, the navigation's item, and what was just
// done, which is shown once.
func (c *Call) Shell(title, active string) pages.Frame {
	f := pages.Frame{Title: title, Active: active, Theme: Theme(c.Request), Flashes: c.flashes(), Role: string(c.Actor.Role)}
	if !c.Actor.Tenant.IsZero() {
		f.Tenant, f.TenantID = c.Actor.TenantName, id.Tenant.Format(c.Actor.Tenant)
	}
	switch a := &c.Actor; {
	case a.Portal != nil:
		f.Brand, f.Accent, f.ReturnURL = a.Portal.Brand, a.Portal.Accent, a.Portal.ReturnURL
	case !a.Operator.ID.IsZero():
		f.Person = a.Operator.Email
	default:
		f.Person = a.Person.Name
	}
	return f
}
