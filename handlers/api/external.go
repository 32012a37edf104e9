package api

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// external checks a tenant's external id; an absent one is empty.
func (w *wrongFields) external(field string, given *string) string {
	if given == nil {
		return ""
	}
	if !id.ValidExternal(id.Tenant, *given) {
		w.add(field, "external_id_malformed", fmt.Sprintf(
			"An external id has 1 to %d characters, no control characters and no white space at either end, and doesn't have the form of a generated id.", id.MaxExternal))
	}
	return *given
}

// putTenant creates the tenant of an external id, or changes the existing one.
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
	t, created, err := accounts.EnsureTenant(c.Ctx(), a.DB, a.tenantOf(external), c.Author())
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), t.ID, func(q *db.Tx) error {
		_, err := accounts.ChangeTenant(c.Ctx(), q, t.ID, change, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	v, err := a.readTenant(c, t.ID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return c.Answer(status, v)
}

// tenantOf is a new tenant with an external id and the defaults.
func (a *api) tenantOf(external string) accounts.NewTenant {
	name := external
	if utf8.RuneCountInString(name) > maxTenantName {
		name = string([]rune(name)[:maxTenantName])
	}
	return accounts.NewTenant{Name: name, ExternalID: external, RetentionDays: a.Settings.RetentionDays}
}

const maxTenantName = 100

// newTenant is the tenant that a platform key named and that does not exist. The request must say create_tenant, and
// the key must have the permission.
func (a *api) newTenant(c *handlers.Call, create bool) (accounts.NewTenant, error) {
	if !create {
		return accounts.NewTenant{}, fault.ErrNotFound
	}
	if !c.Actor.Scopes.Has(access.TenantsWrite) {
		return accounts.NewTenant{}, fault.New(fault.Forbidden, "scope_missing", fmt.Sprintf("create_tenant needs the scope %s, which this key lacks.", access.TenantsWrite))
	}
	return a.tenantOf(c.Actor.NewTenant), nil
}

// inTenant runs fn as the call's tenant. If a platform key named a tenant that does not exist, it is created in the
// same transaction, provided that the request says so.
func (a *api) inTenant(c *handlers.Call, create bool, fn func(*db.Tx) error) error {
	if c.Actor.NewTenant == "" {
		return c.Tx(fn)
	}
	t, err := a.newTenant(c, create)
	if err != nil {
		return err
	}
	return a.DB.ConsoleThenTenant(c.Ctx(), func(q *db.Tx) (id.UUID, error) {
		is, _, err := accounts.EnsureTenantIn(c.Ctx(), q, t, c.Author())
		c.Actor.Tenant = is.ID
		return is.ID, suspended(is, err)
	}, fn)
}

// suspended is the error of a tenant that is not active.
func suspended(t show.Tenant, err error) error {
	if err == nil && t.State != account.TenantActive {
		return fault.New(fault.Forbidden, "tenant_suspended", "This tenant is suspended.")
	}
	return err
}

// emit stores the items of a request. If the tenant has to be created, it and the first item are stored in one
// transaction.
func (a *api) emit(c *handlers.Call, create bool, items []emit.Item) ([]emit.Result, error) {
	if c.Actor.NewTenant == "" {
		return a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, items), nil
	}
	t, err := a.newTenant(c, create)
	if err != nil {
		return nil, err
	}
	first, stored := a.Emitter.EmitFirst(c.Ctx(), func(q *db.Tx) (id.UUID, bool, error) {
		is, created, err := accounts.EnsureTenantIn(c.Ctx(), q, t, c.Author())
		c.Actor.Tenant = is.ID
		return is.ID, created, suspended(is, err)
	}, items[0])
	if first.Err != nil {
		return nil, first.Err
	}
	if !stored { // a slightly earlier request created it
		return a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, items), nil
	}
	results := []emit.Result{first}
	if len(items) > 1 {
		results = append(results, a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, items[1:])...)
	}
	return results, nil
}
