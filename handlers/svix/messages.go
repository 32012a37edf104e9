package svix

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// message is an event in Svix's form.
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

// messageInput is the body of a new message. The payload's bytes go to the receivers unchanged.
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

// emission converts the input to an event of Posthorn's own API. It builds the JSON itself, so that the payload does
// not change.
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
	// Svix recognizes a repeated message by its event id, so the event id is the idempotency key.
	key := c.GetHeader("Idempotency-Key")
	if in.EventID != nil && (key == "" || strings.HasPrefix(key, "auto_")) {
		key = "eventId:" + *in.EventID
	}
	var made api.Accepted
	if _, err := s.call(c, http.MethodPost, tenantPath(c)+"/events", in.emission(key), &made); err != nil {
		return err
	}
	m := message{
		ID:        made.ID,
		EventID:   in.EventID,
		EventType: in.EventType,
		Payload:   in.Payload,
		Channels:  in.Channels,
		Timestamp: made.CreatedAt,
		DeliverAt: in.DeliverAt,
	}
	if !withContent(c) {
		m.Payload = json.RawMessage("{}")
	}
	return c.Answer(http.StatusAccepted, m)
}

func withContent(c *handlers.Call) bool { return c.Query("with_content") != "false" }

// readMessage reads an event of the path's application by its id.
func (s *svix) readMessage(c *handlers.Call, eventID string, content bool) (message, error) {
	return s.messageAt(c, tenantPath(c)+"/events/"+url.PathEscape(eventID), content)
}

func (s *svix) messageAt(c *handlers.Call, path string, content bool) (message, error) {
	var e api.EventWithData
	_, err := s.call(c, http.MethodGet, path, nil, &e)
	return messageView(e, content), err
}

// eventPath is the path in Posthorn's own API of the message that the path names by its id or by its eventId. Of
// several it is the newest.
func (s *svix) eventPath(c *handlers.Call) (string, error) {
	given := c.Param("msg_id")
	if _, err := id.Event.Parse(given); err != nil && event.CheckEventID(given) == nil {
		var found own[api.Event]
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/events?limit=1&event_id="+url.QueryEscape(given), nil, &found); err != nil {
			return "", err
		}
		if len(found.Data) > 0 {
			given = found.Data[0].ID
		}
	}
	return tenantPath(c) + "/events/" + url.PathEscape(given), nil
}

// listMessages reads a page of events, with the payload of each if requested.
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
			ID:        e.ID,
			Type:      e.Type,
			CreatedAt: e.CreatedAt,
			Channels:  e.Channels,
			EventID:   e.EventID,
			DeliverAt: e.DeliverAt,
		}, false), nil
	})
}

func (s *svix) getMessage(c *handlers.Call) error {
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	m, err := s.messageAt(c, path, withContent(c))
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, m)
}

func (s *svix) expungeMessage(c *handlers.Call) error {
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	if _, err := s.call(c, http.MethodPost, path+"/expunge", map[string]string{"reason": "Asked for through the Svix API"}, nil); err != nil {
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

// deliveryQuery adds the filter by status to the parameters of lists.
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
		return endpointMessage{
			message:     m,
			Status:      statusOf(d),
			StatusText:  statusTexts[statusOf(d)],
			NextAttempt: nextAttempt(d),
		}, err
	})
}

// listDestinations lists the endpoints of a message, with the result for each.
func (s *svix) listDestinations(c *handlers.Call) error {
	type destination struct {
		endpointOut
		Status      int       `json:"status"`
		StatusText  string    `json:"statusText"`
		NextAttempt *api.Time `json:"nextAttempt"`
	}
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	return list(s, c, path+"/deliveries", listQuery(c), func(d api.Delivery) (destination, error) {
		var e api.Endpoint
		_, err := s.call(c, http.MethodGet, tenantPath(c)+"/endpoints/"+d.EndpointID, nil, &e)
		if missing(err) {
			// deleted
			e, err = api.Endpoint{ID: d.EndpointID, Status: "disabled", CreatedAt: d.CreatedAt, UpdatedAt: d.CreatedAt}, nil
		}
		v, _ := endpointView(e) // never fails
		return destination{
			endpointOut: v,
			Status:      statusOf(d),
			StatusText:  statusTexts[statusOf(d)],
			NextAttempt: nextAttempt(d),
		}, err
	})
}

// resend sends a message to one endpoint again.
func (s *svix) resend(c *handlers.Call) error {
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	if _, err := s.call(c, http.MethodPost, path+"/replay", map[string]string{"endpoint_id": c.Param(handlers.EndpointParam)}, nil); err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, struct{}{})
}
