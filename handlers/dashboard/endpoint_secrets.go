package dashboard

import (
	"crypto/rand"
	"net/http"
	"strconv"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
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
	var made newSecret
	if _, err := c.TakeOnce(v.Href+"/secrets", &made); err != nil {
		return err
	}
	v.New, v.Public = made.Text, made.Public
	return c.Render(http.StatusOK, pages.Secrets(v))
}

// rotates reports whether the caller can rotate an endpoint's secrets: by role, or because the caller is a portal link
// without secrets that created the endpoint. Such a link sees only a secret of its own receiver.
func (a *dashboard) rotates(c *handlers.Call, e sql.Endpoint) (created bool, err error) {
	portal := c.Actor.Portal
	if c.Actor.May(access.RotateSecrets) || portal == nil || !c.Actor.May(access.ChangeEndpoints) {
		return c.Actor.May(access.RotateSecrets), nil
	}
	err = c.Tx(func(q *db.Tx) error {
		created, err = db.CreatedBy(c.Ctx(), q, e, c.Author())
		return err
	})
	return created, err
}

// errNotItsSecret rejects a portal link that shows no secrets.
var errNotItsSecret = fault.New(fault.Forbidden, "role_missing",
	"This portal link shows only the secrets of endpoints that were added with it. Ask your provider to rotate this endpoint's secret.")

// mayRotate rejects callers who can't rotate the secrets of the endpoint in the path.
func (a *dashboard) mayRotate(c *handlers.Call, endpointID id.UUID) error {
	if c.Actor.May(access.RotateSecrets) {
		return nil
	}
	if c.Actor.Portal == nil {
		return handlers.ErrRole
	}
	var e sql.Endpoint
	err := c.Tx(func(q *db.Tx) (err error) {
		e, err = q.GetEndpoint(c.Ctx(), sql.GetEndpointParams{TenantID: c.Actor.Tenant, ID: endpointID})
		return err
	})
	if err != nil {
		return err
	}
	created, err := a.rotates(c, e)
	if err == nil && !created {
		err = errNotItsSecret
	}
	return err
}

// secretsView reads an endpoint's live secrets.
func (a *dashboard) secretsView(c *handlers.Call) (v pages.SecretsView, err error) {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return v, err
	}
	var e endpoints.Full
	var live []endpoints.SecretState
	err = c.Tx(func(q *db.Tx) error {
		if e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		live, err = endpoints.ListSecrets(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return v, err
	}
	v = pages.SecretsView{
		EndpointHead: a.head(c, e, "secrets"), OneSlot: endpoints.SignsOne(e.Endpoint),
		KeyPairs: signature.Format(e.Format) == signature.Standard, Overlap: strconv.Itoa(endpoint.DefaultOverlap),
		Switch: len(live) > 0 && !live[0].Signing,
	}
	if v.MaySecrets, err = a.rotates(c, e.Endpoint); err != nil {
		return v, err
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

// rotateSecret creates a new secret. The next page shows it once.
func (a *dashboard) rotateSecret(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	if err := a.mayRotate(c, endpointID); err != nil {
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
		err = c.Tx(func(q *db.Tx) error {
			choose := func(e sql.Endpoint, newest *sql.EndpointSecret) (endpoint.Secret, error) {
				secret, err = nextSecret(endpoints.Wire(e), newest, kind, given, random)
				return secret, err
			}
			added, err := endpoints.RotateSecret(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID,
				endpoints.Rotation{Overlap: overlap, Choose: choose})
			if err != nil {
				return err
			}
			return auditEndpoint(c, q, "endpoint.rotate_secret", endpointID, map[string]any{
				"secret": id.Secret.Format(added.ID), "overlap_seconds": overlap, "imported": given != "",
			})
		})
	}
	if err == nil {
		page := endpointPath(c, endpointID) + "/secrets"
		if err := c.KeepOnce(page, newSecret{secret.Text, secret.Public}); err != nil {
			return err
		}
		return c.Redirect(page)
	}
	status, wrong := handlers.Status(err), handlers.WrongFields(err)
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	v, err := a.secretsView(c)
	if err != nil {
		return err
	}
	if text := wrong["overlap_seconds"]; text != "" {
		wrong = map[string]string{"overlap": text}
	}
	v.Wrong, v.Overlap, v.Type = wrong, in.Get("overlap"), string(kind)
	return c.Render(status, pages.Secrets(v))
}

// nextSecret is the given secret, or a new one of the selected type. The default is the type of the newest one, if
// the format knows it.
func nextSecret(w signature.Wire, newest *sql.EndpointSecret, kind endpoint.SecretType, given string,
	random [32]byte,
) (endpoint.Secret, error) {
	switch {
	case given != "":
		return importSecret(w, kind, given)
	case kind != "":
		return endpoint.NewSecret(w.Format, kind, random)
	case newest != nil && newest.PublicKey != nil && w.Format == signature.Standard:
		return endpoint.NewSecret(w.Format, endpoint.Ed25519, random)
	}
	return endpoint.NewSecret(w.Format, endpoint.HMAC, random)
}

func (a *dashboard) switchSecret(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	if err := a.mayRotate(c, endpointID); err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		newest, changed, err := endpoints.SwitchSecret(c.Ctx(), q, c.Actor.Tenant, endpointID)
		if err != nil || !changed {
			return err
		}
		return auditEndpoint(c, q, "endpoint.switch_secret", endpointID, map[string]string{"secret": id.Secret.Format(newest.ID)})
	})
	if err != nil {
		return err
	}
	c.Flash("Deliveries are now signed with the newest secret.")
	return c.Redirect(endpointPath(c, endpointID) + "/secrets")
}
