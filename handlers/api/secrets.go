package api

import (
	"crypto/rand"
	"net/http"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

func (a *api) listSecrets(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var live []endpoints.SecretState
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		live, err = endpoints.ListSecrets(c.Ctx(), q, c.Actor.Tenant, u)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, SecretPage{Data: views(live, secretView), NextCursor: cursorOrNull("")})
}

// rotateSecret shows the new secret this once.
func (a *api) rotateSecret(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var in RotateInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	overlap := endpoint.DefaultOverlap
	set(&overlap, in.OverlapSeconds)
	if err := endpoint.CheckOverlap(overlap); err != nil {
		return err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	var added endpoints.SecretState
	var secret endpoint.Secret
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		choose := func(e sql.Endpoint, newest *sql.EndpointSecret) (endpoint.Secret, error) {
			var err error
			secret, err = newSecret(signature.Format(e.Format), in.SecretType, in.Secret, typeAfter(e, newest), random)
			return secret, err
		}
		if added, err = endpoints.RotateSecret(c.Ctx(), q, a.Keys, c.Actor.Tenant, u, overlap, choose); err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.rotate_secret", u, map[string]any{
			"secret": id.Secret.Format(added.ID), "overlap_seconds": overlap, "imported": in.Secret != nil,
		})
	})
	if err != nil {
		return err
	}
	v := secretView(added)
	return c.Answer(http.StatusCreated, SecretCreated{
		ID: v.ID, Type: v.Type, Hint: v.Hint, PublicKey: v.PublicKey, Signing: v.Signing, CreatedAt: v.CreatedAt,
		ExpiresAt: v.ExpiresAt, Secret: secret.Text,
	})
}

// typeAfter is the type of a new secret where none is asked for: that of the newest, as far as the format knows it.
func typeAfter(e sql.Endpoint, newest *sql.EndpointSecret) endpoint.SecretType {
	if newest != nil && newest.PublicKey != nil && signature.Format(e.Format) == signature.Standard {
		return endpoint.Ed25519
	}
	return endpoint.HMAC
}

func (a *api) switchSecret(c *handlers.Call) error {
	u, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	var newest endpoints.SecretState
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		var changed bool
		if newest, changed, err = endpoints.SwitchSecret(c.Ctx(), q, c.Actor.Tenant, u); err != nil || !changed {
			return err
		}
		return auditEndpoint(c, q, "endpoint.switch_secret", u, map[string]string{"secret": id.Secret.Format(newest.ID)})
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, secretView(newest))
}

// secretView is what may be shown of a secret.
func secretView(s endpoints.SecretState) Secret {
	public := ""
	if s.PublicKey != nil {
		public = *s.PublicKey
	}
	return Secret{
		ID: id.Secret.Format(s.ID), Type: SecretType(typeOf(public)), Hint: s.Hint, PublicKey: orNullText(public),
		Signing: s.Signing, CreatedAt: s.CreatedAt, ExpiresAt: orNull(s.ExpiresAt),
	}
}
