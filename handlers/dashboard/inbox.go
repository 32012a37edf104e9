package dashboard

import (
	"net/http"
	"slices"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/show"
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
// because the inbox checks signatures itself. A member who wants a secret rotates it. A test event waits for the end of
// the verification.
func (a *dashboard) createInbox(c *handlers.Call) error {
	var e show.Endpoint
	err := c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant)
		if err != nil {
			return err
		}
		settings := inbox.Settings(defaults.Settings)
		secret, err := secretRequest(nil).Secret(settings.Wire(), false)
		if err != nil {
			return err
		}
		n := endpoints.New{Settings: settings, Secret: secret, Limit: defaults.MaxEndpoints}
		e, err = listen.Inboxes{Keys: a.Keys, BaseURL: a.BaseURL}.Create(c.Ctx(), q, c.Actor.Tenant, n, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	next := "Then it gets a test event."
	if _, err := a.emitTo(c, e.ID, endpoint.TestType, testData); err != nil { // a quota, say: the inbox is there all the same
		next = "Then send it a test event."
	}
	return c.Done(endpointPath(c, e.ID)+"/inbox", "This is your test inbox. It's being verified now. "+next)
}

func (a *dashboard) showInbox(c *handlers.Call) error {
	v, err := a.inboxView(c)
	if err != nil {
		return err
	}
	if c.Fragment() {
		return c.Render(http.StatusOK, pages.InboxNews(v))
	}
	return c.Render(http.StatusOK, pages.Inbox(v))
}

func (a *dashboard) inboxView(c *handlers.Call) (v pages.InboxView, err error) {
	endpointID := c.PathID("endpoint_id")
	asked, _ := id.Received.Parse(c.Query("request")) // an invalid choice counts as none
	var e show.Endpoint
	err = c.Tx(func(q *db.Tx) error {
		if e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		payloads, err := a.readsPayloads(c, q)
		if err != nil {
			return err
		}
		v = pages.InboxView{
			Hidden:       !payloads,
			Poll:         endpointPath(c, endpointID) + "/inbox",
			Verification: verificationView(c, e),
		}
		if !asked.IsZero() {
			v.Poll += "?request=" + id.Received.Format(asked)
		}
		if v.Answer, v.Rows, err = listen.InboxRequests(c.Ctx(), q, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		return chooseRequest(c, q, asked, &v)
	})
	if err == nil {
		v.EndpointHead = a.head(c, e, "inbox")
	}
	return v, err
}

// chooseRequest shows the selected request, or the newest.
func chooseRequest(c *handlers.Call, q *db.Tx, asked id.UUID, v *pages.InboxView) error {
	if len(v.Rows) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(v.Rows, func(r inbox.Received) bool { return r.ID == asked }))
	r, err := listen.ReadInboxRequest(c.Ctx(), q, c.Actor.Tenant, v.Rows[at].ID)
	if db.IsMissing(err) {
		return nil // deleted a moment ago
	}
	if err != nil {
		return err
	}
	v.Chosen = &pages.InboxDetail{Received: r}
	if v.Hidden {
		return nil
	}
	v.Chosen.Excerpt = excerpt(r.Body, bodyShown)
	if v.Chosen.Excerpt.Size = r.Bytes; r.Bytes == 0 {
		v.Chosen.Excerpt.Gone = "There was no body."
	}
	return nil
}

func (a *dashboard) answerInbox(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
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
	return c.Done(endpointPath(c, endpointID)+"/inbox", "Saved.")
}

func (a *dashboard) clearInbox(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	err := c.Tx(func(q *db.Tx) error {
		return listen.EmptyInbox(c.Ctx(), q, c.Actor.Tenant, endpointID, c.Author())
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID)+"/inbox", "Inbox cleared.")
}
