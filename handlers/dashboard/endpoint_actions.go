package dashboard

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) pauseEndpoint(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	until, err := endOf(in.Get("for"), in.Get("until"), a.Now())
	if err != nil {
		return err
	}
	done := "The endpoint is paused."
	if !until.IsZero() {
		done = "The endpoint is paused until " + components.Stamp(until) + "."
	}
	return a.setState(c, "endpoint.pause", done, endpoint.PauseUntil(until, a.Now()), nil)
}

// endOf reads when something ends: after so many seconds, or at a time; zero: not by itself.
func endOf(after, at string, now time.Time) (time.Time, error) {
	if after != "" && after != "at" {
		return now.Add(time.Duration(number(after)) * time.Second), nil
	}
	if at == "" && after == "" {
		return time.Time{}, nil
	}
	until, err := time.Parse(time.RFC3339, handlers.FormTime(at))
	if err != nil {
		return until, fault.InvalidField("until", "time_malformed", "Enter a date and a time in UTC.")
	}
	return until, nil
}

// rewindEndpoint sends everything again since a start, or ends that.
func (a *dashboard) rewindEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	form, err := c.Form()
	if err != nil {
		return err
	}
	start, err := startOf(form)
	if err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := feeds.Rewind(c.Ctx(), q, a.editor(c), feeds.Rewound{Tenant: c.Actor.Tenant, Endpoint: endpointID, Start: start, Now: a.Now()})
		return err
	})
	if err != nil {
		return err
	}
	done := "Everything is sent again from there, and live events follow."
	if start == (feed.Start{}) {
		done = "The rest of the backlog is not sent. Live events are sent again."
	}
	return c.Done(endpointPath(c, endpointID), done)
}

// muteEndpoint mutes the alerts of an endpoint.
func (a *dashboard) muteEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	in, err := c.Form()
	if err != nil {
		return err
	}
	var until time.Time
	if in.Get("for") != "recovered" {
		if until, err = endOf(in.Get("for"), in.Get("until"), a.Now()); err != nil {
			return err
		}
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).Mute(c.Ctx(), q, c.Actor.Tenant, endpointID, until, a.Now())
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID), "Alerts are muted.")
}

func (a *dashboard) unmuteEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	err := c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).Unmute(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID), "Alerts are sent again.")
}

// resumeEndpoint lets held deliveries be sent, unless the member chose to drop them.
func (a *dashboard) resumeEndpoint(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	if in.Get("held") != "drop" {
		return a.setState(c, "endpoint.resume", "The endpoint is being resumed.", endpoint.Resume, nil)
	}
	return a.setState(c, "endpoint.resume", "The endpoint is being resumed, and held deliveries are being canceled.", endpoint.Resume, func(q *db.Tx, endpointID id.UUID) error {
		_, err := deliveries.DropHeld(c.Ctx(), q, c.Actor.Tenant, endpointID, c.Author(), "")
		return err
	})
}

// setState applies a rule about an endpoint's state, audits the change, and redirects to the endpoint. also runs in the
// same transaction.
func (a *dashboard) setState(
	c *handlers.Call,
	action, done string,
	rule func(endpoint.Status) (endpoint.Change, error),
	also func(*db.Tx, id.UUID) error,
) error {
	endpointID := c.PathID("endpoint_id")
	err := c.Tx(func(q *db.Tx) error {
		_, _, changed, err := a.editor(c).SetState(c.Ctx(), q, c.Actor.Tenant, endpointID, action, rule)
		if err != nil || !changed || also == nil {
			return err
		}
		return also(q, endpointID)
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID), done)
}

// verifyEndpoint sends a verification. Without a script it redirects back to the page of the new endpoint.
func (a *dashboard) verifyEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	form, err := c.Form()
	if err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).Verify(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	if c.Fragment() {
		return a.showVerification(c) // the page stays, with the secret that it possibly shows
	}
	c.Flash("The verification request is being sent.")
	if form.Get("first") == "true" {
		return c.Redirect(endpointPath(c, endpointID) + "/created")
	}
	return c.Redirect(endpointPath(c, endpointID))
}

func (a *dashboard) deleteEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	err := c.Tx(func(q *db.Tx) error { return a.editor(c).Remove(c.Ctx(), q, c.Actor.Tenant, endpointID) })
	if err != nil {
		return err
	}
	return c.Done(root(c)+"/endpoints", "Endpoint deleted. Its waiting deliveries fail permanently.")
}

// showEndpointSettings shows the form of an endpoint's settings. Members who can't change them read them there, with
// the URL masked as in lists.
func (a *dashboard) showEndpointSettings(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	names, err := a.readCatalogue(c)
	if err != nil {
		return err
	}
	v := pages.EndpointSettingsView{EndpointHead: a.head(c, e, "settings"), Form: formOf(e.Settings, names)}
	if !v.MayChange {
		v.Form.URL = v.Endpoint.Settings.URL
	}
	return c.Render(http.StatusOK, pages.EndpointSettings(v))
}

// saveEndpointSettings changes an endpoint. A change without effect is not audited.
func (a *dashboard) saveEndpointSettings(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	in, err := c.Form()
	if err != nil {
		return err
	}
	err = a.changeEndpoint(c, endpointID, func(s endpoint.Settings) (endpoint.Settings, error) {
		s, err := settingsOf(in, s)
		if err != nil {
			return s, err
		}
		return s.Check(a.Egress)
	})
	if err == nil {
		return c.Done(endpointPath(c, endpointID)+"/settings", "Settings saved.")
	}
	cause := err
	e, err := a.read(c)
	if err != nil {
		return err
	}
	names, err := a.readCatalogue(c)
	if err != nil {
		return err
	}
	form, err := filled(in, names, cause)
	if err != nil {
		return err
	}
	form.Kind = string(e.Settings.Kind) // not in the form: it stays
	return c.Render(handlers.Status(cause), pages.EndpointSettings(pages.EndpointSettingsView{
		EndpointHead: a.head(c, e, "settings"),
		Form:         form,
	}))
}

// changeEndpoint changes the settings of an endpoint, and audits the changed fields.
func (a *dashboard) changeEndpoint(c *handlers.Call, endpointID id.UUID, to func(endpoint.Settings) (endpoint.Settings, error)) error {
	return c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).Edit(c.Ctx(), q, c.Actor.Tenant, endpointID, to)
		return err
	})
}

// editor changes endpoints on behalf of the caller.
func (a *dashboard) editor(c *handlers.Call) endpoints.Editor {
	return endpoints.Editor{Keys: a.Keys, By: c.Author()}
}
