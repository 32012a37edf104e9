package api

import (
	"errors"
	"strconv"
	"time"

	"posthorn/db/listen"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// How often a stream looks for deliveries, and how long it says nothing at most.
const (
	lookEvery = 250 * time.Millisecond
	beatEvery = 15 * time.Second
)

var (
	errStreams = fault.New(fault.Unavailable, "streams_limit", "As many streams are open on this server as it takes. Try again in a while.")
	errPlace   = fault.InvalidField("Last-Event-ID", "last_event_id_malformed", "Last-Event-ID is the id of the last event that the stream brought. Leave it out to begin anew.")
)

// streamListener hands out a listener's deliveries until its client goes, the listener is gone, another stream of it begins, or
// this process stops.
func (a *api) streamListener(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	seen := int64(0)
	if last := c.Request.Header.Get("Last-Event-ID"); last != "" {
		if seen, err = strconv.ParseInt(last, 10, 64); err != nil || seen < 0 {
			return errPlace
		}
	}
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		return errStreams
	}
	number, err := listen.BeginListening(c.Ctx(), a.DB, c.Actor.Tenant, u, seen)
	if err != nil {
		return err
	}
	s, err := c.BeginStream()
	if err != nil {
		return nil // the client is gone: there is nobody to tell
	}
	a.feed(c, s, u, number)
	return nil
}

// feed writes what is handed out. An answer that has begun can't be refused any more: it ends, and the client connects again.
func (a *api) feed(c *handlers.Call, s *handlers.Stream, u id.UUID, number int64) {
	look, beat := time.NewTicker(lookEvery), time.NewTicker(beatEvery)
	defer look.Stop()
	defer beat.Stop()
	for {
		given, err := listen.HandOut(c.Ctx(), a.DB, a.Keys, c.Actor.Tenant, u, number)
		if err == nil {
			err = c.Still()
		}
		if err == nil {
			err = sendHandouts(s, given)
		}
		if err != nil {
			a.endStream(c, s, err)
			return
		}
		select {
		case <-c.Ctx().Done():
			return
		case <-a.Closing:
			return
		case <-beat.C:
			if s.Beat() != nil {
				return
			}
		case <-look.C:
		}
	}
}

// endStream says why, where the client must not simply connect again.
func (a *api) endStream(c *handlers.Call, s *handlers.Stream, err error) {
	switch {
	case errors.Is(err, listen.ErrListenedElsewhere):
		_ = s.Event(0, "listened_elsewhere", struct{}{})
	case fault.Is(err, fault.ErrNotFound.Code):
		_ = s.Event(0, "gone", struct{}{})
	case c.Ctx().Err() == nil && fault.As(err) != nil && fault.As(err).Kind == fault.Internal:
		a.Log.Error("a listener's stream ended", "endpoint", c.Param("endpoint_id"), "error", err)
	}
}

func sendHandouts(s *handlers.Stream, given []listen.Handout) error {
	for _, h := range given {
		out := Handout{
			DeliveryID: id.Delivery.Format(h.Delivery), AttemptID: id.Attempt.Format(h.Attempt), EventID: id.Event.Format(h.Event),
			EventType: h.EventType, Attempt: h.Attempts, Replayed: h.Replayed, Body: string(h.Body),
		}
		for _, one := range h.Headers {
			out.Headers = append(out.Headers, HandoutHeader{Name: one.Name, Value: one.Value})
		}
		if err := s.Event(h.Number, "delivery", out); err != nil {
			return err
		}
	}
	return nil
}
