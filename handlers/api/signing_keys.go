package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

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
