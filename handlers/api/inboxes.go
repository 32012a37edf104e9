package api

import (
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) createInbox(c *handlers.Call) error {
	var in InboxInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var e show.Endpoint
	var secret endpoint.Secret
	err := c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant)
		if err != nil {
			return err
		}
		settings := inbox.Settings(defaults.Settings)
		if err := patch(&settings, in); err != nil {
			return err
		}
		if settings, err = settings.Check(a.Egress); err != nil {
			return err
		}
		if secret, err = secretRequest(nil, nil).Secret(settings.Wire(), false); err != nil {
			return err
		}
		n := endpoints.New{Settings: settings, Secret: secret, Limit: defaults.MaxEndpoints}
		e, err = listen.Inboxes{Keys: a.Keys, BaseURL: a.BaseURL}.Create(c.Ctx(), q, c.Actor.Tenant, n, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return answerCreated(c, e, secret)
}

func (a *api) getInbox(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	return a.showInbox(c, endpointID)
}

func (a *api) showInbox(c *handlers.Call, endpointID id.UUID) error {
	var answer inbox.Answer
	err := c.Tx(func(q *db.Tx) (err error) {
		answer, err = listen.ReadInbox(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, Inbox{EndpointID: id.Endpoint.Format(endpointID), Answer: InboxAnswer(answer)})
}

func (a *api) updateInbox(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in InboxPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	answer, err := inbox.ParseAnswer(string(in.Answer))
	if err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		return listen.AnswerInbox(c.Ctx(), q, c.Actor.Tenant, endpointID, answer, c.Author())
	})
	if err != nil {
		return err
	}
	return a.showInbox(c, endpointID)
}

func (a *api) listInboxRequests(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	if _, err := c.Page(handlers.List{Name: "inbox requests", Whole: true}); err != nil {
		return err
	}
	var received []inbox.Received
	err := c.Tx(func(q *db.Tx) (err error) {
		_, received, err = listen.InboxRequests(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, InboxRequestPage{Data: views(received, inboxRequestView), NextCursor: cursorOrNull("")})
}

func (a *api) getInboxRequest(c *handlers.Call) error {
	requestID := c.PathID("inbox_request_id")
	var r inbox.Received
	err := c.Tx(func(q *db.Tx) (err error) {
		r, err = listen.ReadInboxRequest(c.Ctx(), q, c.Actor.Tenant, requestID)
		return err
	})
	if err != nil {
		return err
	}
	v := inboxRequestView(r)
	body := strings.ToValidUTF8(string(r.Body), "\uFFFD")
	v.Headers = &r.Head
	v.Body = &body
	return c.Answer(http.StatusOK, v)
}

func (a *api) emptyInbox(c *handlers.Call) error {
	return end(c, "endpoint_id", func(q *db.Tx, endpointID id.UUID) error {
		return listen.EmptyInbox(c.Ctx(), q, c.Actor.Tenant, endpointID, c.Author())
	})
}

func inboxRequestView(r inbox.Received) InboxRequest {
	v := InboxRequest{
		ID:           id.Received.Format(r.ID),
		ReceivedAt:   Time(r.At),
		Method:       r.Method,
		Verification: r.Challenge,
		Answer:       InboxAnswer(r.Answer),
		BodyBytes:    r.Bytes,
	}
	v.Signature.Good = r.Good
	v.Signature.Code = orNullText(r.Code)
	v.Signature.Detail = orNullText(r.Detail)
	v.Signature.SecretHint = orNullText(r.SecretHint)
	return v
}
