package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
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
	var key show.Key
	var text string
	err = c.Tx(func(q *db.Tx) error {
		key, text, err = accounts.CreateKey(c.Ctx(), q, wanted, a.Settings.KeysPerTenant, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	v := encodeKey(key)
	return c.Answer(http.StatusCreated, KeyCreated{
		ID:         v.ID,
		Name:       v.Name,
		Prefix:     v.Prefix,
		Scopes:     v.Scopes,
		CreatedAt:  v.CreatedAt,
		ExpiresAt:  v.ExpiresAt,
		RevokedAt:  v.RevokedAt,
		LastUsedAt: v.LastUsedAt,
		APIKey:     text,
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
	return list(c, handlers.List{Name: "keys"}, ranged(c, accounts.ListKeys), encodeKey)
}

func (a *api) getKey(c *handlers.Call) error {
	return get(c, "key_id", accounts.ReadKey, encodeKey)
}

// revokeKey revokes a key. Every node drops what it caches about keys within a second.
func (a *api) revokeKey(c *handlers.Call) error {
	return end(c, "key_id", func(q *db.Tx, keyID id.UUID) error {
		_, err := accounts.EndKey(c.Ctx(), q, c.Actor.Tenant, keyID, c.Author())
		return err
	})
}

func encodeKey(k show.Key) Key {
	return Key{
		ID:         id.Key.Format(k.ID),
		Name:       k.Name,
		Prefix:     k.Prefix,
		Scopes:     orEmpty(k.Scopes),
		CreatedAt:  Time(k.CreatedAt),
		ExpiresAt:  orNullAt(k.ExpiresAt),
		RevokedAt:  orNullAt(k.RevokedAt),
		LastUsedAt: orNullAt(k.LastUsedAt),
	}
}
