package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) createListener(c *handlers.Call) error {
	var in ListenerInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var e show.Endpoint
	n := endpoints.New{Imported: in.Secret != nil}
	err := c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant)
		if err != nil {
			return err
		}
		if n.Settings, err = in.settings(defaults.Settings); err != nil {
			return err
		}
		if n.Secret, err = secretRequest(nil, in.Secret).Secret(n.Settings.Wire(), false); err != nil {
			return err
		}
		e, err = listen.Create(c.Ctx(), q, a.editor(c), c.Actor.Tenant, n)
		return err
	})
	if err != nil {
		return err
	}
	return answerCreated(c, e, n.Secret)
}

// settings are a listener's settings, laid over the tenant's defaults.
func (in ListenerInput) settings(s endpoint.Settings) (endpoint.Settings, error) {
	if err := patch(&s, in); err != nil {
		return s, err
	}
	forward := ""
	set(&forward, in.Forward)
	return s.CheckListener(forward)
}

// answerDelivery records how a listener's program responded to a delivery.
func (a *api) answerDelivery(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in ListenerAnswer
	if err := c.Decode(&in); err != nil {
		return err
	}
	answer, err := in.read()
	if err != nil {
		return err
	}
	d, err := listen.TakeAnswer(c.Ctx(), a.DB, c.Actor.Tenant, endpointID, answer)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeDelivery(d))
}

// read validates the fields of a listener's result.
func (in ListenerAnswer) read() (listen.Answer, error) {
	var a listen.Answer
	var err error
	var fields []fault.Field
	wrong := func(field, detail string) {
		fields = append(fields, fault.Field{Name: field, Code: "answer_malformed", Detail: detail})
	}
	if a.Delivery, err = id.Delivery.Parse(in.DeliveryID); err != nil {
		wrong("delivery_id", "delivery_id is the one that came with the delivery ("+id.Delivery.Rule()+").")
	}
	if a.Attempt, err = id.Attempt.Parse(in.AttemptID); err != nil {
		wrong("attempt_id", "attempt_id must be the one sent with the delivery (att_...).")
	}
	a.Result = in.result(wrong)
	if in.DurationMs < 0 || in.DurationMs > int(time.Hour/time.Millisecond) {
		wrong("duration_ms", "duration_ms must be from 0 to 3,600,000.")
	}
	a.Took = time.Duration(in.DurationMs) * time.Millisecond
	if in.Headers != nil {
		head := http.Header{}
		for name, value := range *in.Headers {
			head.Set(strings.TrimSpace(name), value)
		}
		a.Headers = delivery.HeaderText(head)
	}
	if in.Body != nil {
		a.Excerpt = []byte(delivery.Clip(*in.Body, delivery.MaxExcerpt))
	}
	if in.Error != nil {
		a.Error = delivery.Clip(*in.Error, delivery.MaxError)
	}
	if len(fields) > 0 {
		return a, fault.InvalidFields(fields)
	}
	return a, nil
}

// result is the status of the response, or why there was none.
func (in ListenerAnswer) result(wrong func(field, detail string)) (r delivery.Result) {
	switch {
	case in.Status != nil && in.Failure != nil, in.Status == nil && in.Failure == nil:
		wrong("status", "Send status if there was a response, or failure if there was none.")
	case in.Status != nil && (*in.Status < 100 || *in.Status > 599):
		wrong("status", "status must be an HTTP status from 100 to 599.")
	case in.Status != nil:
		r.Status = *in.Status
	default:
		var known bool
		r.Failure, known = delivery.ParseFailure(string(*in.Failure))
		if !known || slices.Contains([]delivery.Failure{delivery.FailNone, delivery.FailBlocked, delivery.FailInternal, delivery.FailToken, delivery.FailProxy}, r.Failure) {
			wrong("failure", "failure must be dns_error, connect_error, tls_error, timeout, reset, or protocol_error.")
		}
	}
	return r
}
