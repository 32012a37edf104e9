package api

import (
	"crypto/rand"
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

func (a *api) listSecrets(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var live []endpoints.SecretState
	err = c.Tx(func(q *db.Tx) error {
		live, err = endpoints.ListSecrets(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, SecretPage{Data: views(live, secretView), NextCursor: cursorOrNull("")})
}

// rotateSecret shows the new secret once.
func (a *api) rotateSecret(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
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
	err = c.Tx(func(q *db.Tx) error {
		choose := func(e sql.Endpoint, newest *sql.EndpointSecret) (endpoint.Secret, error) {
			var err error
			secret, err = newSecret(endpoints.Wire(e), in.SecretType, in.Secret, typeAfter(e, newest), random)
			return secret, err
		}
		if added, err = endpoints.RotateSecret(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID,
			endpoints.Rotation{Overlap: overlap, Choose: choose}); err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.rotate_secret", endpointID, map[string]any{
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

// typeAfter is the type of a new secret if none is requested: the type of the newest one, if the format knows it.
func typeAfter(e sql.Endpoint, newest *sql.EndpointSecret) endpoint.SecretType {
	if newest != nil && newest.PublicKey != nil && signature.Format(e.Format) == signature.Standard {
		return endpoint.Ed25519
	}
	return endpoint.HMAC
}

func (a *api) switchSecret(c *handlers.Call) error {
	endpointID, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	var newest endpoints.SecretState
	err = c.Tx(func(q *db.Tx) error {
		var changed bool
		if newest, changed, err = endpoints.SwitchSecret(c.Ctx(), q, c.Actor.Tenant, endpointID); err != nil ||
			!changed {
			return err
		}
		return auditEndpoint(c, q, "endpoint.switch_secret", endpointID, map[string]string{"secret": id.Secret.Format(newest.ID)})
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, secretView(newest))
}

// secretView is the part of a secret that can be shown.
func secretView(s endpoints.SecretState) Secret {
	public := ""
	if s.PublicKey != nil {
		public = *s.PublicKey
	}
	return Secret{
		ID: id.Secret.Format(s.ID), Type: SecretType(typeOf(public)), Hint: s.Hint, PublicKey: orNullText(public),
		Signing: s.Signing, CreatedAt: Time(s.CreatedAt), ExpiresAt: orNullAt(s.ExpiresAt),
	}
}
