package api

import (
	"crypto/rand"
	"net/http"
	"slices"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

func (a *api) createEndpoint(c *handlers.Call) error {
	var in EndpointInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	var e endpoints.Full
	var secret endpoint.Secret
	err := c.Tx(func(q *db.Tx) (err error) {
		e, secret, err = a.makeEndpoint(c, q, in, random)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, endpointCreated{
		Endpoint: endpointView(e, a.Now()), Secret: secret.Text, PublicKey: orNullText(secret.Public),
	})
}

// makeEndpoint stores a new endpoint and audits it.
func (a *api) makeEndpoint(c *handlers.Call, q *db.Tx, in EndpointInput, random [32]byte) (e endpoints.Full,
	secret endpoint.Secret, err error,
) {
	defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant)
	if err != nil {
		return e, secret, err
	}
	settings, err := in.apply(defaults.Settings, a.Egress)
	if err != nil {
		return e, secret, err
	}
	if settings.Kind == endpoint.Inbox && in.URL != "" {
		return e, secret, endpoint.CheckURLStays(defaults.Settings, settings)
	}
	if secret, err = newSecret(settings.Wire(), in.SecretType, in.Secret, endpoint.HMAC, random); err != nil {
		return e, secret, err
	}
	if settings.Kind == endpoint.Inbox {
		n := endpoints.New{Settings: settings, Secret: secret, Most: defaults.MaxEndpoints}
		e, err = listen.Inboxes{Keys: a.Keys, BaseURL: a.BaseURL}.Create(c.Ctx(), q, c.Actor.Tenant, n, c.Author())
		return e, secret, err
	}
	create := endpoints.Create
	if in.AssumeVerified != nil && *in.AssumeVerified {
		if !c.Actor.Platform {
			return e, secret, errVerifiedByPlatform
		}
		create = endpoints.CreateVerified
	}
	if in.SendVerification != nil && !*in.SendVerification {
		create = endpoints.CreateUnverified
	}
	n := endpoints.New{Settings: settings, Secret: secret, Most: defaults.MaxEndpoints}
	if e, err = create(c.Ctx(), q, a.Keys, c.Actor.Tenant, n); err != nil {
		return e, secret, err
	}
	if in.Paused != nil && *in.Paused {
		if e, _, err = endpoints.SetState(c.Ctx(), q, a.Keys, c.Actor.Tenant, e.ID, endpoint.Pause); err != nil {
			return e, secret, err
		}
	}
	return e, secret, auditEndpoint(c, q, "endpoint.create", e.ID, map[string]any{
		"kind": e.Kind, "url": egress.Mask(e.URL), "event_types": e.EventTypes, "format": e.Format, "imported_secret": in.Secret != nil, "status": e.Status,
	})
}

var errVerifiedByPlatform = fault.New(fault.Forbidden, "platform_key_required", "Only a platform key can say assume_verified. Leave it out: the endpoint is verified.")

func (a *api) listEndpoints(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "endpoints", Statuses: endpointStatuses(), Filters: []handlers.Filter{handlers.ByState}})
	if err != nil {
		return err
	}
	after := p.AfterID()
	var rows []endpoints.Full
	err = c.Tx(func(q *db.Tx) error {
		list := endpoints.ListOptions{Status: p.Status, Ascending: p.Ascending, After: after, Most: p.Limit + 1}
		rows, err = endpoints.List(c.Ctx(), q, a.Keys, c.Actor.Tenant, list)
		return err
	})
	if err != nil {
		return err
	}
	now := a.Now()
	rows, next := cut(rows, p, func(e endpoints.Full) []byte { return e.ID[:] })
	rows = slices.DeleteFunc(rows, func(e endpoints.Full) bool {
		return p.Condition != "" &&
			e.Condition(now).State != p.Condition
	})
	return c.Answer(http.StatusOK, EndpointPage{Data: views(rows, func(e endpoints.Full) Endpoint {
		return maskedView(e, now)
	}), NextCursor: cursorOrNull(next)})
}

func endpointStatuses() []string {
	var out []string
	for _, s := range endpoint.Statuses() {
		out = append(out, string(s))
	}
	return out
}

func (a *api) getEndpoint(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var e endpoints.Full
	err = c.Tx(func(q *db.Tx) error {
		e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, endpointView(e, a.Now()))
}

// updateEndpoint changes the given fields. A change without effect is not audited.
func (a *api) updateEndpoint(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var in EndpointPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	var after endpoints.Full
	err = c.Tx(func(q *db.Tx) error {
		after, err = endpoints.Editor{Keys: a.Keys, By: c.Author()}.Edit(c.Ctx(), q, c.Actor.Tenant, endpointID,
			func(s endpoint.Settings) (endpoint.Settings, error) {
				return in.apply(s, a.Egress)
			})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, endpointView(after, a.Now()))
}

func (a *api) deleteEndpoint(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		e, err := endpoints.Remove(c.Ctx(), q, c.Actor.Tenant, endpointID)
		if err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.delete", endpointID, map[string]any{"url": egress.Mask(e.URL), "status": e.Status})
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}

// auditEndpoint audits a change of an endpoint in the same transaction.
func auditEndpoint(c *handlers.Call, q *db.Tx, action string, endpointID id.UUID, details any) error {
	return c.Audit(q, action, "endpoint", id.Endpoint.Format(endpointID), "", details)
}
