package dashboard

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) showSecrets(c *handlers.Call) error {
	v, err := a.secretsView(c)
	if err != nil {
		return err
	}
	if text := c.Query("end"); text != "" && v.MaySecrets {
		if v.Ending, err = a.ending(c, v, text); err != nil {
			return err
		}
	}
	if c.Fragment() {
		return c.Render(http.StatusOK, pages.LiveSecrets(v))
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
		if e.Settings.Public.Signed() {
			if v.Keys, err = endpoints.SigningKeys(c.Ctx(), q, c.Actor.Tenant); err != nil {
				return err
			}
		}
		live, err = endpoints.ListSecrets(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return v, err
	}
	v = pages.SecretsView{
		EndpointHead: a.head(c, e, "secrets"),
		Rows:         live,
		Overlap:      strconv.Itoa(endpoint.DefaultOverlap),
		Keys:         v.Keys,
		KeySet:       a.BaseURL + httpsig.KeysPath(id.Tenant.Format(c.Actor.Tenant)),
		MayKeys:      c.Actor.May(access.RotateSecrets) && c.Actor.Portal == nil,
	}
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

// ending is the secret that somebody wants to end, with the one that the receiver needs then; nil if it has ended.
func (a *dashboard) ending(c *handlers.Call, v pages.SecretsView, text string) (*pages.EndingView, error) {
	secret, err := id.Secret.Parse(text)
	if err != nil {
		return nil, nil
	}
	i := slices.IndexFunc(v.Rows, func(s show.Secret) bool { return s.ID == secret })
	if i < 0 {
		return nil, nil
	}
	out := &pages.EndingView{Old: v.Rows[i]}
	err = c.Tx(func(q *db.Tx) error {
		out.Next, err = endpoints.Successor(c.Ctx(), q, c.Actor.Tenant, v.Endpoint.ID, secret)
		return err
	})
	if fault.Is(err, fault.ErrNotFound.Code) {
		return nil, nil
	}
	if f := fault.As(endpoint.CheckSecretKind(v.Endpoint.Settings.Kind)); f != nil {
		out.Uncheckable = f.Detail
	}
	return out, err
}

// checkSecret requests a check. The page shows its result.
func (a *dashboard) checkSecret(c *handlers.Call) error {
	endpointID, secret := c.PathID("endpoint_id"), c.PathID("secret_id")
	if err := a.mayRotate(c); err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	if err := a.requestCheck(c, endpointID, secret); err != nil {
		return err
	}
	page := endpointPath(c, endpointID) + "/secrets"
	if end, err := id.Secret.Parse(in.Get("end")); err == nil {
		page += "?end=" + id.Secret.Format(end)
	}
	return c.Redirect(page)
}

func (a *dashboard) requestCheck(c *handlers.Call, endpointID, secret id.UUID) error {
	return c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).CheckSecret(c.Ctx(), q, c.Actor.Tenant, endpointID, secret)
		return err
	})
}

// checkWait is how long the end of a secret waits for the result of a check.
const checkWait = 4 * time.Second

// endSecret ends a secret if the receiver accepts what remains, which it checks first. Otherwise the page shows what is
// known, and asks.
func (a *dashboard) endSecret(c *handlers.Call) error {
	endpointID, secret := c.PathID("endpoint_id"), c.PathID("secret_id")
	if err := a.mayRotate(c); err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	page := endpointPath(c, endpointID) + "/secrets"
	err = a.end(c, endpointID, secret, in.Get("unchecked") == "true")
	if fault.Is(err, "secret_unchecked") {
		accepted, wrong := a.accepts(c, endpointID, secret)
		if wrong != nil {
			return wrong
		}
		if !accepted {
			return c.Redirect(page + "?end=" + id.Secret.Format(secret))
		}
		err = a.end(c, endpointID, secret, false)
	}
	if err != nil {
		return err
	}
	return c.Done(page, "The secret no longer signs.")
}

func (a *dashboard) end(c *handlers.Call, endpointID, secret id.UUID, unchecked bool) error {
	return c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).EndSecret(c.Ctx(), q, c.Actor.Tenant, endpointID, secret, unchecked)
		return err
	})
}

// accepts checks the secret that remains when another one ends, and waits a moment for the result.
func (a *dashboard) accepts(c *handlers.Call, endpointID, ended id.UUID) (bool, error) {
	var next show.Secret
	read := func(q *db.Tx) (err error) {
		next, err = endpoints.Successor(c.Ctx(), q, c.Actor.Tenant, endpointID, ended)
		return err
	}
	if err := c.Tx(read); err != nil {
		return false, err
	}
	if err := a.requestCheck(c, endpointID, next.ID); err != nil {
		if fault.As(err) != nil && !fault.Is(err, fault.ErrNotFound.Code) {
			return false, nil // the page says why there is no check
		}
		return false, err
	}
	late := time.NewTimer(checkWait)
	defer late.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-late.C:
			return false, nil // the page shows the result when it is there
		case <-c.Ctx().Done():
			return false, c.Ctx().Err()
		}
		if err := c.Tx(read); err != nil {
			return false, err
		}
		if next.Check == nil || next.Check.State != endpoint.CheckPending {
			return next.Accepted(), nil
		}
	}
}

// rotateSigningKeys publishes a new key of the tenant.
func (a *dashboard) rotateSigningKeys(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	if c.Actor.Portal != nil {
		return handlers.ErrRole
	}
	if _, err := a.read(c); err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	var added show.SigningKey
	err = c.Tx(func(q *db.Tx) (err error) {
		added, err = a.editor(c).RotateSigningKeys(c.Ctx(), q, c.Actor.Tenant, number(in.Get("starts_in")))
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID)+"/secrets", "The new key signs from "+components.Stamp(added.StartsAt)+".")
}

// extendSecret sets the end of a secret's overlap.
func (a *dashboard) extendSecret(c *handlers.Call) error {
	endpointID, secret := c.PathID("endpoint_id"), c.PathID("secret_id")
	if err := a.mayRotate(c); err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	var extended show.Secret
	err = c.Tx(func(q *db.Tx) error {
		extended, err = a.editor(c).ExtendSecret(c.Ctx(), q, c.Actor.Tenant, endpointID, secret, number(in.Get("overlap")))
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID)+"/secrets", "The secret signs until "+components.Stamp(*extended.ExpiresAt)+".")
}
