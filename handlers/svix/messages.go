package svix

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"posthorn/handlers"
	"posthorn/handlers/api"
)

// message is an event as Svix shows it.
type message struct {
	ID        string          `json:"id"`
	EventID   *string         `json:"eventId"`
	EventType string          `json:"eventType"`
	Payload   json.RawMessage `json:"payload"`
	Channels  []string        `json:"channels"`
	Timestamp api.Time        `json:"timestamp"`
	Tags      []string        `json:"tags"`
	DeliverAt *api.Time       `json:"deliverAt,omitempty"`
}

func messageView(e api.EventWithData, withContent bool) message {
	m := message{ID: e.ID, EventType: e.Type, Payload: json.RawMessage("{}"), Timestamp: e.CreatedAt}
	if own, err := e.EventID.Get(); err == nil {
		m.EventID = &own
	}
	if len(e.Channels) > 0 {
		m.Channels = e.Channels
	}
	if at, err := e.DeliverAt.Get(); err == nil {
		m.DeliverAt = &at
	}
	if withContent && len(e.Data) > 0 && string(e.Data) != "null" {
		m.Payload = e.Data
	}
	return m
}

// messageInput is a message to be sent. The payload's bytes go to the receivers as they are.
type messageInput struct {
	EventType string          `json:"eventType"`
	EventID   *string         `json:"eventId"`
	Payload   json.RawMessage `json:"payload"`
	Channels  []string        `json:"channels"`
	DeliverAt *api.Time       `json:"deliverAt"`
	App       *appInput       `json:"application"`

	Transformations struct {
		RawPayload *string `json:"rawPayload"`
	} `json:"transformationsParams"`
}

// emission is the input as an event of Posthorn's own API. It is written by hand, so that the payload stays as it is.
func (in messageInput) emission(idempotencyKey string) []byte {
	out := make([]byte, 0, len(in.Payload)+256)
	field := func(name string, value any) {
		out = append(append(append(out, `,"`...), name...), `":`...)
		out = append(out, encode(value)...)
	}
	out = append(append(out, `{"type":`...), encode(in.EventType)...)
	if in.EventID != nil {
		field("event_id", *in.EventID)
	}
	if len(in.Channels) > 0 {
		field("channels", in.Channels)
	}
	if in.DeliverAt != nil {
		field("deliver_at", *in.DeliverAt)
	}
	if in.App != nil {
		field("create_tenant", true)
	}
	if idempotencyKey != "" {
		field("idempotency_key", idempotencyKey)
	}
	out = append(append(out, `,"data":`...), in.Payload...)
	return append(out, '}')
}

func (s *svix) createMessage(c *handlers.Call) error {
	var in messageInput
	if err := decode(c, &in); err != nil {
		return err
	}
	switch {
	case in.EventType == "":
		return refuseField("eventType", "A message needs an event type.")
	case len(in.Payload) == 0:
		return refuseField("payload", "A message needs a payload.")
	case in.Transformations.RawPayload != nil:
		return notImplemented("Payloads that are not JSON are not sent. Leave transformationsParams out.")
	}
	// Svix knows a message again by its event id; so is the key of a repeated request.
	key := c.GetHeader("Idempotency-Key")
	if in.EventID != nil && (key == "" || strings.HasPrefix(key, "auto_")) {
		key = "eventId:" + *in.EventID
	}
	var made api.Accepted
	if _, err := s.call(c, http.MethodPost, tenantPath(c)+"/events", in.emission(key), &made); err != nil {
		return err
	}
	m := message{ID: made.ID, EventID: in.EventID, EventType: in.EventType, Payload: in.Payload, Channels: in.Channels, Timestamp: made.CreatedAt, DeliverAt: in.DeliverAt}
	if !withContent(c) {
		m.Payload = json.RawMessage("{}")
	}
	return c.Answer(http.StatusAccepted, m)
}

func withContent(c *handlers.Call) bool { return c.Query("with_content") != "false" }

// readMessage reads an event of the application that the path names.
func (s *svix) readMessage(c *handlers.Call, event string, content bool) (message, error) {
	var e api.EventWithData
	_, err := s.call(c, http.MethodGet, tenantPath(c)+"/events/"+url.PathEscape(event), nil, &e)
	return messageView(e, content), err
}

// listMessages reads a page of events, and the payload of each where it is asked for.
func (s *svix) listMessages(c *handlers.Call) error {
	query := listQuery(c)
	if types := c.QueryArray("event_types"); len(types) == 1 {
		query.Set("type", types[0])
	} else if len(types) > 1 {
		return notImplemented("Messages are listed by one event type or by all.")
	}
	return list(s, c, tenantPath(c)+"/events", query, func(e api.Event) (message, error) {
		if withContent(c) {
			return s.readMessage(c, e.ID, true)
		}
		return messageView(api.EventWithData{
			ID: e.ID, Type: e.Type, CreatedAt: e.CreatedAt, Channels: e.Channels, EventID: e.EventID, DeliverAt: e.DeliverAt,
		}, false), nil
	})
}

func (s *svix) getMessage(c *handlers.Call) error {
	m, err := s.readMessage(c, c.Param("msg_id"), withContent(c))
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, m)
}

func (s *svix) expungeMessage(c *handlers.Call) error {
	path := tenantPath(c) + "/events/" + url.PathEscape(c.Param("msg_id")) + "/expunge"
	if _, err := s.call(c, http.MethodPost, path, map[string]string{"reason": "Asked for through the Svix API"}, nil); err != nil {
		return err
	}
	return c.AnswerNothing()
}

// The states of a delivery and of an attempt, in Svix's numbers.
const (
	statusSuccess = 0
	statusPending = 1
	statusFail    = 2
)

var statusTexts = []string{"success", "pending", "fail"}

func statusOf(d api.Delivery) int {
	switch d.Status {
	case "delivered":
		return statusSuccess
	case "failed", "canceled":
		return statusFail
	}
	return statusPending
}

func nextAttempt(d api.Delivery) *api.Time {
	if at, err := d.NextAttemptAt.Get(); err == nil {
		return &at
	}
	return nil
}

// deliveryQuery adds the filter by status to what lists have in common.
func deliveryQuery(c *handlers.Call) (url.Values, error) {
	query := listQuery(c)
	switch c.Query("status") {
	case "":
	case "0":
		query.Set("status", "delivered")
	case "1":
		query.Set("status", "pending")
	case "2":
		query.Set("status", "failed")
	default:
		return nil, refuseField("status", "The status is 0 (success), 1 (pending) or 2 (fail).")
	}
	if types := c.QueryArray("event_types"); len(types) == 1 {
		query.Set("type", types[0])
	} else if len(types) > 1 {
		return nil, notImplemented("Lists are by one event type or by all.")
	}
	return query, nil
}

// listEndpointMessages lists the deliveries to an endpoint as messages.
func (s *svix) listEndpointMessages(c *handlers.Call) error {
	query, err := deliveryQuery(c)
	if err != nil {
		return err
	}
	query.Set("endpoint", c.Param(handlers.EndpointParam))
	type endpointMessage struct {
		message
		Status      int       `json:"status"`
		StatusText  string    `json:"statusText"`
		NextAttempt *api.Time `json:"nextAttempt"`
	}
	return list(s, c, tenantPath(c)+"/deliveries", query, func(d api.Delivery) (endpointMessage, error) {
		m, err := s.readMessage(c, d.EventID, withContent(c))
		if missing(err) {
			m, err = message{ID: d.EventID, EventType: d.EventType, Payload: json.RawMessage("{}"), Timestamp: d.CreatedAt}, nil
		}
		return endpointMessage{message: m, Status: statusOf(d), StatusText: statusTexts[statusOf(d)], NextAttempt: nextAttempt(d)}, err
	})
}

// listDestinations lists the endpoints that a message went to, with what came of it.
func (s *svix) listDestinations(c *handlers.Call) error {
	type destination struct {
		endpointOut
		Status      int       `json:"status"`
		StatusText  string    `json:"statusText"`
		NextAttempt *api.Time `json:"nextAttempt"`
	}
	path := tenantPath(c) + "/events/" + url.PathEscape(c.Param("msg_id")) + "/deliveries"
	return list(s, c, path, listQuery(c), func(d api.Delivery) (destination, error) {
		var e api.Endpoint
		_, err := s.call(c, http.MethodGet, tenantPath(c)+"/endpoints/"+d.EndpointID, nil, &e)
		if missing(err) {
			// deleted
			e, err = api.Endpoint{ID: d.EndpointID, Status: "disabled", CreatedAt: d.CreatedAt, UpdatedAt: d.CreatedAt}, nil
		}
		v, _ := endpointView(e) // never fails
		return destination{endpointOut: v, Status: statusOf(d), StatusText: statusTexts[statusOf(d)], NextAttempt: nextAttempt(d)}, err
	})
}

// resend sends a message to one endpoint again.
func (s *svix) resend(c *handlers.Call) error {
	path := tenantPath(c) + "/events/" + url.PathEscape(c.Param("msg_id")) + "/replay"
	if _, err := s.call(c, http.MethodPost, path, map[string]string{"endpoint_id": c.Param(handlers.EndpointParam)}, nil); err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, struct{}{})
}

// attempt is an attempt as Svix shows it.
type attempt struct {
	ID                 string   `json:"id"`
	EndpointID         string   `json:"endpointId"`
	MsgID              string   `json:"msgId"`
	URL                string   `json:"url"`
	Response           string   `json:"response"`
	ResponseStatusCode int      `json:"responseStatusCode"`
	ResponseDurationMs int64    `json:"responseDurationMs"`
	Status             int      `json:"status"`
	StatusText         string   `json:"statusText"`
	TriggerType        int      `json:"triggerType"` // 0: scheduled, 1: by hand
	Timestamp          api.Time `json:"timestamp"`
	Msg                *message `json:"msg,omitempty"`
}

// attemptsOf are the attempts of a delivery, newest first.
func attemptsOf(d api.DeliveryWithAttempts) []attempt {
	out := make([]attempt, 0, len(d.Attempts))
	for _, a := range d.Attempts {
		v := attempt{
			ID: a.ID, EndpointID: d.EndpointID, MsgID: d.EventID, URL: a.URL, Status: statusFail, Timestamp: a.StartedAt,
			ResponseDurationMs: int64(a.Phases.TotalUs / 1000),
		}
		if code, err := a.Status.Get(); err == nil {
			v.ResponseStatusCode = code
		}
		if v.ResponseStatusCode >= 200 && v.ResponseStatusCode < 300 && !present(a.Failure.Get()) {
			v.Status = statusSuccess
		}
		if text, err := a.ResponseExcerpt.Get(); err == nil {
			v.Response = text
		} else if text, err := a.Error.Get(); err == nil {
			v.Response = text
		}
		if present(d.ReplayOf.Get()) {
			v.TriggerType = 1
		}
		v.StatusText = statusTexts[v.Status]
		out = append(out, v)
	}
	slices.Reverse(out)
	return out
}

func present(_ string, err error) bool { return err == nil }

// listAttempts lists the attempts of a page of deliveries. The iterator is that of the deliveries, so a page can hold
// more or fewer attempts than its limit.
func (s *svix) listAttempts(c *handlers.Call, path string, query url.Values) error {
	var rows own[api.Delivery]
	if _, err := s.call(c, http.MethodGet, path+"?"+query.Encode(), nil, &rows); err != nil {
		return err
	}
	out := page[attempt]{Data: []attempt{}, Iterator: rows.NextCursor, Done: rows.NextCursor == nil}
	for _, row := range rows.Data {
		var d api.DeliveryWithAttempts
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/deliveries/"+row.ID, nil, &d); err != nil {
			return err
		}
		out.Data = append(out.Data, attemptsOf(d)...)
	}
	slices.SortStableFunc(out.Data, func(a, b attempt) int { return time.Time(b.Timestamp).Compare(time.Time(a.Timestamp)) })
	return c.Answer(http.StatusOK, out)
}

func (s *svix) listAttemptsByEndpoint(c *handlers.Call) error {
	query, err := deliveryQuery(c)
	if err != nil {
		return err
	}
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, nil); err != nil {
		return err
	}
	query.Set("endpoint", c.Param(handlers.EndpointParam))
	return s.listAttempts(c, tenantPath(c)+"/deliveries", query)
}

func (s *svix) listAttemptsByMessage(c *handlers.Call) error {
	query := url.Values{}
	for _, name := range []string{"limit", "cursor"} {
		if v := listQuery(c).Get(name); v != "" {
			query.Set(name, v)
		}
	}
	return s.listAttempts(c, tenantPath(c)+"/events/"+url.PathEscape(c.Param("msg_id"))+"/deliveries", query)
}

// getAttempt finds an attempt among those of the message's deliveries.
func (s *svix) getAttempt(c *handlers.Call) error {
	event := c.Param("msg_id")
	var rows own[api.Delivery]
	if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/events/"+url.PathEscape(event)+"/deliveries?limit=250", nil, &rows); err != nil {
		return err
	}
	for _, row := range rows.Data {
		var d api.DeliveryWithAttempts
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/deliveries/"+row.ID, nil, &d); err != nil {
			return err
		}
		for _, a := range attemptsOf(d) {
			if a.ID == c.Param("attempt_id") {
				m, err := s.readMessage(c, event, true)
				if err != nil {
					return err
				}
				a.Msg = &m
				return c.Answer(http.StatusOK, a)
			}
		}
	}
	return &refusal{status: http.StatusNotFound, code: "not_found", detail: "The message has no such attempt."}
}

// getTask reads a bulk job. The task's id names its application.
func (s *svix) getTask(c *handlers.Call) error {
	tenant, job, ok := strings.Cut(strings.TrimPrefix(c.Param("task_id"), "qtask_"), ".")
	if !ok {
		return &refusal{status: http.StatusNotFound, code: "not_found", detail: "There is no such task."}
	}
	var j api.BulkJob
	if _, err := s.call(c, http.MethodGet, "/tenants/"+url.PathEscape(tenant)+"/bulk-jobs/"+url.PathEscape(job), nil, &j); err != nil {
		return err
	}
	return c.Answer(http.StatusOK, taskView(tenant, "endpoint.recover", j))
}
