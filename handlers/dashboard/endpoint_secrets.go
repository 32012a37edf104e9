package dashboard

import (
	"net/http"
	"strconv"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/show"
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
func (a *dashboard) rotates(c *handlers.Call, e show.Endpoint) (created bool, err error) {
	portal := c.Actor.Portal
	if c.Actor.May(access.RotateSecrets) || portal == nil || !c.Actor.May(access.ChangeEndpoints) {
		return c.Actor.May(access.RotateSecrets), nil
	}
	err = c.Tx(func(q *db.Tx) error {
		created, err = db.CreatedBy(c.Ctx(), q, e.Tenant, e.ID, c.Author())
		return err
	})
	return created, err
}

// errNotItsSecret rejects a portal link that shows no secrets.
var errNotItsSecret = fault.New(
	fault.Forbidden,
	"role_missing",
	"This portal link shows only the secrets of endpoints that were added with it. Ask your provider to rotate this endpoint's secret.",
)

// mayRotate rejects callers who can't rotate the secrets of the endpoint in the path.
func (a *dashboard) mayRotate(c *handlers.Call) error {
	if c.Actor.May(access.RotateSecrets) {
		return nil
	}
	if c.Actor.Portal == nil {
		return handlers.ErrRole
	}
	e, err := a.read(c)
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
	endpointID := c.PathID("endpoint_id")
	var e show.Endpoint
	var live []show.Secret
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
	v = pages.SecretsView{EndpointHead: a.head(c, e, "secrets"), Rows: live, Overlap: strconv.Itoa(endpoint.DefaultOverlap)}
	v.MaySecrets, err = a.rotates(c, e)
	return v, err
}

// rotateSecret creates a new secret. The next page shows it once.
func (a *dashboard) rotateSecret(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	if err := a.mayRotate(c); err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	var secret endpoint.Secret
	err = c.Tx(func(q *db.Tx) (err error) {
		_, secret, err = a.editor(c).Rotate(c.Ctx(), q, c.Actor.Tenant, endpointID, number(in.Get("overlap")), secretRequest(in))
		return err
	})
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
	v.Wrong, v.Overlap, v.Type = wrong, in.Get("overlap"), in.Get("secret_type")
	return c.Render(status, pages.Secrets(v))
}

func (a *dashboard) switchSecret(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	if err := a.mayRotate(c); err != nil {
		return err
	}
	err := c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).Switch(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID)+"/secrets", "Deliveries are now signed with the newest secret.")
}
