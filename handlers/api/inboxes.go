package api

import (
	"crypto/rand"
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

func (a *api) createInbox(c *handlers.Call) error {
	var in InboxInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	var e endpoints.Full
	var secret endpoint.Secret
	err := c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant)
		if err != nil {
			return err
		}
		settings := inbox.Settings(defaults.Settings)
		set(&settings.Description, in.Description)
		set(&settings.EventTypes, in.EventTypes)
		if in.Format != nil {
			settings.Format = signature.Format(*in.Format)
		}
		if settings, err = settings.Check(a.Egress); err != nil {
			return err
		}
		if secret, err = newSecret(settings.Wire(), nil, nil, endpoint.HMAC, random); err != nil {
			return err
		}
		n := endpoints.New{Settings: settings, Secret: secret, Most: defaults.MaxEndpoints}
		e, err = listen.Inboxes{Keys: a.Keys, BaseURL: a.BaseURL}.Create(c.Ctx(), q, c.Actor.Tenant, n, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, endpointCreated{
		Endpoint: endpointView(e, a.Now()), Secret: secret.Text, PublicKey: orNullText(secret.Public),
	})
}

func (a *api) getInbox(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	return a.showInbox(c, endpointID)
}

func (a *api) showInbox(c *handlers.Call, endpointID id.UUID) error {
	var box sql.Inbox
	err := c.Tx(func(q *db.Tx) (err error) {
		box, err = q.GetInbox(c.Ctx(), sql.GetInboxParams{TenantID: c.Actor.Tenant, EndpointID: endpointID})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, Inbox{EndpointID: id.Endpoint.Format(endpointID), Answer: InboxAnswer(box.Answer)})
}

func (a *api) updateInbox(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
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
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	if _, err := c.Page(handlers.List{Name: "inbox requests", Whole: true}); err != nil {
		return err
	}
	var rows []sql.ListInboxRequestsRow
	err = c.Tx(func(q *db.Tx) (err error) {
		_, rows, err = listen.InboxRequests(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, InboxRequestPage{Data: views(rows, func(r sql.ListInboxRequestsRow) InboxRequest {
		return inboxRequestView(sql.InboxRequestRow{
			ID: r.ID, ReceivedAt: r.ReceivedAt, Method: r.Method, BodyBytes: r.BodyBytes, Challenge: r.Challenge,
			Answer: r.Answer, Good: r.Good, Code: r.Code, SecretHint: r.SecretHint,
		})
	}), NextCursor: cursorOrNull("")})
}

func (a *api) getInboxRequest(c *handlers.Call) error {
	requestID, err := c.ID(id.Received, "inbox_request_id")
	if err != nil {
		return err
	}
	var row sql.InboxRequestRow
	err = c.Tx(func(q *db.Tx) (err error) {
		row, err = listen.ReadInboxRequest(c.Ctx(), q, c.Actor.Tenant, requestID)
		return err
	})
	if err != nil {
		return err
	}
	v := inboxRequestView(row)
	body := strings.ToValidUTF8(string(row.Body), "\uFFFD")
	v.Headers, v.Body = &row.Head, &body
	return c.Answer(http.StatusOK, v)
}

func (a *api) emptyInbox(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		return listen.EmptyInbox(c.Ctx(), q, c.Actor.Tenant, endpointID, c.Author())
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}

func inboxRequestView(r sql.InboxRequestRow) InboxRequest {
	v := InboxRequest{
		ID: id.Received.Format(r.ID), ReceivedAt: Time(r.ReceivedAt), Method: r.Method, Verification: r.Challenge,
		Answer: InboxAnswer(r.Answer), BodyBytes: int(r.BodyBytes),
	}
	v.Signature.Good, v.Signature.Code, v.Signature.Detail = r.Good, orNullText(r.Code), orNullText(r.Detail)
	v.Signature.SecretHint = orNullText(r.SecretHint)
	return v
}
