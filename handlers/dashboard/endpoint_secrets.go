package dashboard

import (
	"crypto/rand"
	"net/http"
	"strconv"

	"posthorn/db"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) showSecrets(c *handlers.Call) error {
	v, err := a.secretsView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Secrets(v))
}

// secretsView reads an endpoint's live secrets.
func (a *dashboard) secretsView(c *handlers.Call) (v pages.SecretsView, err error) {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return v, err
	}
	var e db.Endpoint
	var live []db.SecretState
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		if e, err = q.GetEndpoint(c.Ctx(), db.GetEndpointParams{TenantID: c.Actor.Tenant, ID: u}); err != nil {
			return err
		}
		live, err = q.ListSecrets(c.Ctx(), c.Actor.Tenant, u)
		return err
	})
	if err != nil {
		return v, err
	}
	v = pages.SecretsView{
		EndpointHead: head(c, e, "secrets"), OneSlot: signature.Format(e.Format).OneSlot(), KeyPairs: signature.Format(e.Format) == signature.Standard, Overlap: strconv.Itoa(endpoint.DefaultOverlap),
		Switch: len(live) > 0 && !live[0].Signing,
	}
	for _, s := range live {
		row := pages.SecretRow{Hint: s.Hint, Type: "HMAC", Signing: s.Signing, Created: s.CreatedAt}
		if s.PublicKey != nil {
			row.Type, row.Public = "ed25519", *s.PublicKey
		}
		if s.ExpiresAt != nil {
			row.Expires = *s.ExpiresAt
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

// rotateSecret makes a new secret and shows it on the answer's page, and on no other.
func (a *dashboard) rotateSecret(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	overlap, kind, given := number(in.Get("overlap")), endpoint.SecretType(in.Get("secret_type")), in.Get("secret")
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	var secret endpoint.Secret
	err = endpoint.CheckOverlap(overlap)
	if err == nil {
		err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
			choose := func(e db.Endpoint, newest *db.EndpointSecret) (endpoint.Secret, error) {
				secret, err = nextSecret(signature.Format(e.Format), newest, kind, given, random)
				return secret, err
			}
			added, err := q.RotateSecret(c.Ctx(), a.Keys, c.Actor.Tenant, u, overlap, choose)
			if err != nil {
				return err
			}
			return auditEndpoint(c, q, "endpoint.rotate_secret", u, map[string]any{
				"secret": id.Secret.Format(added.ID), "overlap_seconds": overlap, "imported": given != "",
			})
		})
	}
	wrong := map[string]string{}
	status := http.StatusOK
	if err != nil {
		status = handlers.Status(err)
		wrong = handlers.WrongFields(err)
		if err := handlers.NotInput(err); err != nil {
			return err
		}
	}
	v, err := a.secretsView(c)
	if err != nil {
		return err
	}
	if len(wrong) == 0 {
		v.New, v.Public = secret.Text, secret.Public
		return c.Render(status, pages.Secrets(v))
	}
	if text := wrong["overlap_seconds"]; text != "" {
		wrong = map[string]string{"overlap": text}
	}
	v.Wrong, v.Overlap, v.Type = wrong, in.Get("overlap"), string(kind)
	return c.Render(status, pages.Secrets(v))
}

// nextSecret is what was given, or a new one of the type that was chosen: where none was, of the newest one's as far as the
// format knows it.
func nextSecret(f signature.Format, newest *db.EndpointSecret, kind endpoint.SecretType, given string, random [32]byte) (endpoint.Secret, error) {
	switch {
	case given != "":
		return importSecret(f, kind, given)
	case kind != "":
		return endpoint.NewSecret(f, kind, random)
	case newest != nil && newest.PublicKey != nil && f == signature.Standard:
		return endpoint.NewSecret(f, endpoint.Ed25519, random)
	}
	return endpoint.NewSecret(f, endpoint.HMAC, random)
}

func (a *dashboard) switchSecret(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		newest, changed, err := q.SwitchSecret(c.Ctx(), c.Actor.Tenant, u)
		if err != nil || !changed {
			return err
		}
		return auditEndpoint(c, q, "endpoint.switch_secret", u, map[string]string{"secret": id.Secret.Format(newest.ID)})
	})
	if err != nil {
		return err
	}
	c.Flash("Deliveries are now signed with the newest secret.")
	return c.Redirect(endpointPath(c, u) + "/secrets")
}
