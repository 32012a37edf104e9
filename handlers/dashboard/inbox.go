package dashboard

import (
	"crypto/rand"
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) inboxRoutes() []handlers.Route {
	return []handlers.Route{
		page("POST", "/inboxes", access.ChangeEndpoints, a.createInbox),
		page("GET", "/endpoints/:endpoint_id/inbox", access.Read, a.showInbox),
		page("POST", "/endpoints/:endpoint_id/inbox/answer", access.ChangeEndpoints, a.answerInbox),
		page("POST", "/endpoints/:endpoint_id/inbox/clear", access.ChangeEndpoints, a.clearInbox),
	}
}

// createInbox creates a test inbox with the defaults of endpoints, and redirects to it. Nobody needs its secret,
// because the inbox checks signatures itself. A member who wants a secret rotates it.
func (a *dashboard) createInbox(c *handlers.Call) error {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	var e endpoints.Full
	err := c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant)
		if err != nil {
			return err
		}
		settings := inbox.Settings(defaults.Settings)
		secret, err := firstSecret(settings, endpoint.HMAC, "", random)
		if err != nil {
			return err
		}
		n := endpoints.New{Settings: settings, Secret: secret, Most: defaults.MaxEndpoints}
		e, err = listen.Inboxes{Keys: a.Keys, BaseURL: a.BaseURL}.Create(c.Ctx(), q, c.Actor.Tenant, n, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	c.Flash("This is your test inbox. It's being verified now. Then send it a test event.")
	return c.Redirect(endpointPath(c, e.ID) + "/inbox")
}

func (a *dashboard) showInbox(c *handlers.Call) error {
	v, err := a.inboxView(c)
	if err != nil {
		return err
	}
	if c.Fragment() {
		return c.Render(http.StatusOK, pages.InboxParts(v))
	}
	return c.Render(http.StatusOK, pages.Inbox(v))
}

func (a *dashboard) inboxView(c *handlers.Call) (v pages.InboxView, err error) {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return v, err
	}
	asked, _ := id.Received.Parse(c.Query("request")) // an invalid choice counts as none
	var e endpoints.Full
	err = c.Tx(func(q *db.Tx) error {
		if e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		payloads, err := a.readsPayloads(c, q)
		if err != nil {
			return err
		}
		box, rows, err := listen.InboxRequests(c.Ctx(), q, c.Actor.Tenant, endpointID)
		if err != nil {
			return err
		}
		v = pages.InboxView{
			Answer: inbox.Answer(box.Answer), Hidden: !payloads,
			Poll: endpointPath(c, endpointID) + "/inbox", Verification: verificationView(c, e.Endpoint, e.Verification),
		}
		if !asked.IsZero() {
			v.Poll += "?request=" + id.Received.Format(asked)
		}
		return a.fillInbox(c, q, endpointID, asked, rows, &v)
	})
	if err == nil {
		v.EndpointHead = a.head(c, e, "inbox")
	}
	return v, err
}

// fillInbox lists the requests and shows the selected one, or the newest.
func (a *dashboard) fillInbox(c *handlers.Call, q *db.Tx, endpointID, asked id.UUID,
	rows []sql.ListInboxRequestsRow, v *pages.InboxView,
) error {
	at := 0
	for i, r := range rows {
		if r.ID == asked {
			at = i
		}
	}
	for i, r := range rows {
		text := id.Received.Format(r.ID)
		v.Rows = append(v.Rows, pages.InboxRow{
			ID: text, Href: endpointPath(c, endpointID) + "/inbox?request=" + text + "#request", At: r.ReceivedAt, Challenge: r.Challenge,
			Good: r.Good, Answer: inbox.Answer(r.Answer), Bytes: int(r.BodyBytes), Chosen: i == at,
		})
	}
	if len(rows) == 0 {
		return nil
	}
	r, err := listen.ReadInboxRequest(c.Ctx(), q, c.Actor.Tenant, rows[at].ID)
	if db.IsMissing(err) {
		return nil // deleted a moment ago
	}
	if err != nil {
		return err
	}
	v.Chosen = &pages.InboxDetail{InboxRow: v.Rows[at], Method: r.Method, Why: r.Detail, Secret: r.SecretHint}
	if v.Hidden {
		return nil
	}
	v.Chosen.Head, v.Chosen.Body = strings.TrimSpace(r.Head), excerpt(r.Body, bodyShown)
	if v.Chosen.Body.Size = int(r.BodyBytes); r.BodyBytes == 0 {
		v.Chosen.Body.Gone = "There was no body."
	}
	return nil
}

func (a *dashboard) answerInbox(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	answer, wrong := inbox.ParseAnswer(in.Get("answer"))
	if wrong != nil {
		v, err := a.inboxView(c)
		if err != nil {
			return err
		}
		v.Wrong = fault.As(wrong).Detail
		return c.Render(handlers.Status(wrong), pages.Inbox(v))
	}
	err = c.Tx(func(q *db.Tx) error {
		return listen.AnswerInbox(c.Ctx(), q, c.Actor.Tenant, endpointID, answer, c.Author())
	})
	if err != nil {
		return err
	}
	c.Flash("Saved.")
	return c.Redirect(endpointPath(c, endpointID) + "/inbox")
}

func (a *dashboard) clearInbox(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		return listen.EmptyInbox(c.Ctx(), q, c.Actor.Tenant, endpointID, c.Author())
	})
	if err != nil {
		return err
	}
	c.Flash("Inbox cleared.")
	return c.Redirect(endpointPath(c, endpointID) + "/inbox")
}
