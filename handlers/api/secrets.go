package api

import (
	"crypto/rand"
	"net/http"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) listSecrets(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var live []show.Secret
	err := c.Tx(func(q *db.Tx) (err error) {
		live, err = endpoints.ListSecrets(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, SecretPage{Data: views(live, encodeSecret), NextCursor: cursorOrNull("")})
}

// rotateSecret shows the new secret once.
func (a *api) rotateSecret(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in RotateInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	overlap := endpoint.DefaultOverlap
	set(&overlap, in.OverlapSeconds)
	var added show.Secret
	var secret endpoint.Secret
	err := c.Tx(func(q *db.Tx) (err error) {
		added, secret, err = a.editor(c).Rotate(c.Ctx(), q, c.Actor.Tenant, endpointID, overlap, secretRequest(in.SecretType, in.Secret))
		return err
	})
	if err != nil {
		return err
	}
	v := encodeSecret(added)
	return c.Answer(http.StatusCreated, SecretCreated{
		ID:        v.ID,
		Type:      v.Type,
		Hint:      v.Hint,
		PublicKey: v.PublicKey,
		Signing:   v.Signing,
		CreatedAt: v.CreatedAt,
		ExpiresAt: v.ExpiresAt,
		Check:     v.Check,
		Secret:    secret.Text,
	})
}

// secretRequest is a request for a secret.
func secretRequest(kind *SecretType, text *string) (r endpoint.SecretRequest) {
	if kind != nil {
		r.Type = endpoint.SecretType(*kind)
	}
	set(&r.Text, text)
	_, _ = rand.Read(r.Random[:]) // never fails (crypto/rand)
	return r
}

func (a *api) switchSecret(c *handlers.Call) error {
	endpointID, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Secret, error) {
		return a.editor(c).Switch(c.Ctx(), q, c.Actor.Tenant, endpointID)
	}, encodeSecret)
}

// checkSecret requests a check of one secret. The result follows.
func (a *api) checkSecret(c *handlers.Call) error {
	endpointID, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	return respond(c, http.StatusAccepted, func(q *db.Tx) (show.Secret, error) {
		return a.editor(c).CheckSecret(c.Ctx(), q, c.Actor.Tenant, endpointID, c.PathID("secret_id"))
	}, encodeSecret)
}

func (a *api) endSecret(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in EndSecretInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	unchecked := false
	set(&unchecked, in.Unchecked)
	return respond(c, http.StatusOK, func(q *db.Tx) ([]show.Secret, error) {
		return a.editor(c).EndSecret(c.Ctx(), q, c.Actor.Tenant, endpointID, c.PathID("secret_id"), unchecked)
	}, func(left []show.Secret) SecretPage {
		return SecretPage{Data: views(left, encodeSecret), NextCursor: cursorOrNull("")}
	})
}

func (a *api) extendSecret(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in ExtendSecretInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Secret, error) {
		return a.editor(c).ExtendSecret(c.Ctx(), q, c.Actor.Tenant, endpointID, c.PathID("secret_id"), in.OverlapSeconds)
	}, encodeSecret)
}

// encodeSecret is the part of a secret that can be shown.
func encodeSecret(s show.Secret) Secret {
	v := Secret{
		ID:        id.Secret.Format(s.ID),
		Type:      SecretType(s.Type),
		Hint:      s.Hint,
		PublicKey: orNullText(s.Public),
		Signing:   s.Signing,
		CreatedAt: Time(s.CreatedAt),
		ExpiresAt: orNullAt(s.ExpiresAt),
		Check:     nullable.NewNullNullable[SecretCheck](),
	}
	if s.Check != nil {
		v.Check.Set(SecretCheck{
			State:      SecretCheckState(s.Check.State),
			At:         Time(s.Check.At),
			StatusCode: orNullZero(s.Check.Status),
			Detail:     s.Check.Detail,
		})
	}
	return v
}

func (a *api) listSigningKeys(c *handlers.Call) error {
	return respond(c, http.StatusOK, func(q *db.Tx) ([]show.SigningKey, error) {
		return endpoints.SigningKeys(c.Ctx(), q, c.Actor.Tenant)
	}, func(keys []show.SigningKey) SigningKeys {
		return SigningKeys{Data: views(keys, encodeSigningKey), JwksURL: a.BaseURL + httpsig.KeysPath(id.Tenant.Format(c.Actor.Tenant))}
	})
}

func (a *api) rotateSigningKeys(c *handlers.Call) error {
	var in RotateSigningKeysInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	startsIn := httpsig.DefaultStart
	set(&startsIn, in.StartsInSeconds)
	return respond(c, http.StatusCreated, func(q *db.Tx) (show.SigningKey, error) {
		return a.editor(c).RotateSigningKeys(c.Ctx(), q, c.Actor.Tenant, startsIn)
	}, encodeSigningKey)
}

func encodeSigningKey(k show.SigningKey) SigningKey {
	return SigningKey{
		ID:        id.SigningKey.Format(k.ID),
		KeyID:     k.Thumbprint(),
		State:     SigningKeyState(k.State),
		PublicKey: k.Text(),
		CreatedAt: Time(k.CreatedAt),
		StartsAt:  Time(k.StartsAt),
		ExpiresAt: orNullAt(k.ExpiresAt),
	}
}
