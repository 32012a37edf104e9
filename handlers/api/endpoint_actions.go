package api

import (
	"encoding/json"
	"net/http"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/handlers"
)

func (a *api) verifyEndpoint(c *handlers.Call) error {
	u, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	var v sql.Verification
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		if v, err = endpoints.Verify(c.Ctx(), q, c.Actor.Tenant, u); err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.verify", u, nil)
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, verificationView(v))
}

func (a *api) pauseEndpoint(c *handlers.Call) error {
	u, err := a.endpointOf(c)
	if err != nil {
		return err
	}
	_, e, err := a.setState(c, u, "endpoint.pause", endpoint.Pause, nil)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, endpointView(e, a.Now()))
}

// resumeEndpoint answers 202 where a verification has to succeed first. What was held is delivered, or dropped by a job that
// the answer names.
func (a *api) resumeEndpoint(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var in ResumeInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	drop := in.Held != nil && *in.Held == ResumeInputHeldDrop
	if in.Held != nil && !in.Held.Valid() {
		wrong.add("held", "held_unknown", "held is deliver or drop: what is to become of the deliveries that were held.")
	}
	if err := wrong.err(); err != nil {
		return err
	}
	var job sql.BulkJob
	change, e, err := a.setState(c, u, "endpoint.resume", endpoint.Resume, func(q *sql.Queries) error {
		if drop {
			job, err = deliveries.DropHeld(c.Ctx(), q, c.Actor.Tenant, u, c.Author(), reason)
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
	return c.Answer(status, endpointView(e, a.Now()))
}

// setState does what a rule says about an endpoint's state, and audits what it changed; also is what else belongs to the
// change.
func (a *api) setState(c *handlers.Call, u id.UUID, action string, rule func(endpoint.Status) (endpoint.Change, error), also func(*sql.Queries) error) (change endpoint.Change, e endpoints.Full, err error) {
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		var from endpoint.Status
		var changed bool
		e, changed, err = endpoints.SetState(c.Ctx(), q, a.Keys, c.Actor.Tenant, u, func(s endpoint.Status) (endpoint.Change, error) {
			var refused error
			from = s
			change, refused = rule(s)
			return change, refused
		})
		if err != nil || !changed {
			return err
		}
		if err := auditEndpoint(c, q, action, u, map[string]any{"from": from, "to": change.To}); err != nil || also == nil {
			return err
		}
		return also(q)
	})
	return change, e, err
}

// endpointOf reads the id of an action that takes no body.
func (a *api) endpointOf(c *handlers.Call) (id.UUID, error) {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return u, err
	}
	return u, c.NoBody()
}

// testEndpoint emits an event to this endpoint alone. It goes the way of every event, so that a test that arrives proves the
// whole way.
func (a *api) testEndpoint(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var in TestInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	e, err := a.testEmission(in)
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		row, err := q.GetEndpoint(c.Ctx(), sql.GetEndpointParams{TenantID: c.Actor.Tenant, ID: u})
		if err != nil {
			return err
		}
		return endpoint.Test(endpoint.Status(row.Status))
	})
	if err != nil {
		return err
	}
	r := a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, []emit.Item{{Emission: e, Only: &u}})[0]
	if r.Err != nil {
		return r.Err
	}
	var sent id.UUID
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		ask := sql.DeliveryToParams{TenantID: c.Actor.Tenant, EventID: r.ID, EndpointID: u, Since: r.ID.Time()}
		if sent, err = q.DeliveryTo(c.Ctx(), ask); err != nil {
			return err
		}
		if err := auditEndpoint(c, q, "endpoint.test", u, map[string]string{"event": id.Event.Format(r.ID), "type": e.Type}); err != nil {
			return err
		}
		return deliveries.HastenTest(c.Ctx(), q, c.Actor.Tenant, sent)
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, TestAccepted{
		ID: id.Event.Format(r.ID), CreatedAt: r.ID.Time(), Deliveries: r.Deliveries, DeliveryID: id.Delivery.Format(sent),
	})
}

// testEmission reads a test as any other emission is read.
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
