package api

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// external checks a tenant's external id; an absent one is empty.
func (w *wrongFields) external(field string, given *string) string {
	if given == nil {
		return ""
	}
	if !id.ValidExternal(id.Tenant, *given) {
		w.add(field, "external_id_malformed", fmt.Sprintf(
			"An external id has 1 to %d characters, no control characters and no white space at either end, and is not an id of Posthorn.", id.MaxExternal))
	}
	return *given
}

// putTenant creates the tenant of an external id, or changes the one that has it.
func (a *api) putTenant(c *handlers.Call) error {
	external := c.Actor.NewTenant
	if external == "" {
		return a.updateTenant(c)
	}
	var in TenantPatch
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	if in.ExternalID.IsSpecified() {
		return fault.InvalidField("external_id", "external_id_misplaced", "The path names the external id. Leave the field out.")
	}
	change, err := a.tenantChange(in)
	if err != nil {
		return err
	}
	row, created, err := accounts.EnsureTenant(c.Ctx(), a.DB, a.tenantOf(external), c.Author())
	if err != nil {
		return err
	}
	var shown []Tenant
	err = a.DB.Tenant(c.Ctx(), row.ID, func(q *sql.Queries) error {
		if row, err = accounts.ChangeTenant(c.Ctx(), q, row.ID, change, c.Author()); err != nil {
			return err
		}
		shown, err = viewTenants(c, q, row)
		return err
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return c.Answer(status, shown[0])
}

// tenantOf is a new tenant with nothing but its external id.
func (a *api) tenantOf(external string) accounts.NewTenant {
	name := external
	if utf8.RuneCountInString(name) > maxTenantName {
		name = string([]rune(name)[:maxTenantName])
	}
	return accounts.NewTenant{Name: name, ExternalID: external, RetentionDays: a.Settings.RetentionDays}
}

const maxTenantName = 100

// inTenant completes the admission of a platform key that named a tenant which does not exist. The tenant is created
// if the request says create_tenant and the key has the permission. It is committed before the rest of the request. A
// request that fails afterwards leaves a tenant without contents, which the retry finds.
func (a *api) inTenant(c *handlers.Call, create bool) error {
	if c.Actor.NewTenant == "" {
		return nil
	}
	if !create {
		return fault.ErrNotFound
	}
	if !c.Actor.Scopes.Has(access.TenantsWrite) {
		return fault.New(fault.Forbidden, "scope_missing", fmt.Sprintf("create_tenant needs the scope %s, which this key lacks.", access.TenantsWrite))
	}
	row, _, err := accounts.EnsureTenant(c.Ctx(), a.DB, a.tenantOf(c.Actor.NewTenant), c.Author())
	if err == nil && row.State != "active" {
		err = fault.New(fault.Forbidden, "tenant_suspended", "This tenant is suspended.")
	}
	c.Actor.Tenant, c.Actor.NewTenant = row.ID, ""
	return err
}
