package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// createKey creates a key with at most the scopes of the caller's key.
func (a *api) createKey(c *handlers.Call) error {
	var in KeyInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	wanted, err := a.checkKey(c, in)
	if err != nil {
		return err
	}
	var row sql.APIKey
	var text string
	err = c.Tx(func(q *db.Tx) error {
		row, text, err = accounts.CreateKey(c.Ctx(), q, wanted, a.Settings.KeysPerTenant, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	v := keyView(row)
	return c.Answer(http.StatusCreated, KeyCreated{
		ID: v.ID, Name: v.Name, Prefix: v.Prefix, Scopes: v.Scopes, CreatedAt: v.CreatedAt, ExpiresAt: v.ExpiresAt,
		RevokedAt: v.RevokedAt, LastUsedAt: v.LastUsedAt, APIKey: text,
	})
}

func (a *api) checkKey(c *handlers.Call, in KeyInput) (accounts.NewKey, error) {
	tenant := c.Actor.Tenant
	out := accounts.NewKey{Tenant: &tenant}
	var wrong wrongFields
	out.Name = wrong.name("name", &in.Name)
	names := make([]string, len(in.Scopes))
	for i, s := range in.Scopes {
		names[i] = string(s)
	}
	var err error
	if out.Scopes, err = access.GrantScopes(names, false); err != nil {
		wrong = append(wrong, fault.As(err).Fields...)
	}
	if given, err := in.ExpiresAt.Get(); err == nil {
		at := time.Time(given)
		if !at.After(a.Now()) {
			wrong.add("expires_at", "expires_at_past", "expires_at is in the past. Use a time in the future, or null for a key that never expires.")
		}
		at = at.UTC().Truncate(time.Microsecond) // PostgreSQL's precision
		out.ExpiresAt = &at
	}
	if err := wrong.err(); err != nil {
		return out, err
	}
	if lacks := c.Actor.Scopes.Lacks(out.Scopes); len(lacks) > 0 {
		return out, fault.New(fault.Forbidden, "scope_beyond_own", fmt.Sprintf(
			"A key can't grant scopes that it lacks: %s. Leave these scopes out, or use a key that has them.", strings.Join(lacks.Names(), ", ")))
	}
	return out, nil
}

func (a *api) listKeys(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "keys"})
	if err != nil {
		return err
	}
	after := p.Edge()
	var rows []sql.APIKey
	err = c.Tx(func(q *db.Tx) error {
		ask := sql.ListKeysDownParams{TenantID: &c.Actor.Tenant, After: after, Most: int32(p.Limit + 1)}
		if p.Ascending {
			rows, err = q.ListKeysUp(c.Ctx(), sql.ListKeysUpParams(ask))
		} else {
			rows, err = q.ListKeysDown(c.Ctx(), ask)
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(k sql.APIKey) []byte { return k.ID[:] })
	return c.Answer(http.StatusOK, KeyPage{Data: views(rows, keyView), NextCursor: cursorOrNull(next)})
}

func (a *api) getKey(c *handlers.Call) error {
	keyID, err := c.ID(id.Key, "key_id")
	if err != nil {
		return err
	}
	var row sql.APIKey
	err = c.Tx(func(q *db.Tx) error {
		row, err = q.GetKey(c.Ctx(), sql.GetKeyParams{TenantID: &c.Actor.Tenant, ID: keyID})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, keyView(row))
}

// revokeKey revokes a key. Every node drops what it caches about keys within a second.
func (a *api) revokeKey(c *handlers.Call) error {
	keyID, err := c.ID(id.Key, "key_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := accounts.EndKey(c.Ctx(), q, c.Actor.Tenant, keyID, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}

func keyView(k sql.APIKey) Key {
	return Key{
		ID: id.Key.Format(k.ID), Name: k.Name, Prefix: k.Prefix, Scopes: orEmpty(k.Scopes),
		CreatedAt: Time(k.CreatedAt),
		ExpiresAt: orNullAt(k.ExpiresAt), RevokedAt: orNullAt(k.RevokedAt), LastUsedAt: orNullAt(k.LastUsedAt),
	}
}
