package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

type keyCreateCommand struct {
	Tenant   string        `xor:"whose" required:"" placeholder:"TEN_ID" help:"The tenant the key belongs to."`
	Platform bool          `xor:"whose" required:"" help:"Create a platform key, which can act for any tenant."`
	Scopes   []string      `required:"" placeholder:"SCOPE" help:"What the key can do: ${scopes}; or all."`
	Name     string        `default:"Created on the command line" help:"What the key is for."`
	Lives    time.Duration `placeholder:"DURATION" help:"How long the key is valid, such as 720h. Default: the key never expires."`
	JSON     bool          `name:"json" help:"Print JSON: key_id, api_key and scopes."`
}

// Run makes a key of a tenant or of the platform.
func (c keyCreateCommand) Run(ctx context.Context, a *app) error {
	k, err := c.read()
	if err != nil {
		return err
	}
	var key show.Key
	var text string
	err = a.withDatabase(ctx, func(d *db.DB) error {
		return d.Console(ctx, func(q *db.Tx) error {
			if k.Tenant != nil {
				if _, err := accounts.FindTenant(ctx, q, *k.Tenant); err != nil {
					return err
				}
			}
			key, text, err = makeKey(ctx, q, k)
			return err
		})
	})
	if fault.Is(err, fault.ErrNotFound.Code) {
		return fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no tenant "+c.Tenant+". `posthorn tenant list` shows those there are.")
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			ID     string   `json:"key_id"`
			Key    string   `json:"api_key"`
			Scopes []string `json:"scopes"`
		}{id.Key.Format(key.ID), text, key.Scopes})
	}
	a.printf("Key      %s\nAPI key  %s\nScopes   %s\n\nThe key is shown this once.\n", id.Key.Format(key.ID), text, strings.Join(key.Scopes, ", "))
	return nil
}

// read turns the flags into the key to make.
func (c keyCreateCommand) read() (accounts.NewKey, error) {
	var k accounts.NewKey
	name, err := checkName("--name", c.Name)
	if err != nil {
		return k, err
	}
	allowed := access.PlatformScopes()
	if !c.Platform {
		tenant, err := id.Tenant.Parse(c.Tenant)
		if err != nil {
			return k, fault.New(fault.Invalid, "tenant_invalid", "--tenant is not a tenant's id. `posthorn tenant list` shows those there are; for a platform key write --platform.")
		}
		k.Tenant, allowed = &tenant, access.TenantScopes()
	}
	scopes, unknown := access.ParseScopes(c.Scopes, allowed)
	if slices.Equal(c.Scopes, []string{"all"}) {
		scopes, unknown = allowed, nil
	}
	if len(unknown) > 0 || len(scopes) == 0 {
		return k, fault.New(fault.Invalid, "scope_unknown", "--scopes holds what is no scope of such a key ("+strings.Join(unknown, ", ")+"). Choose from "+scopeNames(allowed)+", or all.")
	}
	if c.Lives < 0 {
		return k, fault.New(fault.Invalid, "lives_invalid", "--lives is in the past. Write a time span, as 720h.")
	}
	if c.Lives > 0 {
		end := time.Now().Add(c.Lives).UTC()
		k.ExpiresAt = &end
	}
	k.Name, k.Scopes = name, scopes
	return k, nil
}

// makeKey stores a key and notes who made it, in the transaction at hand.
func makeKey(ctx context.Context, q *db.Tx, k accounts.NewKey) (show.Key, string, error) {
	key, text, err := accounts.MakeKey(ctx, q, k)
	if err != nil {
		return key, "", err
	}
	return key, text, audit(ctx, q, k.Tenant, "key.created", "key", id.Key.Format(key.ID))
}

func scopeNames(scopes access.Scopes) string { return strings.Join(scopes.Names(), ", ") }
