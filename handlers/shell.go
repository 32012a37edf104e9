package handlers

import (
	"strings"

	"posthorn/domain/id"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// Shell is what stands around a page's content: the tenant, who is signed in, the navigation's item, and what was just
// done, which is shown once.
func (c *Call) Shell(title, active string) layout.Shell {
	s := layout.Shell{Title: title, Active: active, Theme: Theme(c.Request), Role: c.Actor.Role, Warnings: c.warnings}
	if texts := c.flashes(); len(texts) > 0 {
		s.Flash = layout.Flash{Tone: components.Good, Text: strings.Join(texts, " ")}
	}
	if !c.Actor.Tenant.IsZero() {
		s.Tenant = layout.Tenant{ID: id.Tenant.Format(c.Actor.Tenant), Name: c.Actor.TenantName}
		for _, t := range c.tenants {
			if t.TenantID != c.Actor.Tenant {
				s.Tenant.Others = append(s.Tenant.Others, layout.TenantLink{ID: id.Tenant.Format(t.TenantID), Name: t.TenantName})
			}
		}
	}
	switch a := &c.Actor; {
	case a.Portal != nil:
		s.Portal, s.Secrets, s.Brand, s.Accent, s.Return = true, a.Portal.AllowSecrets, a.Portal.Brand, strings.TrimPrefix(a.Portal.Accent, "#"), a.Portal.ReturnURL
	case a.Viewing != nil:
		s.Operator, s.Person = true, layout.Person{Name: a.Operator.Name, Email: a.Operator.Email}
		s.View = &layout.View{Until: a.Viewing.Until, Reason: a.Viewing.Reason, Acting: a.Viewing.Acting}
	case !a.Operator.ID.IsZero():
		s.Operator, s.Person = true, layout.Person{Name: a.Operator.Name, Email: a.Operator.Email}
	default:
		s.Person = layout.Person{Name: a.Person.Name, Email: a.Person.Email}
	}
	return s
}
