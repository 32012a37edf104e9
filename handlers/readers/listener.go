package readers

import (
	"errors"
	"strconv"
	"time"

	"posthorn/db/listen"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

var (
	errStreams = fault.New(fault.Unavailable, "streams_limit", "This server has its maximum of open streams. Try again later.")
	errPlace   = fault.InvalidField("Last-Event-ID", "last_event_id_malformed", "Last-Event-ID must be the id of the last event that the stream sent. Leave it out to start over.")
)

// streamListener sends a listener's deliveries until its client disconnects, the listener is deleted, another stream
// of it starts, or this process stops.
func (h *handler) streamListener(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	seen := int64(0)
	if last := c.Request.Header.Get("Last-Event-ID"); last != "" {
		var err error
		if seen, err = strconv.ParseInt(last, 10, 64); err != nil || seen < 0 {
			return errPlace
		}
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		return errStreams
	}
	number, err := listen.BeginListening(c.Ctx(), h.DB, c.Actor.Tenant, endpointID, seen)
	if err != nil {
		return err
	}
	s, err := c.BeginStream()
	if err != nil {
		return nil // the client has disconnected: nobody would read the error
	}
	h.lease(c, s, endpointID, number)
	return nil
}

// lease writes the leased deliveries. Once the response has started, an error can't be sent: the stream ends, and the
// client connects again.
func (h *handler) lease(c *handlers.Call, s *handlers.Stream, endpointID id.UUID, number int64) {
	look, beat := time.NewTicker(lookEvery), time.NewTicker(beatEvery)
	defer look.Stop()
	defer beat.Stop()
	for {
		given, err := listen.Lease(c.Ctx(), h.DB, h.Keys, c.Actor.Tenant, endpointID, number)
		if err == nil {
			err = c.Still()
		}
		if err == nil {
			err = sendLeased(s, given)
		}
		if err != nil {
			h.endStream(c, s, err)
			return
		}
		select {
		case <-c.Ctx().Done():
			return
		case <-h.Closing:
			return
		case <-beat.C:
			if s.Beat() != nil {
				return
			}
		case <-look.C:
		}
	}
}

// endStream sends the reason if the client must not simply connect again.
func (h *handler) endStream(c *handlers.Call, s *handlers.Stream, err error) {
	switch {
	case errors.Is(err, listen.ErrListenedElsewhere):
		_ = s.Event(0, "listened_elsewhere", struct{}{})
	case fault.Is(err, fault.ErrNotFound.Code):
		_ = s.Event(0, "gone", struct{}{})
	case c.Ctx().Err() == nil && fault.As(err) != nil && fault.As(err).Kind == fault.Internal:
		h.Log.Error("a listener's stream ended", "endpoint", c.Param("endpoint_id"), "error", err)
	}
}

func sendLeased(s *handlers.Stream, given []listen.Request) error {
	for _, h := range given {
		out := api.Handout{
			DeliveryID: id.Delivery.Format(h.Delivery),
			AttemptID:  id.Attempt.Format(h.Attempt),
			EventID:    id.Event.Format(h.Event),
			EventType:  h.EventType,
			Attempt:    h.Attempts,
			Replayed:   h.Replayed,
			Body:       string(h.Body),
		}
		for _, one := range h.Headers {
			out.Headers = append(out.Headers, api.HandoutHeader{Name: one.Name, Value: one.Value})
		}
		if err := s.Event(h.Number, "delivery", out); err != nil {
			return err
		}
	}
	return nil
}
