package svix

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"posthorn/domain/feed"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// polled is a page of a feed in Svix's form. The iterator is the feed's cursor.
type polled struct {
	Data     []polledMessage `json:"data"`
	Iterator string          `json:"iterator"`
	Done     bool            `json:"done"`
}

// polledMessage is a message with the headers of a webhook.
type polledMessage struct {
	message
	Headers map[string]string `json:"headers"`
}

// pollerOf is the path of the feed that a path of Svix's names. A key of a tenant, such as the token of a consumer,
// names no tenant.
func pollerOf(c *handlers.Call) string {
	base := ""
	if c.Actor.Platform {
		base = tenantPath(c)
	}
	return base + "/feeds/" + url.PathEscape(c.Param(handlers.EndpointParam))
}

// poll reads a page after an iterator, or from a time. Svix's pollers begin with the oldest message.
func (s *svix) poll(c *handlers.Call) error {
	query := url.Values{}
	if text := c.Query("iterator"); text != "" {
		query.Set("cursor", text)
	} else if text := c.Query("after"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return refuseField("after", "after is a time, such as 2026-11-01T00:00:00Z.")
		}
		query.Set("start", at.UTC().Format(time.RFC3339Nano))
	}
	return s.page(c, query)
}

// pollConsumer reads a page for a consumer, which is created by its first poll. An iterator says that the consumer has
// finished everything up to it.
func (s *svix) pollConsumer(c *handlers.Call) error {
	query := url.Values{"consumer": {c.Param("consumer")}, "create": {"true"}}
	if text := c.Query("iterator"); text != "" {
		in := map[string]string{"cursor": text, "consumer": c.Param("consumer")}
		if _, err := s.call(c, http.MethodPost, pollerOf(c)+"/ack", in, nil); err != nil {
			return err
		}
	}
	return s.page(c, query)
}

// readPage reads a page of the feed with the data of its events.
func (s *svix) readPage(c *handlers.Call, query url.Values) (p api.FeedPage, err error) {
	query.Set("include_data", "true")
	if text := c.Query("limit"); text != "" {
		query.Set("limit", text)
	}
	_, err = s.call(c, http.MethodGet, pollerOf(c)+"?"+query.Encode(), nil, &p)
	return p, err
}

func (s *svix) page(c *handlers.Call, query url.Values) error {
	p, err := s.readPage(c, query)
	if err != nil {
		return err
	}
	out := polled{Data: make([]polledMessage, len(p.Data)), Iterator: p.Cursor, Done: p.CaughtUp}
	for i, e := range p.Data {
		out.Data[i] = polledMessageOf(e)
	}
	return c.Answer(http.StatusOK, out)
}

// offsetMessage is a message of the second version of pollers, which commits numbers.
type offsetMessage struct {
	Offset int64 `json:"offset"`
	polledMessage
}

// pollOffsets reads a page for a consumer as AutoConfigConsumer does. It begins with the tenant's log: an event from
// before has no number.
func (s *svix) pollOffsets(c *handlers.Call) error {
	query := url.Values{"consumer": {c.Param("consumer")}, "create": {"true"}, "start": {feed.Oldest}}
	switch c.Query("starting_position") {
	case "", "earliest":
	case "latest":
		query.Set("start", feed.Now)
	default:
		return refuseField("starting_position", "starting_position is earliest or latest.")
	}
	if text := c.Query("lease_duration_ms"); text != "" {
		if n, err := strconv.ParseUint(text, 10, 63); err != nil || n == 0 {
			return refuseField("lease_duration_ms", "lease_duration_ms is a number of milliseconds.")
		}
	}
	p, err := s.readPage(c, query)
	if err != nil {
		return err
	}
	if len(p.Data) > 0 && offsetOf(p.Data[0]) == 0 {
		skip := map[string]string{"cursor": feed.Place{}.String(), "consumer": c.Param("consumer")}
		if _, err := s.call(c, http.MethodPost, pollerOf(c)+"/ack", skip, nil); err != nil {
			return err
		}
		if p, err = s.readPage(c, query); err != nil {
			return err
		}
	}
	out := struct {
		Data []offsetMessage `json:"data"`
		Done bool            `json:"done"`
	}{make([]offsetMessage, len(p.Data)), p.CaughtUp}
	for i, e := range p.Data {
		out.Data[i] = offsetMessage{offsetOf(e), polledMessageOf(e)}
	}
	return c.Answer(http.StatusOK, out)
}

func offsetOf(e api.FeedEvent) int64 {
	place, err := feed.ParsePlace(e.Cursor)
	if err != nil {
		return 0
	}
	return place.Offset()
}

// commitOffset acknowledges everything up to a message.
func (s *svix) commitOffset(c *handlers.Call) error {
	var in struct {
		Offset int64 `json:"offset"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	place, err := feed.PlaceAt(in.Offset)
	if err != nil {
		return refuseField("offset", "offset is the one of a message that was polled.")
	}
	ack := map[string]string{"cursor": place.String(), "consumer": c.Param("consumer")}
	if _, err := s.call(c, http.MethodPost, pollerOf(c)+"/ack", ack, nil); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func polledMessageOf(e api.FeedEvent) polledMessage {
	m := polledMessage{
		message: message{ID: e.EventID, EventType: e.EventType, Payload: json.RawMessage("{}"), Timestamp: e.AcceptedAt, DeliverAt: e.DeliverAt},
		Headers: map[string]string{},
	}
	if e.Channels != nil && len(*e.Channels) > 0 {
		m.Channels = *e.Channels
	}
	// As in messageView: the libraries read a payload as an object.
	if e.Data != nil && len(*e.Data) > 0 && (*e.Data)[0] == '{' {
		m.Payload = *e.Data
	}
	for _, one := range e.Headers {
		m.Headers[one.Name] = one.Value
	}
	return m
}

// seekConsumer moves a consumer to a time.
func (s *svix) seekConsumer(c *handlers.Call) error {
	var in struct {
		After api.Time `json:"after"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	rewind := map[string]string{"start": time.Time(in.After).UTC().Format(time.RFC3339Nano), "consumer": c.Param("consumer")}
	var moved api.FeedConsumer
	if _, err := s.call(c, http.MethodPost, pollerOf(c)+"/rewind", rewind, &moved); err != nil {
		return err
	}
	return c.Answer(http.StatusOK, map[string]string{"iterator": moved.Cursor})
}
