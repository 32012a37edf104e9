package api

import (
	"net/http"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/subscriptions"
	"posthorn/domain/id"
	rules "posthorn/domain/mcp"
	"posthorn/handlers"
	"posthorn/handlers/mcp"
)

func (a *api) getMCPAccess(c *handlers.Call) error {
	found, err := a.mcpAccess(c)
	if err != nil {
		return err
	}
	return a.showMCPAccess(c, found)
}

func (a *api) mcpAccess(c *handlers.Call) (found rules.Access, err error) {
	tenant := c.PathID(handlers.TenantParam)
	err = a.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) (err error) {
		found, err = subscriptions.Access(c.Ctx(), q, tenant)
		return err
	})
	return found, err
}

func (a *api) showMCPAccess(c *handlers.Call, of rules.Access) error {
	resource := mcp.Resource(a.BaseURL, c.PathID(handlers.TenantParam))
	out := MCPAccess{Resource: resource, Audience: of.Audience, MessageIDHosts: of.MessageIDHosts}
	if out.Audience == "" {
		out.Audience = resource
	}
	for into, text := range map[*nullable.Nullable[string]]string{&out.Issuer: of.Issuer, &out.Claim: of.Claim, &out.ClaimValue: of.Value} {
		if *into = nullable.NewNullNullable[string](); text != "" {
			into.Set(text)
		}
	}
	return c.Answer(http.StatusOK, out)
}

func (a *api) updateMCPAccess(c *handlers.Call) error {
	var in MCPAccessPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	tenant := c.PathID(handlers.TenantParam)
	was, err := a.mcpAccess(c)
	if err != nil {
		return err
	}
	to := was
	for into, given := range map[*string]nullable.Nullable[string]{&to.Issuer: in.Issuer, &to.Audience: in.Audience, &to.Claim: in.Claim, &to.Value: in.ClaimValue} {
		if given.IsSpecified() {
			*into, _ = given.Get() // null: empty
		}
	}
	set(&to.MessageIDHosts, in.MessageIDHosts)
	if to, err = to.Check(); err != nil {
		return err
	}
	if to.Issuer != "" && to.Issuer != was.Issuer {
		if err := a.OpenID.CheckAuthority(c.Ctx(), a.Egress, to.Issuer, a.Log.With("tenant", id.Tenant.Format(tenant))); err != nil {
			return err
		}
	}
	err = a.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) error {
		return subscriptions.SetAccess(c.Ctx(), q, tenant, to, c.Author())
	})
	if err != nil {
		return err
	}
	return a.showMCPAccess(c, to)
}
