package auth

import (
	"net/http"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// listTenants is where people switch between their tenants.
func (a *auth) listTenants(c *handlers.Call) error {
	v := pages.TenantsView{Shell: c.Shell("Your tenants", "")}
	err := a.DB.Account(c.Ctx(), func(q *db.Queries) error {
		tenants, err := q.TenantsOf(c.Ctx(), c.Actor.Person.ID)
		for _, t := range tenants {
			v.Tenants = append(v.Tenants, pages.TenantLink{ID: id.Tenant.Format(t.TenantID), Name: t.TenantName, Role: t.Role})
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Tenants(v))
}
