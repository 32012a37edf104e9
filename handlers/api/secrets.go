package api

import (
	"crypto/rand"
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
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

// encodeSecret is the part of a secret that can be shown.
func encodeSecret(s show.Secret) Secret {
	return Secret{
		ID:        id.Secret.Format(s.ID),
		Type:      SecretType(s.Type),
		Hint:      s.Hint,
		PublicKey: orNullText(s.Public),
		Signing:   s.Signing,
		CreatedAt: Time(s.CreatedAt),
		ExpiresAt: orNullAt(s.ExpiresAt),
	}
}
