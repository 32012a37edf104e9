package api

import (
	"net/http"
	"slices"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/db/listen"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) createEndpoint(c *handlers.Call) error {
	var in EndpointInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var e show.Endpoint
	var secret endpoint.Secret
	err := c.Tx(func(q *db.Tx) (err error) {
		e, secret, err = a.makeEndpoint(c, q, in)
		return err
	})
	if err != nil {
		return err
	}
	return answerCreated(c, e, secret)
}

// answerCreated responds with a new endpoint and its secret.
func answerCreated(c *handlers.Call, e show.Endpoint, secret endpoint.Secret) error {
	made := encodeEndpoint(e)
	return c.Answer(http.StatusCreated, endpointCreated{
		ID:        made.ID,
		Kind:      made.Kind,
		Status:    made.Status,
		Secret:    secret.Text,
		Endpoint:  made,
		PublicKey: orNullText(secret.Public),
	})
}

// makeEndpoint stores a new endpoint, which can begin in the past.
func (a *api) makeEndpoint(c *handlers.Call, q *db.Tx, in EndpointInput) (e show.Endpoint, secret endpoint.Secret, err error) {
	text := ""
	set(&text, in.Start)
	start, err := feed.ParseStart(text)
	if err == nil && text != "" && in.Kind != nil && endpoint.Kind(*in.Kind).Pulls() {
		err = errFeedStart
	}
	if err != nil {
		return e, secret, err
	}
	if e, secret, err = a.storeEndpoint(c, q, in); err != nil {
		return e, secret, err
	}
	e.StartingAt, err = feeds.StartAt(c.Ctx(), q, c.Actor.Tenant, e.ID, start, a.Now())
	return e, secret, err
}

var errFeedStart = fault.InvalidField("start", "start_malformed", "A feed has no start of its own. Give it to each consumer.")

// storeEndpoint stores a new endpoint.
func (a *api) storeEndpoint(c *handlers.Call, q *db.Tx, in EndpointInput) (e show.Endpoint, secret endpoint.Secret, err error) {
	defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant)
	if err != nil {
		return e, secret, err
	}
	n := endpoints.New{Imported: in.Secret != nil, Limit: defaults.MaxEndpoints}
	if n.Settings, err = in.apply(defaults.Settings, a.Egress); err != nil {
		return e, secret, err
	}
	if n.Settings.Kind == endpoint.Inbox && in.URL != "" {
		return e, secret, endpoint.CheckURLStays(defaults.Settings, n.Settings)
	}
	if n.Secret, err = secretRequest(in.SecretType, in.Secret).Secret(n.Settings.Wire(), false); err != nil {
		return e, secret, err
	}
	if n.Settings.Kind == endpoint.Inbox {
		e, err = listen.Inboxes{Keys: a.Keys, BaseURL: a.BaseURL}.Create(c.Ctx(), q, c.Actor.Tenant, n, c.Author())
		return e, n.Secret, err
	}
	if in.AssumeVerified != nil && *in.AssumeVerified {
		if !c.Actor.Platform {
			return e, secret, errVerifiedByPlatform
		}
		n.Start = endpoints.Verified
	}
	if in.SendVerification != nil && !*in.SendVerification {
		n.Start = endpoints.Later
	}
	n.Paused = in.Paused != nil && *in.Paused
	e, err = a.editor(c).Create(c.Ctx(), q, c.Actor.Tenant, n)
	return e, n.Secret, err
}

// editor changes endpoints on behalf of the caller.
func (a *api) editor(c *handlers.Call) endpoints.Editor {
	return endpoints.Editor{Keys: a.Keys, By: c.Author()}
}

var errVerifiedByPlatform = fault.New(fault.Forbidden, "platform_key_required", "Only a platform key can say assume_verified. Leave it out: the endpoint is verified.")

func (a *api) listEndpoints(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "endpoints", Statuses: endpointStatuses(), Filters: []handlers.Filter{handlers.ByState, handlers.ByKind}})
	if err != nil {
		return err
	}
	after := p.AfterID()
	var rows []show.Endpoint
	err = c.Tx(func(q *db.Tx) error {
		list := endpoints.ListOptions{Status: p.Status, Kind: p.EndpointKind(p.Condition), Ascending: p.Ascending, After: after, Limit: p.Limit + 1}
		rows, err = endpoints.List(c.Ctx(), q, a.Keys, c.Actor.Tenant, list)
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(e show.Endpoint) []byte { return e.ID[:] })
	rows = slices.DeleteFunc(rows, func(e show.Endpoint) bool {
		return p.Condition != "" && !e.Condition.Is(p.Condition)
	})
	return c.Answer(http.StatusOK, EndpointPage{
		Data:       views(rows, func(e show.Endpoint) Endpoint { return encodeEndpoint(e.Masked()) }),
		NextCursor: cursorOrNull(next),
	})
}

func endpointStatuses() []string {
	var out []string
	for _, s := range endpoint.Statuses() {
		out = append(out, string(s))
	}
	return out
}

func (a *api) getEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Endpoint, error) {
		return endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
	}, encodeEndpoint)
}

// updateEndpoint changes the given fields. A change without effect is not audited.
func (a *api) updateEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in EndpointPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Endpoint, error) {
		return a.editor(c).Edit(
			c.Ctx(),
			q,
			c.Actor.Tenant,
			endpointID,
			func(s endpoint.Settings) (endpoint.Settings, error) { return in.apply(s, a.Egress) },
		)
	}, encodeEndpoint)
}

func (a *api) deleteEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	if err := c.NoBody(); err != nil {
		return err
	}
	err := c.Tx(func(q *db.Tx) error { return a.editor(c).Remove(c.Ctx(), q, c.Actor.Tenant, endpointID) })
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}
