package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/domain/transform"
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
	alerts := c.Query("for") == pages.ForAlerts
	if alerts {
		defaults.Settings = defaults.Settings.ForAlerts(notice.AlertPrefix + "*")
	}
	form := formOf(defaults.Settings, names)
	form.Alerts = alerts
	return c.Render(http.StatusOK, pages.NewEndpoint(pages.NewEndpointView{
		Shell:   c.Shell("Add endpoint", "endpoints"),
		Root:    root(c) + "/endpoints",
		Inboxes: root(c) + "/inboxes",
		Form:    form,
	}))
}

// presetOf lays the chosen preset over the settings of a new alert channel.
func presetOf(in url.Values, s *endpoint.Settings) error {
	preset, ok := transform.PresetNamed(in.Get("preset"))
	if !ok || s.Kind != endpoint.HTTP {
		return nil
	}
	variables := map[string]string{}
	for _, v := range preset.Variables {
		variables[v.Name] = in.Get(pages.PresetField(preset.Name, v.Name))
	}
	raw, err := json.Marshal(map[string]any{"preset": preset.Name, "variables": variables})
	if err != nil {
		return err
	}
	return s.Patch(map[string]json.RawMessage{"transformation": raw})
}

// newSecret is what a session keeps until the next page shows it.
type newSecret struct{ Text, Public string }

// createEndpoint creates an endpoint. The next page shows the secret once.
func (a *dashboard) createEndpoint(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	n := endpoints.New{Imported: in.Get("secret") != ""}
	var e show.Endpoint
	err = c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant)
		if err != nil {
			return err
		}
		if in.Has("kind") {
			defaults.Settings.Kind = endpoint.Kind(in.Get("kind"))
		}
		n.Limit = defaults.MaxEndpoints
		if n.Settings, err = settingsOf(in, defaults.Settings); err != nil {
			return err
		}
		if err := presetOf(in, &n.Settings); err != nil {
			return err
		}
		if n.Settings, err = n.Settings.Check(a.Egress); err != nil {
			return err
		}
		if n.Secret, err = secretRequest(in).Secret(n.Settings.Wire(), false); err != nil {
			return err
		}
		// Brokers need no secret to acknowledge a message. An HTTP receiver is verified once it knows its
		// secret.
		if !n.Settings.Kind.Broker() {
			n.Start = endpoints.Later
		}
		e, err = a.editor(c).Create(c.Ctx(), q, c.Actor.Tenant, n)
		return err
	})
	if err != nil {
		return a.refuseNew(c, in, err)
	}
	if e.Settings.Kind.Pulls() {
		return a.showNewFeed(c, e.ID, n.Secret)
	}
	created := endpointPath(c, e.ID) + "/created"
	if c.Actor.Viewing == nil {
		if err := c.KeepOnce(created, newSecret{n.Secret.Text, n.Secret.Public}); err != nil {
			return err
		}
	}
	return c.Redirect(created)
}

// showNewFeed redirects to the page of a new feed, which shows its secret once.
func (a *dashboard) showNewFeed(c *handlers.Call, endpointID id.UUID, secret endpoint.Secret) error {
	to := endpointPath(c, endpointID)
	if c.Actor.Viewing == nil {
		if err := c.KeepOnce(to, shownOnce{Secret: secret.Text, Public: secret.Public}); err != nil {
			return err
		}
	}
	return c.Redirect(to)
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
		EndpointHead: a.head(c, e, "overview"),
		Verification: verificationView(c, e),
		Secret:       secret.Text,
		Public:       secret.Public,
	}
	v.Verification.First = true
	if v.MaySecrets, err = a.rotates(c, e); err != nil {
		return err
	}
	if text := c.Query("delivery"); text != "" {
		if v.Sent, err = a.sent(c, e, text); err != nil {
			return err
		}
	}
	return c.Render(http.StatusOK, pages.Created(v))
}

// secretRequest is the secret that a form asks for. HMAC, the default of the list, leaves the type of a given secret
// open.
func secretRequest(in url.Values) endpoint.SecretRequest {
	r := endpoint.SecretRequest{Type: endpoint.SecretType(in.Get("secret_type")), Text: in.Get("secret")}
	if r.Text != "" && r.Type == endpoint.HMAC {
		r.Type = ""
	}
	_, _ = rand.Read(r.Random[:]) // never fails (crypto/rand)
	return r
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
		Shell:   c.Shell("Add endpoint", "endpoints"),
		Root:    root(c) + "/endpoints",
		Inboxes: root(c) + "/inboxes",
		Form:    form,
	}))
}

func (a *dashboard) readCatalogue(c *handlers.Call) (names []string, err error) {
	err = c.Tx(func(q *db.Tx) error {
		names, err = knownTypes(c, q, mostTypes)
		return err
	})
	return names, err
}
