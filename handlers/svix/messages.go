package svix

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
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
	// The libraries read a payload as an object. One that was sent raw is another thing.
	if withContent && len(e.Data) > 0 && e.Data[0] == '{' {
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

	// The libraries for Java and Kotlin send every payload like this, and messageInRaw of the others does.
	Transformations struct {
		RawPayload *string           `json:"rawPayload"`
		Headers    map[string]string `json:"headers"`
	} `json:"transformationsParams"`
}

// data is what the event has of the payload. A raw one that is no JSON, or has another content type, is a string, and
// contentType is that of the requests.
func (in messageInput) data() (data json.RawMessage, contentType string, err error) {
	for name, value := range in.Transformations.Headers {
		if !strings.EqualFold(name, "content-type") {
			return nil, "", refuseField("transformationsParams.headers."+name, "Of the headers only content-type can be given. Give the others to the endpoint.")
		}
		contentType = value
	}
	text := string(in.Payload)
	if in.Transformations.RawPayload != nil {
		text = *in.Transformations.RawPayload
	}
	plain := contentType == "" || strings.EqualFold(contentType, "application/json")
	if plain && json.Valid([]byte(text)) && text == strings.TrimSpace(text) {
		return json.RawMessage(text), "", nil
	}
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false) // escapes count towards the largest payload
	err = e.Encode(text)
	return bytes.TrimSpace(quoted.Bytes()), cmp.Or(contentType, "application/json"), err
}

// svixMessageID is the form of an id that Svix gave a message.
var svixMessageID = regexp.MustCompile(`^msg_[0-9A-Za-z]{27}$`)

// idempotencyKey is what a repeated message is recognized by: as in Svix its event id, unless the caller chose a key.
func (in messageInput) idempotencyKey(c *handlers.Call) string {
	key := c.GetHeader("Idempotency-Key")
	if in.EventID == nil || key != "" && !strings.HasPrefix(key, "auto_") {
		return key
	}
	if key = "eventId:" + *in.EventID; !event.ValidIdempotencyKey(key) {
		sum := sha256.Sum256([]byte(*in.EventID)) // too long
		key = "eventId:" + hex.EncodeToString(sum[:])
	}
	return key
}

// emission converts the input to an event of Posthorn's own API. It builds the JSON itself, so that the payload does
// not change. Receivers see the message's own id, as from Svix. An eventId that is the id of a message of Svix is seen
// instead: both senders send the message during a move (docs/migrate.md).
func (in messageInput) emission(idempotencyKey string) ([]byte, error) {
	data, contentType, err := in.data()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(data)+256)
	field := func(name string, value any) {
		out = append(append(append(out, `,"`...), name...), `":`...)
		out = append(out, encode(value)...)
	}
	out = append(append(out, `{"type":`...), encode(in.EventType)...)
	if in.EventID != nil {
		field("event_id", *in.EventID)
		if !svixMessageID.MatchString(*in.EventID) {
			field("send_event_id", false)
		}
	}
	if contentType != "" {
		field("content_type", contentType)
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
	out = append(append(out, `,"data":`...), data...)
	return append(out, '}'), nil
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
	}
	body, err := in.emission(in.idempotencyKey(c))
	if err != nil {
		return err
	}
	var made api.Accepted
	if _, err := s.call(c, http.MethodPost, tenantPath(c)+"/events", body, &made); err != nil {
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
	return answer(c, http.StatusAccepted, m)
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
	if _, err := id.Event.Parse(given); err != nil && event.CheckUnsentID(given) == nil {
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
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	asked := byType(c, query)
	return list(s, c, tenantPath(c)+"/events", query, func(e api.Event) (m message, listed bool, err error) {
		switch {
		case !asked(e.Type):
			return m, false, nil
		case withContent(c):
			m, err = s.readMessage(c, e.ID, true)
			return m, !missing(err), unlessMissing(err)
		}
		return messageView(api.EventWithData{
			ID:        e.ID,
			Type:      e.Type,
			CreatedAt: e.CreatedAt,
			Channels:  e.Channels,
			EventID:   e.EventID,
			DeliverAt: e.DeliverAt,
		}, false), true, nil
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
	return answer(c, http.StatusOK, m)
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
	statusSuccess  = 0
	statusPending  = 1
	statusFail     = 2
	statusSending  = 3 // tried, and tried again
	statusCanceled = 4
)

var statusTexts = []string{"success", "pending", "fail", "sending", "canceled"}

func statusOf(d api.Delivery) int {
	switch d.Status {
	case "delivered":
		return statusSuccess
	case "failed", "canceled", "expired":
		return statusFail
	case "retrying":
		return statusSending
	}
	return statusPending
}

// statusAsked reads the filter by status; nil: none.
func statusAsked(c *handlers.Call) (*int, error) {
	text := c.Query("status")
	if text == "" {
		return nil, nil //nolint:nilnil // no filter is no error
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < statusSuccess || n > statusCanceled {
		return nil, refuseQuery("status", "The status is 0 (success), 1 (pending), 2 (fail), 3 (sending) or 4 (canceled).")
	}
	return &n, nil
}

func nextAttempt(d api.Delivery) *api.Time {
	if at, err := d.NextAttemptAt.Get(); err == nil {
		return &at
	}
	return nil
}

// unlessMissing is the error, unless it says that something does not exist.
func unlessMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

// narrowed are Posthorn's words for the statuses that are one status there.
var narrowed = map[int]string{statusSuccess: "delivered", statusSending: "retrying"}

// listEndpointMessages lists the deliveries to an endpoint as messages.
func (s *svix) listEndpointMessages(c *handlers.Call) error {
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	status, err := statusAsked(c)
	if err != nil {
		return err
	}
	if status != nil && narrowed[*status] != "" {
		query.Set("status", narrowed[*status])
	}
	asked := byType(c, query)
	query.Set("endpoint", c.Param(handlers.EndpointParam))
	type endpointMessage struct {
		message
		Status      int       `json:"status"`
		StatusText  string    `json:"statusText"`
		NextAttempt *api.Time `json:"nextAttempt"`
	}
	return list(s, c, tenantPath(c)+"/deliveries", query, func(d api.Delivery) (v endpointMessage, listed bool, err error) {
		is := statusOf(d)
		if !asked(d.EventType) || status != nil && *status != is {
			return v, false, nil
		}
		m, err := s.readMessage(c, d.EventID, withContent(c))
		if missing(err) {
			m, err = message{ID: d.EventID, EventType: d.EventType, Payload: json.RawMessage("{}"), Timestamp: d.CreatedAt}, nil
		}
		return endpointMessage{
			message:     m,
			Status:      is,
			StatusText:  statusTexts[is],
			NextAttempt: nextAttempt(d),
		}, true, err
	})
}

// listDestinations lists the endpoints of a message, with the result for each.
func (s *svix) listDestinations(c *handlers.Call) error {
	type destination struct {
		endpointOut
		Metadata    map[string]string `json:"metadata,omitempty"` // Svix leaves it out here
		Status      int               `json:"status"`
		StatusText  string            `json:"statusText"`
		NextAttempt *api.Time         `json:"nextAttempt"`
	}
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	return list(s, c, path+"/deliveries", query, func(d api.Delivery) (destination, bool, error) {
		var e api.Endpoint
		_, err := s.call(c, http.MethodGet, tenantPath(c)+"/endpoints/"+d.EndpointID, nil, &e)
		if missing(err) {
			// deleted
			e, err = api.Endpoint{ID: d.EndpointID, Status: "disabled", CreatedAt: d.CreatedAt, UpdatedAt: d.CreatedAt}, nil
		}
		return destination{
			endpointOut: endpointView(e),
			Status:      statusOf(d),
			StatusText:  statusTexts[statusOf(d)],
			NextAttempt: nextAttempt(d),
		}, true, err
	})
}

// resend sends a message to one endpoint again. If a delivery to it still waits, that one is the next attempt.
func (s *svix) resend(c *handlers.Call) error {
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	_, err = s.call(c, http.MethodPost, path+"/replay", map[string]string{"endpoint_id": c.Param(handlers.EndpointParam)}, nil)
	var r *refusal
	if errors.As(err, &r) && r.code == "delivery_waiting" {
		err = s.hasten(c, path)
	}
	if err != nil {
		return err
	}
	return answer(c, http.StatusAccepted, struct{}{})
}

// hasten makes the waiting delivery of an event to the path's endpoint due. One that has no attempt yet is due by
// itself.
func (s *svix) hasten(c *handlers.Call, path string) error {
	var e api.Endpoint
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, &e); err != nil {
		return err
	}
	for query := "?limit=250"; ; {
		var rows own[api.Delivery]
		if _, err := s.call(c, http.MethodGet, path+"/deliveries"+query, nil, &rows); err != nil {
			return err
		}
		for _, d := range rows.Data {
			if d.EndpointID == e.ID && (d.Status == "retrying" || d.Status == "held") {
				_, err := s.call(c, http.MethodPost, tenantPath(c)+"/deliveries/"+d.ID+"/retry-now", nil, nil)
				return err
			}
		}
		if rows.NextCursor == nil {
			return nil
		}
		query = "?limit=250&cursor=" + url.QueryEscape(*rows.NextCursor)
	}
}
