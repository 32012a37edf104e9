package api

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) verifyEndpoint(c *handlers.Call) error {
	endpointID, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	var v *show.Verification
	err = c.Tx(func(q *db.Tx) error {
		v, err = a.editor(c).Verify(c.Ctx(), q, c.Actor.Tenant, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, encodeVerification(*v))
}

func (a *api) pauseEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in EndpointPauseInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var until time.Time
	set(&until, (*time.Time)(in.Until))
	_, e, err := a.setState(c, endpointID, "endpoint.pause", endpoint.PauseUntil(until, a.Now()), nil)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeEndpoint(e))
}

// requestCertificate creates a certificate signing request.
func (a *api) requestCertificate(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in CertificateRequestInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var name string
	set(&name, in.CommonName)
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Endpoint, error) {
		return a.editor(c).Edit(c.Ctx(), q, c.Actor.Tenant, endpointID, func(s endpoint.Settings) (endpoint.Settings, error) {
			s, err := s.RequestCertificate(rand.Reader, name)
			if err != nil {
				return s, err
			}
			return s.Check(a.Egress)
		})
	}, encodeEndpoint)
}

// rewindEndpoint sends everything again since a start, in order, and live events behind it.
func (a *api) rewindEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in EndpointRewind
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	start, err := feed.ParseStart(in.Start)
	if err == nil {
		err = wrong.err()
	}
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Endpoint, error) {
		ed := a.editor(c)
		ed.By = ed.By.Because(reason)
		return feeds.Rewind(c.Ctx(), q, ed, feeds.Rewound{Tenant: c.Actor.Tenant, Endpoint: endpointID, Start: start, Now: a.Now()})
	}, encodeEndpoint)
}

// muteEndpoint mutes the alerts of an endpoint.
func (a *api) muteEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in MuteInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var until time.Time
	set(&until, (*time.Time)(in.Until))
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Endpoint, error) {
		return a.editor(c).Mute(c.Ctx(), q, c.Actor.Tenant, endpointID, until, a.Now())
	}, encodeEndpoint)
}

func (a *api) unmuteEndpoint(c *handlers.Call) error {
	endpointID, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Endpoint, error) {
		return a.editor(c).Unmute(c.Ctx(), q, c.Actor.Tenant, endpointID)
	}, encodeEndpoint)
}

// resumeEndpoint responds with 202 if a verification has to succeed first. Held deliveries are sent, or dropped by a
// job that the response names.
func (a *api) resumeEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in ResumeInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	drop := in.Held != nil && *in.Held == ResumeInputHeldDrop
	if in.Held != nil && !in.Held.Valid() {
		wrong.add("held", "held_unknown", "held must be deliver or drop. It decides what happens to held deliveries.")
	}
	if err := wrong.err(); err != nil {
		return err
	}
	var job show.Job
	change, e, err := a.setState(c, endpointID, "endpoint.resume", endpoint.Resume, func(q *db.Tx) (err error) {
		if drop {
			job, err = deliveries.DropHeld(c.Ctx(), q, c.Actor.Tenant, endpointID, c.Author(), reason)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !job.ID.IsZero() {
		c.Writer.Header().Set("Bulk-Job", id.Job.Format(job.ID))
	}
	status := http.StatusOK
	if change.Verify {
		status = http.StatusAccepted
	}
	return c.Answer(status, encodeEndpoint(e))
}

// setState applies a rule about an endpoint's state and audits the change. also runs in the same transaction.
func (a *api) setState(
	c *handlers.Call,
	endpointID id.UUID,
	action string,
	rule func(endpoint.Status) (endpoint.Change, error),
	also func(*db.Tx) error,
) (change endpoint.Change, e show.Endpoint, err error) {
	err = c.Tx(func(q *db.Tx) error {
		var changed bool
		e, change, changed, err = a.editor(c).SetState(c.Ctx(), q, c.Actor.Tenant, endpointID, action, rule)
		if err != nil || !changed || also == nil {
			return err
		}
		return also(q)
	})
	return change, e, err
}

// endpointOf reads the endpoint's id for an action without a body.
func (a *api) endpointOf(c *handlers.Call) (id.UUID, error) {
	endpointID := c.PathID("endpoint_id")
	return endpointID, c.NoBody()
}

// testEndpoint emits an event to one endpoint. The event goes through every step of a normal one, so a delivered test
// proves that all of them work.
func (a *api) testEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in TestInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	e, err := a.testEmission(in)
	if err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		status, err := endpoints.Status(c.Ctx(), q, c.Actor.Tenant, endpointID)
		if err != nil {
			return err
		}
		return endpoint.Test(status)
	})
	if err != nil {
		return err
	}
	r := a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, []emit.Item{{Emission: e, Only: &endpointID}})[0]
	if r.Err != nil {
		return r.Err
	}
	err = c.Tx(func(q *db.Tx) error {
		if err := a.editor(c).Tested(c.Ctx(), q, c.Actor.Tenant, endpointID, r.ID, e.Type); err != nil {
			return err
		}
		return deliveries.HastenTest(c.Ctx(), q, c.Actor.Tenant, r.DeliveryID)
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, TestAccepted{
		ID:         id.Event.Format(r.ID),
		CreatedAt:  Time(r.ID.Time()),
		Deliveries: r.Deliveries,
		DeliveryID: id.Delivery.Format(r.DeliveryID),
	})
}

// testEmission reads a test the way any emission is read.
func (a *api) testEmission(in TestInput) (event.Emission, error) {
	kind, data := endpoint.TestType, in.Data
	if in.Type != nil {
		kind = *in.Type
	}
	if data == nil {
		data = json.RawMessage(`{"test":true}`)
	}
	body, err := json.Marshal(struct {
		Type string `json:"type"`
	}{kind})
	if err != nil {
		return event.Emission{}, err
	}
	body = append(body[:len(body)-1], `,"data":`...) // Marshal would re-encode the data
	body = append(append(body, data...), '}')
	return event.Parse(body, event.Limits{MaxPayload: a.Settings.MaxPayload, Reserved: kind == endpoint.TestType}, a.Now())
}
