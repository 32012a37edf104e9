package dashboard

import (
	"crypto/rand"
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// newEndpoint shows the form for a new endpoint.
func (a *dashboard) newEndpoint(c *handlers.Call) error {
	var names []string
	var defaults endpoint.Defaults
	err := c.Tx(func(q *db.Tx) (err error) {
		if defaults, err = endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant); err != nil {
			return err
		}
		names, err = knownTypes(c, q, mostTypes)
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.NewEndpoint(pages.NewEndpointView{
		Shell: c.Shell("Add endpoint", "endpoints"), Root: root(c) + "/endpoints", Inboxes: root(c) + "/inboxes", Form: formOf(defaults.Settings, names),
	}))
}

// newSecret is what a session keeps until the next page shows it.
type newSecret struct{ Text, Public string }

// createEndpoint creates an endpoint. The next page shows the secret once.
func (a *dashboard) createEndpoint(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	var e endpoints.Full
	var secret endpoint.Secret
	err = c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant)
		if err != nil {
			return err
		}
		if in.Has("kind") {
			defaults.Settings.Kind = endpoint.Kind(in.Get("kind"))
		}
		settings, err := settingsOf(in, defaults.Settings)
		if err == nil {
			settings, err = settings.Check(a.Egress)
		}
		if err != nil {
			return err
		}
		if secret, err = firstSecret(settings, endpoint.SecretType(in.Get("secret_type")), in.Get("secret"), random); err != nil {
			return err
		}
		// Kafka brokers need no secret to acknowledge a record. An HTTP receiver is verified once it knows its
		// secret.
		create := endpoints.CreateUnverified
		if settings.Kind == endpoint.Kafka {
			create = endpoints.Create
		}
		n := endpoints.New{Settings: settings, Secret: secret, Most: defaults.MaxEndpoints}
		if e, err = create(c.Ctx(), q, a.Keys, c.Actor.Tenant, n); err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.create", e.ID, map[string]any{
			"kind": e.Kind, "url": egress.Mask(e.URL), "event_types": e.EventTypes, "format": e.Format, "imported_secret": in.Get("secret") != "",
		})
	})
	if err != nil {
		return a.refuseNew(c, in, err)
	}
	created := endpointPath(c, e.ID) + "/created"
	if c.Actor.Viewing == nil {
		if err := c.KeepOnce(created, newSecret{secret.Text, secret.Public}); err != nil {
			return err
		}
	}
	return c.Redirect(created)
}

// showCreated is the page after the creation of an endpoint. The creator sees its secret once, also behind a sign-in
// link: nobody else could configure the secret in the receiver. Operators never see it.
func (a *dashboard) showCreated(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	var secret newSecret
	if _, err := c.TakeOnce(endpointPath(c, e.ID)+"/created", &secret); err != nil {
		return err
	}
	v := pages.CreatedView{
		EndpointHead: a.head(c, e, "overview"), Verification: verificationView(c, e.Endpoint, e.Verification),
		Secret: secret.Text, Public: secret.Public,
	}
	v.Verification.First = true
	if v.MaySecrets, err = a.rotates(c, e.Endpoint); err != nil {
		return err
	}
	if text := c.Query("delivery"); text != "" {
		if v.Sent, err = a.sent(c, e, text); err != nil {
			return err
		}
	}
	return c.Render(http.StatusOK, pages.Created(v))
}

// firstSecret is the given secret, or a new one of the selected type.
func firstSecret(s endpoint.Settings, kind endpoint.SecretType, given string, random [32]byte) (endpoint.Secret,
	error,
) {
	switch {
	case given != "":
		return importSecret(s.Wire(), kind, given)
	case kind == "":
		kind = endpoint.HMAC
	}
	return endpoint.NewSecret(s.Format, kind, random)
}

// importSecret imports a secret. If the type is a key pair, the secret must be one.
func importSecret(w signature.Wire, kind endpoint.SecretType, given string) (endpoint.Secret, error) {
	secret, err := endpoint.ImportSecret(w, given)
	if err == nil && kind == endpoint.Ed25519 && secret.Public == "" {
		return endpoint.Secret{}, fault.InvalidField("secret", "secret_type_refused", "This isn't the private key of a pair (whsk_...). Select HMAC, or leave the field empty to generate a pair.")
	}
	return secret, err
}

// refuseNew shows the form again, with each error beside its field.
func (a *dashboard) refuseNew(c *handlers.Call, in url.Values, cause error) error {
	names, err := a.readCatalogue(c)
	if err != nil {
		return err
	}
	form, err := filled(in, names, cause)
	if err != nil {
		return err
	}
	return c.Render(handlers.Status(cause), pages.NewEndpoint(pages.NewEndpointView{
		Shell: c.Shell("Add endpoint", "endpoints"), Root: root(c) + "/endpoints", Inboxes: root(c) + "/inboxes", Form: form,
	}))
}

func (a *dashboard) readCatalogue(c *handlers.Call) (names []string, err error) {
	err = c.Tx(func(q *db.Tx) error {
		names, err = knownTypes(c, q, mostTypes)
		return err
	})
	return names, err
}

// auditEndpoint audits a change of an endpoint in the same transaction.
func auditEndpoint(c *handlers.Call, q *db.Tx, action string, endpointID id.UUID, details any) error {
	return c.Audit(q, action, "endpoint", id.Endpoint.Format(endpointID), "", details)
}
