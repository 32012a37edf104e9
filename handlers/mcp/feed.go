package mcp

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db/feeds"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/routing"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

// maxStreams bounds the streams of a process. One that waits has no connection to the database.
const maxStreams = 1000

// beatEvery is how often a stream that has nothing to send says so, with its cursor.
const beatEvery = 15 * time.Second

// nextPoll is when a client that has read everything polls again, in milliseconds.
const nextPoll = 5000

var errStreams = &fault.Error{
	Kind:       fault.Unavailable,
	Code:       "stream_limit",
	RetryAfter: 5,
	Detail:     "This server has its maximum of streams. Try again in a few seconds.",
}

// occurrence is an event as the protocol has it. A request to a callback has the same fields (domain/signature).
type occurrence struct {
	ID     string          `json:"eventId"`
	Name   string          `json:"name"`
	At     string          `json:"timestamp"`
	Data   json.RawMessage `json:"data"`
	Cursor string          `json:"cursor,omitempty"`
	Meta   map[string]any  `json:"_meta,omitempty"`
}

func occurrenceOf(e feeds.Event) occurrence {
	out := occurrence{Cursor: e.Place.String()}
	body := signature.AppendBody(nil, signature.Standard, signature.Message{
		EventID:    e.OwnID,
		Type:       e.Type,
		OccurredAt: e.OccurredAt,
		CreatedAt:  e.AcceptedAt,
		Data:       e.Data,
		TypeField:  signature.Wire{Shape: &signature.Shape{Body: signature.BodyMCP}}.Field(),
	})
	if err := json.Unmarshal(body, &out); err != nil {
		panic(err) // made the line before
	}
	return out
}

// page reads the events behind the parameters' cursor.
func (s *server) page(c *handlers.Call, in asked, limit int) (feeds.Page, error) {
	ctx, cancel := context.WithTimeout(c.Ctx(), workTime)
	defer cancel()
	rule := routing.Rule{EventTypes: []string{in.Name}, Filter: in.filter, Status: endpoint.Active}
	return feeds.Follow(ctx, s.DB, c.Actor.Tenant, rule, feeds.Options{From: in.from, Limit: limit, Now: s.Now()}, in.floor)
}

// recentEvents is the tool get_recent_events: for hosts that wake a model without the data of the event.
func (s *server) recentEvents(c *handlers.Call, args map[string]json.RawMessage) (any, error) {
	var name, cursor string
	minutes := 60
	_, _ = json.Unmarshal(args["event"], &name), json.Unmarshal(args["cursor"], &cursor) // their types are checked
	if text := args["minutes"]; text != nil {
		_ = json.Unmarshal(text, &minutes)
	}
	if minutes < 1 || minutes > 7*24*60 {
		return nil, invalid("minutes must be 1 to 10080.")
	}
	given := map[string]any{"name": name, "maxAgeMs": minutes * 60_000}
	if cursor != "" {
		given["cursor"] = cursor
	}
	params, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	in, err := s.read(c, params)
	if err != nil {
		return nil, err
	}
	if in.from == nil {
		in.from = &feed.Place{Position: feed.Older}
	}
	page, err := s.page(c, in, recentLimit)
	out := struct {
		Events []occurrence `json:"events"`
		Cursor string       `json:"cursor"`
		More   bool         `json:"hasMore"`
	}{make([]occurrence, len(page.Events)), page.Next.String(), !page.CaughtUp}
	for i, e := range page.Events {
		out.Events[i] = occurrenceOf(e)
	}
	return out, err
}

// recentLimit is how many events get_recent_events returns.
const recentLimit = 25

// poll responds with the events behind a cursor; without one, with the cursor of now.
func (s *server) poll(c *handlers.Call, params json.RawMessage) (any, error) {
	if err := requires(c, access.EventsRead); err != nil {
		return nil, err
	}
	in, err := s.read(c, params)
	if err != nil {
		return nil, err
	}
	limit := feed.DefaultLimit
	if in.MaxEvents != nil {
		if limit = min(*in.MaxEvents, feed.MaxLimit); limit < 1 {
			return nil, invalid("maxEvents must be at least 1.")
		}
	}
	page, err := s.page(c, in, limit)
	if err != nil {
		return nil, err
	}
	out := struct {
		result
		Events    []occurrence `json:"events"`
		Cursor    string       `json:"cursor"`
		Truncated bool         `json:"truncated"`
		More      bool         `json:"hasMore"`
		Next      int          `json:"nextPollMs"`
	}{s.complete(), make([]occurrence, len(page.Events)), page.Next.String(), page.Truncated, !page.CaughtUp, nextPoll}
	for i, e := range page.Events {
		out.Events[i] = occurrenceOf(e)
		out.Events[i].Cursor = "" // the response's is that of all
	}
	return out, nil
}

// follower is an open stream.
type follower struct {
	stream *handlers.Stream
	meta   map[string]any
	id     json.RawMessage
	result result // of the request, at the end
}

func (f follower) notify(kind string, params map[string]any) error {
	params["_meta"] = f.meta
	return f.stream.Event(0, "message", map[string]any{"jsonrpc": "2.0", "method": "notifications/events/" + kind, "params": params})
}

func (f follower) active(p feeds.Page) error {
	return f.notify("active", map[string]any{"cursor": p.Next.String(), "truncated": p.Truncated})
}

func (f follower) send(list []feeds.Event) error {
	for _, e := range list {
		one := occurrenceOf(e)
		one.Meta = f.meta
		if err := f.stream.Event(0, "message", map[string]any{"jsonrpc": "2.0", "method": "notifications/events/event", "params": one}); err != nil {
			return err
		}
	}
	return nil
}

// stream sends events until the client disconnects, the key ends, or this process stops. The client continues with the
// last cursor that it has.
func (s *server) stream(c *handlers.Call, m message) error {
	if err := requires(c, access.EventsRead); err != nil {
		return err
	}
	in, err := s.read(c, m.Params)
	if err != nil {
		return err
	}
	select {
	case s.readers <- struct{}{}:
		defer func() { <-s.readers }()
	default:
		return errStreams
	}
	page, err := s.page(c, in, feed.DefaultLimit)
	if err != nil {
		return err
	}
	began, err := c.BeginStream()
	if err != nil {
		return nil // the client has disconnected: nobody would read the error
	}
	f := follower{
		stream: began,
		meta:   map[string]any{"io.modelcontextprotocol/subscriptionId": m.ID},
		id:     m.ID,
		result: s.complete(),
	}
	start := page
	if in.from != nil {
		start.Next = *in.from
	}
	if f.active(start) != nil {
		return nil
	}
	in.floor = time.Time{}
	if err = s.follow(c, f, in, page); err == nil {
		_ = f.end()
	} else if e := fault.As(err); e != nil && e.Kind != fault.Internal && e.Kind != fault.Unavailable {
		_ = f.notify("terminated", map[string]any{"error": map[string]any{"code": codeForbidden, "message": e.Detail}})
		_ = f.end()
	}
	return nil
}

// end sends the result of the request, which is the last that a stream has.
func (f follower) end() error {
	return f.stream.Event(0, "message", response{Version: "2.0", ID: f.id, Result: f.result})
}

// follow sends a page and what comes after it. It returns nil when this process stops.
func (s *server) follow(c *handlers.Call, f follower, in asked, page feeds.Page) (err error) {
	for {
		if err := f.send(page.Events); err != nil {
			return err
		}
		in.from = &page.Next
		if page.CaughtUp && !s.watch.Await(c.Ctx(), c.Actor.Tenant, page.Next, beatEvery, s.Closing) {
			if s.closing() {
				return nil
			}
			if err := f.notify("heartbeat", map[string]any{"cursor": page.Next.String()}); err != nil {
				return err
			}
		}
		if err := c.Still(); err != nil {
			return err
		}
		if page, err = s.page(c, in, feed.DefaultLimit); err != nil {
			return err
		}
		if page.Truncated {
			if err := f.active(page); err != nil { // a gap
				return err
			}
		}
	}
}

func (s *server) closing() bool {
	select {
	case <-s.Closing:
		return true
	default:
		return false
	}
}
