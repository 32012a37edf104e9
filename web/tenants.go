package main

import (
	"context"
	"errors"
	"os/user"
	"text/tabwriter"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/web/cli"
)

// Defaults of a tenant made here; the API has the same.
const retentionDays = 90

type (
	tenantCreateCommand struct {
		Name       string `required:"" placeholder:"NAME" help:"The organization's name."`
		ExternalID string `name:"external-id" placeholder:"ID" help:"Your own id of the tenant."`
		JSON       bool   `name:"json" help:"Print JSON: tenant_id and api_key."`
	}
	tenantListCommand struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
)

// Run makes a tenant and its first key in one transaction.
func (c tenantCreateCommand) Run(ctx context.Context, a *app) error {
	name, err := checkName("--name", c.Name)
	if err != nil {
		return err
	}
	if c.ExternalID != "" && !id.ValidExternal(id.Tenant, c.ExternalID) {
		return errors.New("--external-id has 1 to 256 characters, no control characters and no white space at either end, and is not an id of Posthorn")
	}
	var tenant show.Tenant
	key := ""
	err = a.withDatabase(ctx, func(d *db.DB) (err error) {
		tenant, key, err = accounts.CreateTenant(ctx, d, accounts.NewTenant{
			Name:          name,
			ExternalID:    c.ExternalID,
			RetentionDays: retentionDays,
		}, commandAuthor())
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			Tenant string `json:"tenant_id"`
			Key    string `json:"api_key"`
		}{id.Tenant.Format(tenant.ID), key})
	}
	a.printf("Tenant   %s\nAPI key  %s\n\nThe key is shown only once. It has every scope in the tenant.\n", id.Tenant.Format(tenant.ID), key)
	return nil
}

// Run lists all tenants, oldest first.
func (c tenantListCommand) Run(ctx context.Context, a *app) error {
	var all []show.Tenant
	err := a.readDatabase(ctx, func(d *db.DB) error {
		return d.Console(ctx, func(q *db.Tx) (err error) {
			all, err = accounts.AllTenants(ctx, q)
			return err
		})
	})
	if err != nil {
		return err
	}
	if c.JSON {
		type tenant struct {
			ID        string    `json:"id"`
			Name      string    `json:"name"`
			State     string    `json:"state"`
			CreatedAt time.Time `json:"created_at"`
		}
		list := make([]tenant, len(all))
		for i, t := range all {
			list[i] = tenant{id.Tenant.Format(t.ID), t.Name, string(t.State), t.CreatedAt}
		}
		return a.printJSON(list)
	}
	if len(all) == 0 {
		a.printf("No tenants yet. `posthorn tenant create --name Acme` creates one.\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	cli.Fprintf(table, "TENANT\tSTATE\tCREATED\tNAME\n")
	for _, t := range all {
		cli.Fprintf(table, "%s\t%s\t%s\t%s\n", id.Tenant.Format(t.ID), t.State, t.CreatedAt.Local().Format("2006-01-02 MST"), t.Name)
	}
	return table.Flush()
}

// checkName holds a name to what the API takes too.
func checkName(flag, name string) (string, error) {
	name, err := account.Name(flag, name)
	if err != nil {
		return "", fault.New(fault.Invalid, "name_invalid", flag+" needs 1 to 100 visible characters on one line, without a web address.")
	}
	return name, nil
}

// audit notes a command, in the transaction of what it does.
func audit(ctx context.Context, q *db.Tx, tenant *id.UUID, action, kind, object string) error {
	return db.Audit(ctx, q, commandAuthor(), db.Audited{
		Tenant: tenant,
		Action: action,
		Kind:   kind,
		Object: object,
	})
}

// commandAuthor is who typed a command: the account on this machine.
func commandAuthor() db.Author {
	actor := "unknown"
	if u, err := user.Current(); err == nil {
		actor = u.Username
	}
	return db.Author{Kind: "command", ID: actor}
}
