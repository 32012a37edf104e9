package main

import (
	"context"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
)

type platformTenantCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run makes the platform's own tenant, or finds it.
func (c platformTenantCommand) Run(ctx context.Context, a *app) error {
	var tenant id.UUID
	var key string
	err := a.withDatabase(ctx, func(d *db.DB) (err error) {
		tenant, key, err = accounts.EnsurePlatformTenant(ctx, d, db.Author{Kind: "command"})
		return err
	})
	if err != nil {
		return err
	}
	text := id.Tenant.Format(tenant)
	if c.JSON {
		out := map[string]string{"tenant_id": text}
		if key != "" {
			out["api_key"] = key
		}
		return a.printJSON(out)
	}
	a.printf("The platform's tenant is %s.\n", text)
	if key != "" {
		a.printf("Its API key, shown this once: %s\nCreate endpoints with it that subscribe to endpoint.*, secret.rotated or delivery.failed.\n", key)
	}
	return nil
}
